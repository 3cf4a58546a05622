"""Weights in safetensors: every kind of number, and nothing else."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from edl.errors import SpecError
from edl.models import weights


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5, np.float32),
        np.array(7, np.int64),
        np.array(True),
        np.zeros((0, 3), np.float64),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.arange(10)[::3],
        np.arange(3, dtype=">i4"),
        np.array([True, False]),
        np.array([np.nan, np.inf, -0.0], np.float16),
        np.array([2**63], np.uint64),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_an_array_comes_back_as_it_was(tmp_path: Path, array: np.ndarray) -> None:
    weights.save({"layer/kernel:0 ü": array}, tmp_path / "w")
    (back,) = weights.loads((tmp_path / "w").read_bytes()).values()
    np.testing.assert_array_equal(back, array)
    assert back.shape == array.shape
    assert back.dtype == array.dtype.newbyteorder("=")
    assert back.flags.writeable


def test_a_model_without_weights_is_fine(tmp_path: Path) -> None:
    weights.save({}, tmp_path / "w")
    assert weights.loads((tmp_path / "w").read_bytes()) == {}


def test_a_file_equals_the_file_of_the_formats_own_library(tmp_path: Path) -> None:
    arrays = {f'w {dtype} "ü': np.ones((3, 2), dtype) for dtype in weights.DTYPES}
    arrays |= {"w": np.array(2.0), "none": np.zeros((0, 4), np.float32)}
    weights.save(arrays, tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == safetensors.numpy.save(arrays)


def test_pieces_that_take_turns_make_the_file_that_whole_arrays_make(tmp_path: Path) -> None:
    arrays = {
        "t:ids": np.arange(10),
        "t:rows": np.arange(30, dtype=np.float32).reshape(10, 3),
        "b": np.ones(2),
    }
    weights.save(arrays, tmp_path / "whole")
    kinds = {name: weights.Kind(array.dtype, array.shape) for name, array in arrays.items()}
    turns = [(name, arrays[name][i : i + 4]) for i in range(0, 10, 4) for name in ("t:rows", "t:ids")]
    weights.save(weights.WeightStream(kinds, [*turns, ("b", arrays["b"])]), tmp_path / "pieces")
    assert (tmp_path / "pieces").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(("rows", "what"), [(9, "do not fill"), (11, "exceed")])
def test_pieces_are_as_many_as_was_said(tmp_path: Path, rows: int, what: str) -> None:
    kinds = {"w": weights.Kind(np.dtype(np.float32), (10, 2))}
    with pytest.raises(ValueError, match=f"the pieces of w {what} its shape"):
        weights.save(weights.WeightStream(kinds, [("w", np.zeros((rows, 2), np.float32))]), tmp_path / "w")


def test_a_table_that_comes_in_pieces_is_never_in_memory(tmp_path: Path) -> None:
    rows, dim, piece = 1_000_000, 16, 10_000
    kinds = {"t:rows": weights.Kind(np.dtype(np.float32), (rows, dim))}
    pieces = (("t:rows", np.full((piece, dim), i, np.float32)) for i in range(rows // piece))
    tracemalloc.start()
    weights.save(weights.WeightStream(kinds, pieces), tmp_path / "w")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5 * piece * dim * 4
    assert (tmp_path / "w").stat().st_size > rows * dim * 4
    with (tmp_path / "w").open("rb") as file:
        assert weights.count(file) == rows * dim


@pytest.mark.parametrize(
    "array", [np.array(["text"]), np.array([object()]), np.array([1j]), np.array(["2024"], "M8[D]")]
)
def test_what_is_not_a_number_is_refused_by_name(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(SpecError, match="the weights w1 are of the type"):
        weights.save({"w1": array}, tmp_path / "w")


def test_the_name_that_the_format_reserves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be named"):
        weights.save({"__metadata__": np.zeros(1)}, tmp_path / "w")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data[:8] + b"[" + data[9:],
        lambda data: data.replace(b'"F64"', b'"F32"'),
    ],
)
def test_damaged_weights_are_a_named_error(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    weights.save({"w": np.arange(4.0)}, tmp_path / "w")
    with pytest.raises(SpecError, match="weights are damaged"):
        weights.loads(damage((tmp_path / "w").read_bytes()))


def test_numbers_are_counted_from_the_header_alone(tmp_path: Path) -> None:
    arrays = {"a": np.zeros((3, 4)), "b": np.array(1), "c": np.zeros((0, 9)), "d": np.zeros(5, bool)}
    weights.save(arrays, tmp_path / "w")
    contents = (tmp_path / "w").read_bytes()
    header = 8 + int.from_bytes(contents[:8], "little")
    assert weights.count(io.BytesIO(contents[:header])) == 12 + 1 + 0 + 5


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\xff" * 8,
        b"\5\0\0\0\0\0\0\0{{{{{",
        b"\2\0\0\0\0\0\0\0[]",
        b'\x11\0\0\0\0\0\0\0{"a":{"shape":1}}',
    ],
)
def test_a_damaged_header_is_an_error(contents: bytes) -> None:
    with pytest.raises(SpecError, match="damaged"):
        weights.count(io.BytesIO(contents))
