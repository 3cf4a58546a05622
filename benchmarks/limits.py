"""Time that a search takes beyond its limit, on tables that are odd in size or in values.

Each table is searched by the short form with a limit of SECONDS, in a session of its own: alone, and beside LOAD
processes that do nothing but calculate. A run is missed without a model, or if the statement takes MOST_OVER longer
than its limit. `python -m benchmarks.limits [--busy] [TABLE …]` prints the times of the steps as well.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.limit_tables import TABLES, Table
from benchmarks.table import Row
from edl.errors import SQLFlowError
from edl.jobs.events import StatementEvent
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session

SECONDS, MOST_OVER = 20, 2.0
ALL_TABLES = 1_000_000  # rows of other benchmarks, of which fewer mean a quick run
LOAD = 8  # processes of the busy run


@dataclass
class Timed(Silent):
    """Observer that notes when each step begins and each trial ends."""

    def __post_init__(self) -> None:
        self.steps: list[tuple[float, str]] = []

    def doing(self, what: str) -> None:
        self.steps.append((time.monotonic(), what))

    def note(self, text: str) -> None:
        self.steps.append((time.monotonic(), f"note: {text[:110]}"))

    def progress(self, event: StatementEvent) -> None:
        if type(event).__name__ == "TrialEnd":
            self.steps.append((time.monotonic(), f"end of {event.name} {event.error}"))  # type: ignore[union-attr]


@dataclass(frozen=True)
class Search:
    """Search of a table: its seconds, the error that ended it, and its steps with the seconds at which they began."""

    seconds: float
    error: str
    message: str
    steps: list[tuple[float, str]]


def search(table: Table, folder: Path, seconds: float = SECONDS) -> Search:
    """Search the table in a new database and a new session."""
    database = folder / "limits.duckdb"
    database.unlink(missing_ok=True)
    with duckdb.connect(str(database)) as connection:
        table.create(connection)
    observer, error, message = Timed(), "", ""
    with Session(f"duckdb:///{database}", observer=observer) as session:
        [statement] = session.parse(f"SELECT * FROM t LABEL y WITH train.time_limit = {seconds:g} INTO m")
        began = time.monotonic()
        try:
            message = session.execute(statement).message or ""
        except SQLFlowError as failed:
            error = failed.message
        took = time.monotonic() - began
    database.unlink(missing_ok=True)
    return Search(took, error, message, [(moment - began, what) for moment, what in observer.steps])


@contextlib.contextmanager
def load(count: int) -> Iterator[None]:
    """Run processes that calculate, beside what is in the context."""
    command = [sys.executable, "-c", "while True: sum(range(1_000_000))"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    lines, tables = [], TABLES if rows >= ALL_TABLES else TABLES[:2]
    for beside in (0, LOAD):
        with load(beside):
            for table in tables:
                lines.append(_row(table, search(table, folder), beside))
                print(lines[-1].name, lines[-1].figure, file=sys.stderr, flush=True)
    return lines


def _row(table: Table, found: Search, beside: int) -> Row:
    name = f"limits: {table.name}{f', beside {beside} processes' if beside else ''}"
    over = found.seconds - SECONDS if bool(found.error) == table.is_refused else float("inf")
    return Row(name, found.error or f"{found.seconds:.1f} s of {SECONDS} s", value=over, most=MOST_OVER)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.limits", description="Overruns of time limits.")
    parser.add_argument("names", nargs="*", help="beginnings of the names of tables; by default all")
    parser.add_argument("--busy", action="store_true", help=f"beside {LOAD} processes that calculate")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--brief", action="store_true", help="without the steps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, load(LOAD if options.busy else 0):
        for table in TABLES:
            if options.names and not table.name.startswith(tuple(options.names)):
                continue
            found = search(table, Path(folder), options.seconds)
            print(f"| {table.name} | {found.seconds:.1f} s | {found.error or found.message} |", flush=True)
            for second, what in [] if options.brief else found.steps:
                print(f"    {second:6.1f} {what}", flush=True)


if __name__ == "__main__":
    main()
