"""Fixing the order of rows, beside bare reads of the same rows: of a Parquet file, of PostgreSQL and of MariaDB.

The file has ten rows for each of the benchmark's rows, with five columns: two whole numbers, two fractions and a text.
DuckDB reads and hashes all its values. Each round is a process of its own. Its processor time counts all its threads;
its memory is what it held at most, beyond what it held before and beyond the rows themselves.

The servers have the table of `benchmarks.mysql`: an id, six numbers, a text and a time; MariaDB has a quarter of the
rows. They are pinned in the server, and in a file of this machine, where `pin=file` asks for it. ADBC and connectorx
read the whole table and order nothing. The server's own copy is one statement that writes the rows in a random order
into a table with a key: no client reads them, and there is no digest. All take turns in a round. The client and
the server are counted together in the processor time, which other work on the machine changes less than the rate.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import duckdb

from benchmarks import mysql, postgresql
from benchmarks.mysql import table_of
from benchmarks.table import Row
from edl.data import connect
from edl.spec import Split
from tests import mariadb
from tests import postgresql as postgresql_server

ROWS_OF_FILE = 10  # for each row that is asked for
COLUMNS = (
    "range AS id, (hash(range) % 1000000) / 1e3 AS price, (hash(range + 7) % 100000)::INT AS quantity,"
    " 'city' || (hash(range * 3) % 500) AS city, (hash(range + 1) % 1000000) / 1e6 AS y"
)
LEAST_IN_SERVER = 200_000  # rows a second
_OWN = "the server's own copy in a random order"
OWN_COPY = {  # as each server makes it fastest, into a table of the kind that ours is
    "postgresql": (
        f"CREATE UNLOGGED TABLE own AS SELECT row_number() OVER (ORDER BY random()) AS place, {mysql.COLUMNS} FROM t",
        "ALTER TABLE own ADD PRIMARY KEY (place)",
    ),
    "mysql": (
        f"CREATE TABLE own (place BIGINT AUTO_INCREMENT PRIMARY KEY) AS SELECT {mysql.COLUMNS} FROM t ORDER BY RAND()",
    ),
}
SPLITS = {"no split": None, "a tenth apart": Split("random", "y", 0.1)}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    lines = _measure_file(folder, rounds, rows * ROWS_OF_FILE)
    for name, servers in (("postgresql", postgresql_server), ("mysql", mariadb)):
        place = folder / name
        place.mkdir()
        if not servers.is_installed():
            lines.append(Row(f"pinning: {name}", servers.MISSING))
            continue
        with servers.running(place) as server:
            url = server.url(server.database())
            lines += _measure_server(name, url, place, rounds, rows // 4 if name == "mysql" else rows)
    return lines


def _measure_server(name: str, url: str, folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure both ways to pin the rows of a server, and reads of the same table."""
    with connect(url) as source:
        source.stage("t", "given", 0, 0, table_of(rows).to_reader())
        source.commit("t", "given", 1)
    in_server, in_file = f"pinning: {name}, in the server", f"pinning: {name}, in a file"
    peers: dict[str, Callable[[], object]] = {"connectorx": lambda: mysql.read_by_connectorx(url)}
    if name == "postgresql":
        peers["ADBC"] = lambda: _read_by_adbc(url)
    own = partial(_copy_in_server, url, OWN_COPY[name])
    ours = {in_server: url, in_file: f"{url}?pin=file"}
    ways = {way: partial(_pin, place, folder / "pinned") for way, place in ours.items()}
    measured = _measure_in_turns({**ways, **peers, _OWN: own}, max(rounds, 3))
    seconds = {way: [times.seconds for times in rounds_of_way] for way, rounds_of_way in measured.items()}
    lines: list[Row] = []
    for way in ours:
        rate = median(rows / spent for spent in seconds[way])
        least = LEAST_IN_SERVER if way == in_server else None
        lines.append(Row(f"{way}, {rows:,} rows", f"{rate:,.0f} rows/s", value=rate, least=least))
        lines += [
            Row(
                f"… of the speed of a read with {peer}",
                f"{rows / median(seconds[peer]):,.0f} rows/s",
                [read / spent for read, spent in zip(seconds[peer], seconds[way], strict=True)],
            )
            for peer in peers
        ]
        lines += [
            Row(
                f"… of the speed of {_OWN}",
                f"{rows / median(seconds[_OWN]):,.0f} rows/s",
                [copy / spent for copy, spent in zip(seconds[_OWN], seconds[way], strict=True)],
            ),
            Row(
                "… of its processor time",
                f"{median(times.processor for times in measured[_OWN]):.2f} s",
                [
                    spent.processor / copy.processor
                    for copy, spent in zip(measured[_OWN], measured[way], strict=True)
                ],
            ),
        ]
    return lines


