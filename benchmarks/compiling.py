"""Duration of the compilation of a statement, and of the start of the command."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import sqlflow_edl
from benchmarks.table import Row
from sqlflow_edl.session.session import Session

STATEMENT = """SELECT age, address, department, income FROM employee
TRAIN DNNRegressor
COLUMN age, vocabularize(department), bucketize(address, 1000),
TARGET income,
WITH hidden_layers=[100, 150, 50], dist_strategy=mirrored, gpus=8
INTO my_first_model"""
TABLE = """CREATE TABLE employee AS SELECT 20 + i % 50 AS age, 'street ' || i % 1000 AS address,
['engineering', 'finance', 'sales'][1 + i % 3] AS department, 1000.0::DOUBLE * i AS income FROM range(6400) AS t(i)"""


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Time the warm compilation of the reference statement over 6,400 rows, without the database's time."""
    with sqlflow_edl.connect("duckdb:") as session:
        for _ in session.run(TABLE):
            pass
        session.compile(STATEMENT)
        both = [(_compile(session), _database(session)) for _ in range(20 * rounds)]
    own = [1000 * (whole - database) for whole, database in both]
    database = 1000 * statistics.median(seconds for _, seconds in both)
    figure = f"{statistics.median(own):.1f} ms besides {database:.1f} ms of database"
    return [Row("statement to program, warm", figure, value=statistics.median(own), most=20)]


def _compile(session: Session) -> float:
    began = time.perf_counter()
    session.compile(STATEMENT)
    return time.perf_counter() - began


def _database(session: Session) -> float:
    select = STATEMENT.partition("\n")[0]
    began = time.perf_counter()
    session.source.schema(select)
    session.source.stream(select).read_all()
    return time.perf_counter() - began


def startup(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Time `sqlflow --help` in a fresh process."""
    seconds = []
    for _ in range(3 * rounds):
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "sqlflow_edl.cli.main", "--help"], stdout=subprocess.DEVNULL, check=True
        )
        seconds.append(time.perf_counter() - began)
    middle = statistics.median(seconds)
    return [Row("sqlflow --help", f"{middle:.2f} s", value=middle, most=0.3)]
