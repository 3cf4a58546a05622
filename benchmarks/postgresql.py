"""Rows of PostgreSQL into Arrow batches, and back into a table, against ADBC by hand.

The benchmark starts a server with a table of an id, six numbers, a text and a time. *By hand* is the same driver as a
user would write it: `SELECT … ORDER BY id` read as record batches, and `adbc_ingest` into a new table. psycopg's own
values are the rows of its cursor without Arrow.
"""

from __future__ import annotations

import itertools
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa

from benchmarks.mysql import COLUMNS, drain, in_turns, table_of
from benchmarks.table import Row
from edl.data import Pinned, connect, open_reader
from edl.data.url import parse
from tests.postgresql import MISSING, PASSWORD, Server, is_installed, running


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    if not is_installed():
        return [Row("postgresql", MISSING)]
    with running(folder) as server:
        return list(_measured(server, folder, max(rounds, 3), rows))


def _measured(server: Server, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    url = server.url()
    with connect(url) as source:
        source.stage("t", "given", 0, 0, table_of(rows).to_reader())
        source.commit("t", "given", 1)
        pinned = source.pin(f"SELECT {COLUMNS} FROM t", folder / "rows", seed=0, shuffle=False)
        assert pinned.table is not None
        yield from _reading(url, pinned, folder, rounds, rows)
    yield from _several(pinned, folder, rounds, rows)
    yield from _writing(url, rounds, rows)


def _reading(url: str, pinned: Pinned, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    reader = open_reader(pinned, folder / "rows")
    table = pinned.table.name  # type: ignore[union-attr]
    with closing(connect_adbc(url)) as driver, closing(driver.cursor()) as cursor:

        def by_hand() -> None:
            cursor.execute(f"SELECT {COLUMNS} FROM {table} ORDER BY sqlflow_edl_place")
            drain(cursor.fetch_record_batch())

        ways: dict[str, Callable[[], object]] = {
            "ours": lambda: drain(reader.read(0, rows)),
            "hand": by_hand,
            "values": lambda: _values(url, table),
        }
        seconds = in_turns(ways, rounds)
    yield Row(
        "postgresql: read with ADBC",
        f"{rows / statistics.median(seconds['ours']):,.0f} rows/s",
        [hand / ours for hand, ours in zip(seconds["hand"], seconds["ours"], strict=True)],
        least=0.85,
    )
    yield Row(
        "… against psycopg's own values",
        f"{rows / statistics.median(seconds['values']):,.0f} rows/s",
        [other / ours for other, ours in zip(seconds["values"], seconds["ours"], strict=True)],
    )


def _several(pinned: Pinned, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    """Read with several threads of one process, each with a connection."""
    reader = open_reader(pinned, folder / "rows")

    def read(connections: int) -> None:
        borders = [rows * part // connections for part in range(connections + 1)]
        threads = [
            threading.Thread(target=lambda start=start, end=end: drain(reader.read(start, end)))
            for start, end in itertools.pairwise(borders)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seconds = in_turns({str(count): partial(read, count) for count in (1, 2)}, rounds)
    yield Row(
        "postgresql: 2 connections",
        f"{rows / statistics.median(seconds['2']):,.0f} rows/s",
        [one / two for one, two in zip(seconds["1"], seconds["2"], strict=True)],
    )


def _writing(url: str, rounds: int, rows: int) -> Iterator[Row]:
    table = table_of(rows)
    numbers = iter(range(1_000_000))

    def ours() -> None:
        with connect(url) as source:
            job = f"job-{next(numbers)}"
            source.stage("written", job, 0, 0, table.to_reader())
            source.commit("written", job, 1)

    def by_hand() -> None:
        with closing(connect_adbc(url)) as driver, closing(driver.cursor()) as cursor:
            cursor.adbc_ingest("by_hand", table, mode="replace")

    seconds = in_turns({"ours": ours, "hand": by_hand}, rounds)
    yield Row(
        "postgresql: write a table",
        f"{rows / statistics.median(seconds['ours']):,.0f} rows/s",
        [hand / mine for hand, mine in zip(seconds["hand"], seconds["ours"], strict=True)],
    )


def _values(url: str, table: str) -> None:
    from edl.sources.postgresql.driver import psycopg

    place = parse(url)
    with psycopg.connect(
        host="127.0.0.1",
        port=place.port,  # type: ignore[union-attr]
        user="owner",
        password=PASSWORD,
        dbname=place.path,  # type: ignore[union-attr]
    ) as connection:
        for _ in connection.cursor().stream(f"SELECT {COLUMNS} FROM {table}", size=2048):
            pass


def connect_adbc(url: str) -> pa.RecordBatchReader:
    from adbc_driver_postgresql import dbapi

    return dbapi.connect(url, autocommit=True)