def _copy_in_server(url: str, statements: Sequence[str]) -> None:
    with connect(url) as source:
        for statement in (*statements, "DROP TABLE own"):
            source.execute(statement)


def _pin(url: str, folder: Path) -> None:
    with connect(url) as source:
        pinned = source.pin(f"SELECT {mysql.COLUMNS} FROM t", folder, seed=1, shuffle=True)
        source.unpin(pinned, folder)


def _read_by_adbc(url: str) -> None:
    with closing(postgresql.connect_adbc(url)) as driver, closing(driver.cursor()) as cursor:
        cursor.execute(f"SELECT {mysql.COLUMNS} FROM t")
        mysql.drain(cursor.fetch_record_batch())


def _measure_file(folder: Path, rounds: int, rows: int) -> list[Row]:
    file = folder / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {COLUMNS} FROM range({rows})) TO '{file}' (FORMAT parquet)")
    lines: list[Row] = []
    for name in SPLITS:
        measured = [_round(file, name, folder / "pinned") for _ in range(max(rounds, 3))]
        rate = median(rows / seconds for seconds, _, _ in measured)
        memory = median(most / rows for _, _, most in measured)
        lines += [
            Row(f"pinning: {rows:,} rows, {name}", f"{rate:,.0f} rows/s", value=rate, least=1e6),
            Row("… processor time of reads by DuckDB", "", [ratio for _, ratio, _ in measured], most=12),
            Row("… memory beyond the rows", f"{memory:.0f} bytes a row", value=memory, most=60),
        ]
    return lines


def _round(file: Path, name: str, folder: Path) -> tuple[float, float, float]:
    """Return seconds, the ratio of processor times, and bytes of memory, of another process."""
    command = [sys.executable, "-m", "benchmarks.pinning", str(file), name, str(folder)]
    seconds, ratio, most = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return seconds, ratio, most


class _Times(NamedTuple):
    """Seconds of some work, and of processors: of this process and all below it, servers too."""

    seconds: float
    processor: float


def _measure_times(work: Callable[[], object]) -> _Times:
    began, before = time.monotonic(), _processor_seconds()
    work()
    return _Times(time.monotonic() - began, _processor_seconds() - before)


def _measure_in_turns(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[_Times]]:
    times: dict[str, list[_Times]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, do in ways.items():
            times[way].append(_measure_times(do))
    return times


def _processor_seconds() -> float:
    """Return what this process and all below it have spent, with those that have ended."""
    ticks, children = {}, defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # of a process that has ended
            facts = stat.read_text().rpartition(")")[2].split()
            number = int(stat.parent.name)
            children[int(facts[1])].append(number)
            ticks[number] = sum(map(int, facts[11:15]))
    below = [os.getpid()]
    for number in below:
        below += children[number]
    return sum(ticks.get(number, 0) for number in below) / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    """Return the bytes that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> None:
    file, name, folder = sys.argv[1:]
    with duckdb.connect() as connection:
        values = "hash(id, price, quantity, city, y)"
        _, read = _measure_times(
            lambda: connection.execute(f"SELECT bit_xor({values}) FROM '{file}'").fetchall()
        )
    with connect(file) as source:
        before = _memory()
        query, rows = "SELECT * FROM rows", Path(folder)
        seconds, ours = _measure_times(
            lambda: source.pin(query, rows, seed=1, shuffle=True, split=SPLITS[name])
        )
        most = _memory() - before - (rows / "rows.arrow").stat().st_size
    print(json.dumps([seconds, ours / read, most]))


if __name__ == "__main__":
    main()
