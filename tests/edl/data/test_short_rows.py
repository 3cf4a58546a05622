"""Rows without some in their middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.data.readers import ShortReader
from tests.edl.programs import rows_of
from tests.edl.run.search.conftest import ROWS, waves


@pytest.mark.parametrize(("start", "end"), [(0, 100), (0, 30), (30, 100), (20, 50), (99, 100), (5, 5)])
def test_a_range_leaves_out_the_rows_in_the_middle(tmp_path: Path, start: int, end: int) -> None:
    reader = ShortReader(rows_of(tmp_path, waves()), 30, 20)
    assert reader.rows == ROWS - 20
    values = waves()["y"].to_pylist()
    left = values[:30] + values[50:]
    found = [value for batch in reader.read(start, end, ["y"]) for value in batch["y"].to_pylist()]
    assert found == left[start:end]
