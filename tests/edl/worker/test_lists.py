"""Programs that feed lists of ids into row tables, through the worker loop in both frameworks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.spec import Rows
from tests.edl.programs import FRAMEWORKS, loaded, rows_of, simple, trained

N = 300
FEED = """

import edl


def feed(batch, mode):
    return {"tags": edl.Ragged.of(batch.column("tags"))}, LABEL.transform(batch, mode)
"""
MODELS = {
    "keras": """

from edl.keras import Embedding


def custom_model():
    inputs = {"tags": keras.Input((), dtype="int64", name="tags")}
    return keras.Model(inputs, keras.layers.Dense(1)(Embedding("tags", 4, "sum")(inputs["tags"])))
""",
    "torch": """

from edl.torch import Embedding


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tags = Embedding("tags", 4, "sum")
        self.output = nn.Linear(4, 1)

    def forward(self, features):
        return self.output(self.tags(features["tags"]))
""",
}


def table() -> pa.Table:
    """Tags that are worth one or minus one each, and the sum of their worth."""
    rng = np.random.default_rng(0)
    tags = [rng.integers(0, 40, rng.integers(0, 5)).tolist() for _ in range(N)]
    worth = [float(sum(1 if tag % 2 else -1 for tag in row)) for row in tags]
    return pa.table({"tags": pa.array(tags, pa.list_(pa.int64())), "x": np.zeros(N), "y": worth})


@pytest.mark.soak
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_tags_of_rows_are_learned_in_any_order_of_the_rows(framework: str, tmp_path: Path) -> None:
    rows = Rows(False, N, 240, 60)
    folder = simple(
        tmp_path / "program", framework, rows=rows, append=MODELS[framework] + FEED, epochs=40, batch_size=16
    )
    (folder / "model.py.sha256").unlink()  # an edited program, which reads what it likes
    outcome, adapter = trained(loaded(folder), rows_of(tmp_path / "rows", table()))
    assert outcome.loss is not None and outcome.loss < 0.1
    assert outcome.figures["rmse"] is not None and outcome.figures["rmse"] < 0.5
    assert adapter.get_weights()["tags:ids"].tolist() == list(range(40))
