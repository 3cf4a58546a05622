"""Rows of MariaDB into Arrow batches, and back into a table, against each driver by hand.

The benchmark starts a server with a table of an id, six numbers, a text and a time. *By hand* is PyMySQL, fetching
as many rows at a time and making the same batches with `pa.array`, as a user would write it; or connectorx, reading
the whole table at once.
PyMySQL's own values are the rows of its cursor without Arrow. The hand-written counterpart of writing is a CSV
file for LOAD DATA.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pymysql

from benchmarks.table import Row
from edl.data import Pinned, connect, open_reader
from edl.data.url import parse
from edl.sources.mysql import drivers as mysql_drivers
from edl.sources.mysql import pinning
from tests.mariadb import MISSING, PASSWORD, Server, is_installed, running

COLUMNS = "id, a, b, c, d, e, f, text, at"


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    if not is_installed():
        return [Row("mysql", MISSING)]
    rows //= 4
    with running(folder) as server:
        return list(_measured(server, folder, max(rounds, 3), rows))


def _measured(server: Server, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    database = server.database()
    url = server.url(database)
    with connect(url) as source:
        source.stage("t", "given", 0, 0, table_of(rows).to_reader())
        source.commit("t", "given", 1)
        pinned = source.pin(f"SELECT {COLUMNS} FROM t", folder / "rows", seed=0, shuffle=False)
    drivers = mysql_drivers.installed_drivers()
    yield from _reading(url, pinned, drivers, rounds, rows)
    yield from _several(pinned, folder, rounds, rows)
    yield from _writing(server, url, folder, rounds, rows)


def _reading(url: str, pinned: Pinned, drivers: Sequence[str], rounds: int, rows: int) -> Iterator[Row]:
    ways: dict[str, Callable[[], object]] = {
        driver: partial(_read, url, pinned, driver, rows) for driver in drivers
    }
    peers: dict[str, Callable[[], object]] = {"pymysql": lambda: _by_hand(url, pinned)}
    if "connectorx" in drivers:
        peers["connectorx"] = lambda: read_by_connectorx(url)
    values = {"pymysql's own values": lambda: _values(url)}
    bare = {f"{driver} by hand": peer for driver, peer in peers.items()}
    seconds = in_turns({**ways, **bare, **values}, rounds)
    for driver in drivers:
        yield Row(
            f"mysql: read with {driver}",
            f"{rows / statistics.median(seconds[driver]):,.0f} rows/s",
            [hand / ours for hand, ours in zip(seconds[f"{driver} by hand"], seconds[driver], strict=True)],
            least=0.85,
        )
    best = drivers[-1]
    for peer in (*drivers[:-1], *values):
        yield Row(
            f"… {best} against {peer}",
            f"{rows / statistics.median(seconds[peer]):,.0f} rows/s",
            [other / ours for other, ours in zip(seconds[peer], seconds[best], strict=True)],
        )


def _several(pinned: Pinned, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    """Read with several threads of one process, each with a connection."""
    reader = open_reader(pinned, folder / "rows")
    counts = (1, 2, 4)

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

    seconds = in_turns({str(count): partial(read, count) for count in counts}, rounds)
    for count in counts:
        yield Row(
            f"mysql: {count} connection{'s' if count > 1 else ''}",
            f"{rows / statistics.median(seconds[str(count)]):,.0f} rows/s",
            [one / many for one, many in zip(seconds["1"], seconds[str(count)], strict=True)],
        )


def _writing(server: Server, url: str, folder: Path, rounds: int, rows: int) -> Iterator[Row]:
    table = table_of(rows)
    numbers = iter(range(1_000_000))

    def ours() -> None:
        with connect(url) as source:
            job = f"job-{next(numbers)}"
            source.stage("written", job, 0, 0, table.to_reader())
            source.commit("written", job, 1)

    def by_hand() -> None:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            csv.write_csv(table, file.name, csv.WriteOptions(include_header=False, quoting_style="needed"))
            connection = server.connect(database=parse(url).path, local_infile=True)  # type: ignore[union-attr]
            with closing(connection), connection.cursor() as cursor:
                cursor.execute("CREATE OR REPLACE TABLE by_hand LIKE t")
                cursor.execute(
                    f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE by_hand FIELDS TERMINATED BY ','"
                    f" OPTIONALLY ENCLOSED BY '\"' ({COLUMNS})"
                )

    seconds = in_turns({"ours": ours, "hand": by_hand}, rounds)
    yield Row(
        "mysql: write a table",
        f"{rows / statistics.median(seconds['ours']):,.0f} rows/s",
        [hand / mine for hand, mine in zip(seconds["hand"], seconds["ours"], strict=True)],
    )


def table_of(rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=rows) for name in "abc"} | {
        name: rng.integers(0, 10_000, rows) for name in "def"
    }
    at = pa.array(np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1_000_000, "us"))
    text = pa.array([f"text {number % 997}" for number in range(rows)])
    return pa.table({"id": np.arange(rows), **numbers, "text": text, "at": at})


def _read(url: str, pinned: Pinned, driver: str, rows: int) -> None:
    drain(_reader(url, pinned, driver).read(0, rows))


def _reader(url: str, pinned: Pinned, driver: str) -> pinning.MySQLRowReader:
    reader = pinning.open_rows(pinned, pinned.table)  # type: ignore[arg-type]
    reader._idle.append(mysql_drivers.connect(parse(url), driver))  # type: ignore[arg-type]
    return reader


def _by_hand(url: str, pinned: Pinned) -> None:
    """Convert the rows of PyMySQL, with the values that it decodes, into batches of the same types."""
    schema = pinning.open_rows(pinned, pinned.table).schema  # type: ignore[arg-type]
    for rows in _fetched(url):
        columns = zip(*rows, strict=True)
        pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)],
            schema=schema,
        )


def _values(url: str) -> None:
    for _ in _fetched(url):
        pass


def _fetched(url: str) -> Iterator[Sequence[tuple[Any, ...]]]:
    place = parse(url)
    connection = pymysql.connect(
        host="127.0.0.1",
        port=place.port,  # type: ignore[union-attr]
        user="owner",
        password=PASSWORD,
        database=place.path,  # type: ignore[union-attr]
        cursorclass=pymysql.cursors.SSCursor,
    )
    with closing(connection), closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT {COLUMNS} FROM t")
        while rows := cursor.fetchmany(mysql_drivers.FETCH_ROWS):
            yield rows


def read_by_connectorx(url: str) -> None:
    import connectorx

    connectorx.read_sql(url, f"SELECT {COLUMNS} FROM t", return_type="arrow")


def drain(batches: Iterator[pa.RecordBatch]) -> None:
    for _ in batches:
        pass


def in_turns(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, do in ways.items():
            began = time.perf_counter()
            do()
            seconds[name].append(time.perf_counter() - began)
    return seconds
