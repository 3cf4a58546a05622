"""Parquet by row range."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from edl.data import open_reader
from edl.data.files.file_ranges import pin_files
from edl.errors import SourceError


def test_types_become_those_that_travel(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    parquet.write_table(
        pa.table({"w": words, "s": pa.array(["x"] * 3, pa.large_string())}), tmp_path / "t.parquet"
    )
    reader = open_reader(pin_files(f"{tmp_path}/t.parquet", tmp_path), tmp_path)
    assert reader.schema.types == [pa.string(), pa.string()]
    assert pa.Table.from_batches(reader.read(1, 3)).to_pylist() == [
        {"w": "b", "s": "x"},
        {"w": "a", "s": "x"},
    ]


def test_columns_may_stand_in_another_order_in_each_file(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    parquet.write_table(pa.table({"b": ["y"], "a": [2]}), tmp_path / "2.parquet")
    reader = open_reader(pin_files(f"{tmp_path}/*.parquet", tmp_path), tmp_path)
    assert pa.Table.from_batches(reader.read(0, 2)).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    reader = open_reader(pin_files(f"{tmp_path}/t.parquet", tmp_path), tmp_path)
    assert (reader.rows, reader.schema.names, list(reader.read(0, 0))) == (0, ["a"], [])


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more PAR1")
    with pytest.raises(SourceError, match="cannot be read as Parquet"):
        pin_files(f"{tmp_path}/t.parquet", tmp_path)


def test_an_option_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="have no option delim"):
        pin_files(f"parquet:{tmp_path}/t.parquet?delim=x", tmp_path)
