"""Rows that are parts of other rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data.readers import PartsReader
from tests.edl.programs import rows_of
from tests.edl.run.search.conftest import ROWS, waves


def read_values(reader: PartsReader, start: int, end: int) -> list[float]:
    return [value for batch in reader.read(start, end, ["y"]) for value in batch["y"].to_pylist()]


@pytest.mark.parametrize(("start", "end"), [(0, 100), (0, 30), (30, 100), (20, 50), (99, 100), (5, 5)])
def test_a_range_leaves_out_the_rows_in_the_middle(tmp_path: Path, start: int, end: int) -> None:
    reader = PartsReader.skip(rows_of(tmp_path, waves()), 30, 20)
    assert reader.rows == ROWS - 20
    values = waves()["y"].to_pylist()
    left = values[:30] + values[50:]
    assert read_values(reader, start, end) == left[start:end]


@pytest.mark.parametrize(("start", "end"), [(0, 75), (0, 10), (15, 45), (29, 31), (50, 75), (75, 75)])
def test_parts_are_read_in_their_own_order(tmp_path: Path, start: int, end: int) -> None:
    reader = PartsReader(rows_of(tmp_path, waves()), [(40, 70), (0, 0), (0, 40), (100, 105)])
    values = waves()["y"].to_pylist()
    assert reader.rows == 75
    assert read_values(reader, start, end) == (values[40:70] + values[:40] + values[100:105])[start:end]
