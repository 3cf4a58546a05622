"""Tables of pinned rows on a server: the order of their rows, and statements that run at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl.data import connect, open_reader
from edl.sources.mysql import pinning as mysql_pinning
from edl.sources.pinned_tables import BLOCK_ROWS
from edl.sources.postgresql import pinning as postgresql_pinning

SLEEPING = {"mysql": "SELECT SLEEP(60)", "postgres": "SELECT pg_sleep(60)"}
ON_SERVERS = pytest.mark.parametrize("url", ["mysql", "postgres"], indirect=True)


def fill_table(url: str, rows: int) -> None:
    with connect(url) as source:
        batch = pa.record_batch({"n": range(rows), "text": [f"row {n % 7}" for n in range(rows)]})
        source.stage("t", "given", 0, 0, [batch])
        source.commit("t", "given", 1)


def pin_table(url: str, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the digest and the rows."""
    with connect(url) as source:
        pinned = source.pin("SELECT n, text FROM t", folder, seed=1, shuffle=True)
        rows = [
            row for batch in open_reader(pinned, folder).read(0, pinned.rows) for row in batch.to_pylist()
        ]
        source.unpin(pinned, folder)
    return pinned.digest, rows


@ON_SERVERS
@pytest.mark.parametrize("rows", [1, BLOCK_ROWS, 2 * BLOCK_ROWS + 1])
def test_rows_of_several_blocks_of_places_have_the_order_of_every_source(
    url: str, rows: int, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    in_file = new_url("duckdb")
    for place in (url, in_file):
        fill_table(place, rows)
    assert pin_table(url, tmp_path / "a")[1] == pin_table(in_file, tmp_path / "b")[1]


@ON_SERVERS
def test_statements_at_the_same_time_give_the_digest_of_one(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_table(url, 1001)
    one = pin_table(url, tmp_path)
    for module in (mysql_pinning, postgresql_pinning):
        monkeypatch.setattr(module, "MANY_ROWS", 1)
    assert pin_table(url, tmp_path) == one


@ON_SERVERS
def test_a_question_beside_a_statement_that_fails_is_stopped(url: str) -> None:
    began = time.monotonic()
    with connect(url) as source:
        sleeping = SLEEPING[source.dialect]
        with (
            pytest.raises(ZeroDivisionError),
            source.asking_beside(lambda second: second.fetch_all(sleeping), is_long=True),
        ):
            raise ZeroDivisionError
    assert time.monotonic() - began < 30
