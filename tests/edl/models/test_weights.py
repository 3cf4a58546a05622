"""Weights in safetensors: every kind of number, and nothing else."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

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
