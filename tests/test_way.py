"""The way of a TRAIN statement through the compiler is short: few calls, few modules, few returns to a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sqlflow_edl.session.session import Session
from tests.way import COMPILER, count_calls, follow_calls

TABLE = """CREATE TABLE {} AS SELECT 20 + i % 45 AS {}, ['sales', 'support'][1 + i % 2] AS {},
    (i * 7) % 100 / 3.0 AS {}, i % 3 = 0 AS {} FROM range(1000) AS rows (i)"""
SEARCH = "SELECT * FROM {} LABEL {} INTO m"
TRAIN = "SELECT * FROM {} TO TRAIN DNNClassifier LABEL {} INTO m"
# Bounds of the figures. Lower one when its figure falls.
MOST_CALLS = {"sqlflow_edl": {SEARCH: 14_900, TRAIN: 1_700}, "edl": {SEARCH: 5_800, TRAIN: 820}}
MOST_STAYS, MOST_MODULES, MOST_RETURNS, MOST_NAMES = 305, 73, 232, 325


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as session:
        session.run(TABLE.format("employee", "age", "department", "score", "churned"))
        session.run(TABLE.format("visit", "minutes", "page", "price", "bought"))
        yield session


def calls_of(session: Session, statement: str) -> Counter[str]:
    """The calls to compile the statement, after one like it over another table: then all modules are there."""
    session.compile(statement.format("visit", "bought"))
    return count_calls(lambda: session.compile(statement.format("employee", "churned")), COMPILER, "edl")


@pytest.mark.parametrize("statement", [SEARCH, TRAIN], ids=["search", "train"])
def test_compiling_a_statement_takes_few_calls(session: Session, statement: str) -> None:
    calls = calls_of(session, statement)
    for package, bounds in MOST_CALLS.items():
        of_package = Counter({name: n for name, n in calls.items() if name.startswith(f"{package}.")})
        most = "\n".join(f"{number} {name}" for name, number in of_package.most_common(30))
        assert of_package.total() <= bounds[statement], most


def test_a_reader_visits_few_modules(repository: Path) -> None:
    way = follow_calls(repository, "sqlflow_edl.session.compiler", "Compiler", "compile")
    assert len(way.stays) <= MOST_STAYS
    assert way.modules <= MOST_MODULES
    assert way.returns <= MOST_RETURNS
    assert way.names <= MOST_NAMES


def test_checking_a_program_takes_calls_in_proportion_to_its_statements(session: Session) -> None:
    statement = TRAIN.format("employee", "churned").replace("INTO m", "INTO m{}")

    def check(count: int) -> None:
        session.program("; ".join(statement.format(number) for number in range(count)))

    check(2)  # then all modules are there
    few, many = (count_calls(partial(check, count), COMPILER, "edl").total() for count in (20, 40))
    assert many < 2.1 * few
