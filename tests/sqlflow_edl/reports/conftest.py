"""Sessions with models that were saved, not trained: two versions of `a.m`, of which one failed, and `b`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from edl.models.fitting import ColumnSummary, Fitting
from edl.models.registry.records import ModelRecord
from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases
from tests.edl.models.conftest import SPEC, write

RECORD = ModelRecord("DNNRegressor", "keras", 8, {"loss": 0.5, "rmse": 0.25, "r2": None}, SPEC.statement)
FITTING = Fitting(
    columns={
        "y": ColumnSummary(rows=8, nulls=0, distinct=5, countless=True),
        "x": ColumnSummary(rows=8, nulls=2, min=-1.0, max=3.0, mean=1.0, std=2.0, top=(("é", 5), ("b", 1))),
    },
    reasons=("by type: a number, standardised",),
    left_out={"z": "it is NULL in every training row"},
)
CURVE = [
    {"epoch": 1, "step": 2, "seconds": 0.1, "loss": 0.9, "validation_loss": 0.7, "rmse": 0.8},
    {"epoch": 2, "step": 4, "seconds": 0.2, "loss": 0.5, "validation_loss": 0.3, "rmse": 0.5},
    {"epoch": 3, "step": 6, "seconds": 0.3, "loss": 0.4, "validation_loss": 0.4, "rmse": None},
]


@contextmanager
def stocked(url: str, folder: Path) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(url, create=True) as opened:
            archive = write(folder / "m.zip", fitting=FITTING, curve=CURVE)
            opened.registry.save("a.m", archive, RECORD)
            opened.registry.record_failure("a.m", RECORD, "the loss became nan at step 3")
            opened.registry.save("b", write(folder / "b.zip"), RECORD)
            yield opened


@pytest.fixture(scope="module", params=DIALECTS)
def models(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """In a database of each kind in turn; only to be read."""
    with stocked(databases.url(request.param), tmp_path_factory.mktemp("models")) as opened:
        yield opened


@pytest.fixture(params=DIALECTS)
def own_models(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Iterator[Session]:
    """The same for one test alone."""
    with stocked(databases.url(request.param), tmp_path) as opened:
        yield opened
