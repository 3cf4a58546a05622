"""Checks of the sources of lake houses, over a table `sales` with the numbers 1, 2, NULL and 4 in `n`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source, connect, open_reader
from edl.errors import SourceError


def numbers(source: Source, table: str = "sales") -> list[int | None]:
    found: list[int | None] = source.stream(f"SELECT n FROM {table} ORDER BY n").read_all()["n"].to_pylist()
    return found


def check_pinned_rows_and_results(url: str, table: Path, folder: Path) -> None:
    """Check that rows are pinned in `folder`, and that results are stored beside the table."""
    with connect(url) as source:
        pinned = source.pin("SELECT shop, n FROM sales WHERE n IS NOT NULL", folder, seed=1, shuffle=True)
        reader = open_reader(pinned, folder)
        read = pa.Table.from_batches(reader.read(0, pinned.rows), reader.schema)
        assert sorted(read["n"].to_pylist()) == [1, 2, 4]
        source.stage("guesses", "job", 0, 0, [pa.record_batch({"n": [7]})])
        source.commit("guesses", "job", 1)
    assert (table.parent / "sales.sqlflow.duckdb").is_file()
    with connect(url) as source:
        assert numbers(source, "guesses") == [7]


def refusal(url: str) -> str:
    """Return the error with its hint for a URL that cannot be opened."""
    with pytest.raises(SourceError) as found:
        connect(url)
    return f"{found.value} {found.value.hint}"
