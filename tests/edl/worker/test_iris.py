"""Sorted data, both frameworks: shuffled tasks of iris sorted by class must not be one class each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

from edl.spec import ClassLabel, Rows, Standardize
from tests.edl.programs import job_spec, loaded, rows_of, source, trained, write

NAMES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@pytest.mark.parametrize("framework", [pytest.param("keras", marks=pytest.mark.soak), "torch"])
def test_iris_sorted_by_class_is_learned(tmp_path: Path, framework: str) -> None:
    measured, species = load_iris(return_X_y=True)
    held_out = np.arange(len(species)) % 5 == 0
    order = np.concatenate(
        [np.flatnonzero(~held_out), np.flatnonzero(held_out)]
    )  # sorted by class, both parts
    data = pa.table({**dict(zip(NAMES, measured[order].T, strict=True)), "species": species[order]})

    features = tuple(
        Standardize(name, float(column.mean()), float(column.std()))
        for name, column in zip(NAMES, measured[~held_out].T, strict=True)
    )
    written = ", ".join(f"fc.standardize({f.column!r}, {f.mean!r}, {f.std!r})" for f in features)
    label = ClassLabel("species", (0, 1, 2))
    spec = job_spec(framework, features, label, Rows(True, 150, 120, 30), epochs=30, batch_size=16, seed=1)
    program = loaded(write(tmp_path / "program", source(framework, written, label), spec))

    outcome, _ = trained(program, rows_of(tmp_path / "rows", data))
    assert outcome.measured_on == "validation"
    assert outcome.figures["accuracy"] is not None
    assert outcome.figures["accuracy"] >= 0.95
