"""A small trained model, and an archive of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.models.archive import Lineage, write_archive
from edl.spec import (
    Component,
    JobSpec,
    Query,
    RegressionLabel,
    Rows,
    Standardize,
)

SPEC = JobSpec(
    kind="train",
    statement="SELECT x, y FROM t TO TRAIN DNNRegressor LABEL y INTO größe.m",
    query=Query(select="SELECT x, y FROM t", dialect="duckdb", source="duckdb:///t.duckdb"),
    rows=Rows(pinned=True, total=10, training=8, validation=2, digest="abc"),
    framework="keras",
    model=Component("DNNRegressor", {"hidden_units": (10,)}),
    inputs={"features": (Standardize("x", 1.0, 2.0),)},
    label=RegressionLabel("y"),
    optimizer=Component("adam"),
    loss=Component("mean_squared_error"),
    metrics=("rmse",),
)

LINEAGE = Lineage(
    statement=SPEC.statement,
    rows=10,
    training_rows=8,
    data_digest="abc",
    schema_digest="def",
    seed=7,
    versions={"sqlflow-edl": "0.1.0"},
    started="2024-01-01T00:00:00+00:00",
    seconds=1.5,
)

PARTS: dict[str, Any] = {
    "spec": SPEC,
    "program": {"model.py": b"raise SystemExit('executed')\n", "vocabulary/f0.txt": "å\n表\n".encode()},
    "weights": {"f0/kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.array(3, np.int64)},
    "metrics": {"rmse": 0.25, "auc": float("nan")},
    "curve": [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": float("inf")}],
    "lineage": LINEAGE,
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write(tmp_path / "m.zip")


def write(path: Path, **changes: Any) -> Path:
    write_archive(path, **(PARTS | changes))
    return path


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    """Writes the model's archive with some parts changed."""

    def make(name: str = "changed.zip", **changes: Any) -> Path:
        return write(tmp_path / name, **changes)

    return make


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[[bytes], Path]:
    """Writes an archive of these bytes; the registry does not look inside."""
    numbers = itertools.count()

    def make(contents: bytes) -> Path:
        path = tmp_path / f"archive{next(numbers)}"
        path.write_bytes(contents)
        return path

    return make
