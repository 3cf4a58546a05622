"""Rows that are there already, read as others are."""

from __future__ import annotations

import pyarrow as pa

from edl.data.readers import BatchReader


def test_a_range_of_rows_is_read_with_the_columns_that_are_wanted() -> None:
    reader = BatchReader(pa.record_batch({"x": [1, 2, 3, 4], "y": ["a", "b", "c", "d"]}))
    assert (reader.rows, reader.schema.names) == (4, ["x", "y"])
    [some] = reader.read(1, 3, ["y"])
    assert some.to_pydict() == {"y": ["b", "c"]}
    [every] = reader.read(0, 4)
    assert every.num_columns == 2
