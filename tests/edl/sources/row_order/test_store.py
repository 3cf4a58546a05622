"""Rows between reading and their pinned order, in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.data.arrow_types import BATCH_ROWS
from edl.errors import SourceError
from edl.sources.row_order.store import FILE, RowStore

ROWS = 2 * BATCH_ROWS + 1000


def table() -> pa.Table:
    numbers = np.arange(ROWS)
    texts = pa.array([f"t{number % 977}" for number in numbers], mask=numbers % 5 == 0)
    lists = pa.array([[number, number + 1] if number % 3 else None for number in numbers])
    return pa.table({"n": numbers, "text": texts, "list": lists})


@pytest.mark.parametrize("most", [1 << 30, 1 << 20], ids=["in memory", "in a file, in parts"])
def test_rows_are_gathered_in_the_order(tmp_path: Path, most: int) -> None:
    rows, order = table(), np.random.default_rng(0).permutation(ROWS)
    with RowStore(rows.schema, tmp_path, most) as store:
        for batch in rows.to_batches(max_chunksize=1000):
            store.add(batch)
        gathered = pa.Table.from_batches(store.gather(order), rows.schema)
    assert gathered.equals(rows.take(pa.array(order)))
    assert not [*tmp_path.rglob("*.arrow")]


def test_a_store_without_rows_has_none(tmp_path: Path) -> None:
    schema = pa.schema({"n": pa.int64()})
    with RowStore(schema, tmp_path) as store:
        assert [*store.gather(np.zeros(0, np.int64))] == []


def test_an_error_of_the_source_leaves_no_file(tmp_path: Path) -> None:
    rows = table()
    with pytest.raises(OSError, match="cut off"), RowStore(rows.schema, tmp_path, most=1000) as store:
        for batch in rows.to_batches(max_chunksize=1000):
            store.add(batch)
        assert [*tmp_path.rglob("*.arrow")]
        raise OSError("cut off")
    assert not [*tmp_path.rglob("*.arrow")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "shuffle").mkdir()
    (tmp_path / "shuffle" / FILE).symlink_to("/dev/full")
    rows = table()
    with (
        pytest.raises(SourceError, match=r"the disk of .* is full"),
        RowStore(rows.schema, tmp_path, 1000) as store,
    ):
        for batch in rows.to_batches(max_chunksize=1000):
            store.add(batch)
