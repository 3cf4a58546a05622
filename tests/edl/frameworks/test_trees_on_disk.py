"""Training rows of XGBoost on disk: the same trees as from rows in memory, in parts, and nothing left behind."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl.data.readers import BatchReader
from edl.frameworks.trees import xgboost, xgboost_disk
from edl.frameworks.trees.adapter import matrix_of
from edl.frameworks.trees.models import XGBoost
from edl.frameworks.trees.objectives import XGBOOST
from edl.input.blocks import LEAST_ROWS, Blocks
from edl.spec import Rows as SpecRows
from edl.tasks.task import Task
from tests.edl.frameworks.test_trees import COLUMNS, MATRIX
from tests.edl.programs import loaded, simple

ROUNDS = 4
FEATURES = fc.Features(*map(fc.raw, COLUMNS))
TOTAL = LEAST_ROWS + 9


def grow(matrix: np.ndarray, weights: np.ndarray | None, folder: Path) -> xgboost.XGBoostEngine:
    model = XGBoost(FEATURES, objective="reg:squarederror", learning_rate=0.3, seed=0, max_depth=4)
    engine = xgboost.XGBoostEngine(model, XGBOOST["reg:squarederror"], str(folder))
    labels = np.nan_to_num(MATRIX[:, 0]).astype(np.float32)
    engine.begin(matrix, labels, weights)
    for _ in range(ROUNDS):
        engine.grow(0.3)
    assert engine.mean_loss(labels, weights) < float(np.square(labels).mean())
    return engine


@pytest.mark.parametrize("weighed", [False, True])
def test_trees_from_rows_on_disk_are_those_from_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weighed: bool
) -> None:
    monkeypatch.setattr(xgboost_disk, "PART", 100 * MATRIX.shape[1] * 8)
    weights = np.linspace(0.5, 2, len(MATRIX), dtype=np.float32) if weighed else None
    with tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(MATRIX).data)
        file.flush()
        on_disk = np.memmap(file, MATRIX.dtype, "r", shape=MATRIX.shape)
        engine = grow(on_disk, weights, tmp_path)
    assert [*tmp_path.glob("xgboost-*/*")], "the parts are in files"
    wanted = grow(MATRIX, weights, tmp_path)
    np.testing.assert_allclose(
        engine.margins(MATRIX, ROUNDS), wanted.margins(MATRIX, ROUNDS), rtol=1e-5, atol=1e-5
    )
    del engine
    gc.collect()
    assert not [*tmp_path.iterdir()]


def test_a_training_maps_its_features_from_a_file(tmp_path: Path) -> None:
    path = simple(tmp_path, "xgboost", rows=SpecRows(False, TOTAL, TOTAL), features=COLUMNS)
    program = loaded(path)
    columns = {name: np.arange(TOTAL) * (1.5 + place) for place, name in enumerate((*COLUMNS, "y"))}
    reader = BatchReader(pa.record_batch(columns))
    task = Task(0, "train", 0, TOTAL, 1)
    in_memory = Blocks(program, reader).whole(task, seed=None)
    on_disk = Blocks(program, reader, on_disk=True).whole(task, seed=None)
    assert isinstance(matrix_of(on_disk.arrays.features), np.memmap)
    np.testing.assert_array_equal(matrix_of(on_disk.arrays.features), matrix_of(in_memory.arrays.features))
    np.testing.assert_array_equal(on_disk.arrays.labels, in_memory.arrays.labels)
