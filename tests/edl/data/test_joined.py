"""Rows of training and validation rows, read as one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from edl.data.readers import JoinedReader
from edl.errors import SourceError
from tests.edl.programs import rows_of


@pytest.fixture
def joined(tmp_path: Path) -> JoinedReader:
    first = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    second = pa.table({"more": [0, 0], "Y": ["d", "e"], "x": [4.5, 5.5]})
    return JoinedReader(rows_of(tmp_path / "1", first), rows_of(tmp_path / "2", second))


def read_columns(
    reader: JoinedReader, start: int, end: int, columns: list[str] | None = None
) -> dict[str, list[object]]:
    return pa.Table.from_batches(reader.read(start, end, columns)).to_pydict()


def test_the_second_rows_stand_behind_the_first_under_their_names(joined: JoinedReader) -> None:
    assert joined.rows == 5
    assert read_columns(joined, 1, 3, ["y", "x"]) == {"y": ["b", "c"], "x": [2, 3]}
    assert read_columns(joined, 3, 5, ["y", "x"]) == {"y": ["d", "e"], "x": [4.5, 5.5]}
    assert read_columns(joined, 4, 5) == {"x": [5.5], "y": ["e"]}
    assert list(joined.read(3, 3)) == list(joined.read(5, 5)) == []


def test_a_range_over_both_is_refused(joined: JoinedReader) -> None:
    with pytest.raises(ValueError, match="both sides of 3"):
        joined.read(2, 4)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    first, second = pa.table({"height": [1]}), pa.table({"heigt": [1]})
    reader = JoinedReader(rows_of(tmp_path / "1", first), rows_of(tmp_path / "2", second))
    with pytest.raises(SourceError, match="the validation rows have no column height") as raised:
        list(reader.read(1, 2, ["height"]))
    assert raised.value.hint == "did you mean heigt?"
