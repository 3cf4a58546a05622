"""Inputs of ONNX files from columns, and their computation by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edl import features as fc
from edl.errors import JobError, SemanticError
from edl.extensions.imported.adapter import OnnxAdapter, feed, open_session, run_by_batch
from edl.extensions.imported.model import FileInput, OnnxModel
from edl.program import Program
from edl.spec import Component, JobSpec, Query, RegressionLabel, Rows
from tests.onnx_files import identity, with_external_data

AGE = FileInput("dense", ("age", "size"))


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_null_is_nan_for_floats(kind: str) -> None:
    array = feed(np.array([[1.5, np.nan]]), AGE, kind, (None, 2))
    assert array.dtype == kind
    assert np.isnan(array[0, 1])


def test_a_column_is_flat_where_the_file_says_so() -> None:
    assert feed(np.array([[1.0], [2.0]]), FileInput("dense", ("age",)), "int64", (None,)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (np.nan, "int64", "size is NULL in a row, and the model takes whole numbers there"),
        (np.nan, "bool", "size is NULL in a row, and the model takes true or false there"),
        (2.5, "int64", "size is 2.5 in a row, and the model takes whole numbers of int64 there"),
        (300.0, "uint8", "size is 300 in a row"),
        (-1.0, "uint32", "size is -1 in a row"),
        (2.0, "bool", "size is 2 in a row, and the model takes true or false of bool there"),
        (2.0**60, "int64", r"size is 1.152921504606847e\+18 in a row"),
    ],
)
def test_a_number_that_the_type_does_not_hold_names_its_column(value: float, kind: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        feed(np.array([[1.0, value]]), AGE, kind, (None, 2))


def test_null_among_texts_names_its_column_and_the_rows() -> None:
    texts = np.array([["a", None], ["b", None]], dtype=object)
    with pytest.raises(SemanticError, match="size is NULL in 2 rows, and the model takes texts there"):
        feed(texts, AGE, "object", (None, 2))


@pytest.mark.parametrize("rows", [1, 3, 4, 7])
def test_a_fixed_number_of_rows_is_computed_in_batches(rows: int) -> None:
    session = open_session(identity(shape=(3, 1)))
    values = np.arange(rows, dtype=np.float32)[:, None]
    assert run_by_batch(session, [values], "y").ravel().tolist() == values.ravel().tolist()


@pytest.mark.parametrize("location", ["secret.bin", "../secret.bin"])
def test_the_file_of_an_archive_is_not_loaded_with_external_data(
    location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / location).write_bytes(np.ones((1, 1), dtype=np.float32).tobytes())
    spec = JobSpec(
        kind="predict",
        statement="",
        query=Query("", "duckdb", ""),
        rows=Rows(False, 0, 0),
        framework="onnx",
        model=Component("ImportedModel"),
        inputs={},
        label=RegressionLabel("y"),
        optimizer=Component("none"),
        loss=Component("none"),
        metrics=(),
    )
    program = Program(tmp_path, spec, ModuleType("model"), {}, edited=False)
    adapter = OnnxAdapter(OnnxModel(fc.Features(fc.raw("x")), output="y", gives="number"), program)
    with pytest.raises(JobError, match="keeps the data of 1 tensors"):
        adapter.set_weights({"model": np.frombuffer(with_external_data(location), dtype=np.uint8)})
