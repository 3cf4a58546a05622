"""Estimator that one file adds: its statements are checked, planned, trained and used like built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.catalog import MODELS
from tests.databases import fill
from tests.fixtures.estimators import residual
from tests.workshops import Workshop

LONGEST = 150  # lines of its file

ROWS = pa.table(
    {
        "age": [20.0 + i % 40 for i in range(400)],
        "town": [("oslo", "rome", "lima")[i % 3] for i in range(400)],
        "worth": [abs(i % 40 - 20) * 3.0 + 10 * (i % 3) for i in range(400)],
    }
)


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for model in residual.MODELS:
            patch.setitem(MODELS.entries, model.name, model)
        yield


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With the rows."""
    fill(workshop.session, "towns", ROWS)
    return workshop


def test_its_file_is_short() -> None:
    assert len(Path(residual.__file__).read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_it_is_trained_and_predicts(workshop: Workshop) -> None:
    settings = f"model.framework = {workshop.framework}, epochs = 60, batch_size = 16, optimizer.learning_rate = 0.01"
    _, figures, predicted = workshop.run(
        f"""SELECT * FROM towns TO TRAIN Residual
        WITH model.blocks = 1, model.greeting = 'a "b" {{{{ 7 }}}}', {settings} LABEL worth INTO worths;
        SELECT * FROM towns TO EVALUATE worths WITH validation.metrics = r2;
        SELECT age, town FROM towns TO PREDICT USING worths"""
    )
    assert figures.to_arrow()["r2"][0].as_py() > 0.9
    assert predicted.to_arrow().num_rows == ROWS.num_rows


def test_its_plan_has_its_parameters_and_its_size(workshop: Workshop) -> None:
    plan = workshop.rows(
        "EXPLAIN SELECT * FROM towns TO TRAIN ResidualRegressor WITH model.units = 8 LABEL worth INTO worths"
    )
    found = {(row["section"], row["name"]): row["value"] for row in plan.to_pylist()}
    assert found["model", "ResidualRegressor"] == "A residual network with one output."
    assert found["model", "units"] == "8"
    width = 1 + 4  # the age, three towns and others
    assert found["size", "parameters"] == str((width + 1) * 8 + 2 * (8 + 1) * 8 + (8 + 1))


def test_its_errors_have_hints(workshop: Workshop) -> None:
    with pytest.raises(SQLFlowError, match="unknown model ResidualRegresor") as raised:
        workshop.run("SELECT * FROM towns TO TRAIN ResidualRegresor LABEL worth INTO worths")
    assert raised.value.hint == "did you mean ResidualRegressor?"
