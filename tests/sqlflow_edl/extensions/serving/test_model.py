"""Models in memory: what they read and predict, as PREDICT does, and what they leave alone."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError, SpecError
from sqlflow_edl.extensions.serving.model import ServedModel, load_model
from tests.sales import new_sales


def test_a_model_knows_its_columns_and_results(kinds: ServedModel) -> None:
    assert {field.name: str(field.type) for field in kinds.schema} == {
        "amount": "double", "city": "string", "day": "date32[day]", "is_new": "bool",
    }  # fmt: skip
    assert kinds.results.names == [
        "kind",
        "kind_confidence",
        "kind_prob_far",
        "kind_prob_large",
        "kind_prob_near",
    ]


def test_an_interval_lies_around_the_number(costs: ServedModel) -> None:
    batch = new_sales().to_batches()[0]
    found = costs.predictor.predict(batch, costs.settings(interval=0.9))
    low, middle, high = (found.column(name).to_numpy() for name in ("cost_low", "cost", "cost_high"))
    assert found.schema.names == ["cost", "cost_low", "cost_high"]
    assert low + high == pytest.approx(2 * middle)
    assert (low < high).all()


def test_a_setting_that_the_model_does_not_have_is_refused(kinds: ServedModel, costs: ServedModel) -> None:
    with pytest.raises(
        SemanticError, match="an interval is of a number, and kinds@1 predicts the class kind"
    ):
        kinds.settings(interval=0.9)
    with pytest.raises(SemanticError, match="a threshold needs a label of two classes, and kind has 3"):
        kinds.settings(threshold=0.3)
    with pytest.raises(SemanticError, match="interval is 2; it must be between 0 and 1"):
        costs.settings(interval=2)


def test_rows_are_predicted_alike_whatever_their_number(kinds: ServedModel) -> None:
    few = new_sales().to_batches()[0]
    many = pa.concat_batches([few] * 17_000)
    assert many.num_rows > 2 * kinds.predictor.rows
    found = kinds.predictor.predict(many)
    assert found.slice(0, few.num_rows) == kinds.predictor.predict(few)
    assert found.slice(many.num_rows - few.num_rows) == kinds.predictor.predict(few)
    assert kinds.predictor.predict(few.slice(0, 0)).num_rows == 0


def test_random_states_of_the_process_stay(archives: dict[str, Path]) -> None:
    before = random.getstate(), repr(np.random.get_state())
    load_model(archives["kinds"])
    assert (random.getstate(), repr(np.random.get_state())) == before


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.zip"
    file.write_bytes(b"PK")
    with pytest.raises(SpecError):
        load_model(file)
