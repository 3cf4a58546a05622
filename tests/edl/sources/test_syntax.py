"""Syntax errors by the parser of each database: errors of the grammar alone, and nothing runs or waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from edl.data import Source, connect
from edl.sources.syntax import PARSERS, syntax_error
from tests.mariadb import Server
from tests.postgresql import Server as PostgreSQL

PARSED = ("duckdb", "sqlite", "mysql", "postgres")
WRONG = [
    "SELEC 1",
    "CREATE TABEL x AS SELECT 1",
    "SELECT a FORM iris",
    "SELECT * FROM iris INTO m LABEL species",
    "SELECT * FROM iris TO FORECAST m",
    "SELECT * FROM iris LABL species INTO m",
    "SELECT * FROM t WEHRE x > 1",
    "SELECT (1",
]
RIGHT = [
    "SELECT * FROM no_such_table WHERE no_such_column = no_such_function(1)",
    "CREATE TABLE made (a INTEGER)",
    "INSERT INTO given VALUES (1, 2, 3)",  # more than it has columns
    "SELECT 1 UNION SELECT 1, 2",
    "DROP TABLE given",
    "DELETE FROM given",
    "BEGIN",
    "COMMIT",
    "EXPLAIN SELECT 1",
    "SELECT a FROM given WHERE a = 'it''s -- no comment' /* one */ -- and another",
]
OF_ONE = {
    "duckdb": [
        "FROM given SELECT a",
        "PRAGMA no_such",
        "LOAD nothing",
        "COPY given TO 'x.csv'",
        "SELECT ?, $b",
    ],
    "sqlite": ["PRAGMA no_such", "ATTACH 'other' AS other", "VACUUM", "EXPLAIN QUERY PLAN SELECT 1"],
    "mysql": [
        "PREPARE s FROM 'SELECT 1'",
        "SET @a = 1",
        "CALL nothing()",
        "LOCK TABLES given READ",
        "SHOW TABLES",
        "KILL 1",
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
    ],
    "postgres": ["DO $$ BEGIN PERFORM 1; END $$", "SELECT $1", "COPY given TO STDOUT", "VACUUM", "SHOW ALL"],
}


@pytest.fixture(scope="module")
def sources(mariadb: Server, postgresql: PostgreSQL) -> Iterator[dict[str, Source]]:
    """An open source of each kind, with one table."""
    urls = {"duckdb": "duckdb:", "sqlite": "sqlite:", "mysql": mariadb.url(), "postgres": postgresql.url()}
    found = {dialect: connect(url) for dialect, url in urls.items()}
    for each in found.values():
        each.execute("CREATE TABLE given (a INTEGER, b INTEGER)")
    yield found
    for each in found.values():
        each.close()


@pytest.mark.parametrize("dialect", PARSED)
def test_what_the_parser_refuses_is_an_error_with_a_place(sources: dict[str, Source], dialect: str) -> None:
    for sql in WRONG:
        error = sources[dialect].syntax_error(sql)
        assert error is not None, sql
        assert error.span is not None, sql


@pytest.mark.parametrize("dialect", PARSED)
def test_what_the_parser_accepts_is_none_and_does_not_run(sources: dict[str, Source], dialect: str) -> None:
    for sql in (*RIGHT, *OF_ONE[dialect]):
        assert sources[dialect].syntax_error(sql) is None, sql
    tables = sources[dialect].tables()
    assert "given" in tables
    assert "made" not in tables


@pytest.mark.parametrize("dialect", PARSERS)
def test_embedded_databases_need_no_source(dialect: str) -> None:
    assert all(syntax_error(sql, dialect) is not None for sql in WRONG)
    assert not any(syntax_error(sql, dialect) for sql in (*RIGHT, *OF_ONE[dialect]))


@pytest.mark.parametrize("dialect", PARSED)
def test_an_open_transaction_of_the_user_stays_as_it_is(sources: dict[str, Source], dialect: str) -> None:
    source = sources[dialect]
    source.execute("BEGIN")
    source.execute("INSERT INTO given VALUES (1, 2)")
    assert source.syntax_error("SELEC 1") is not None
    assert source.syntax_error("SELECT 1") is None
    source.execute("ROLLBACK")
    assert source.stream("SELECT * FROM given").read_all().num_rows == 0


@pytest.mark.parametrize(
    ("dialect", "lock"),
    [("mysql", ["LOCK TABLES given WRITE"]), ("postgres", ["BEGIN", "LOCK TABLE given"])],
)
def test_a_table_that_the_user_has_locked_is_not_waited_for(
    sources: dict[str, Source], dialect: str, lock: list[str]
) -> None:
    source = sources[dialect]
    for sql in lock:
        source.execute(sql)
    assert source.syntax_error("SELECT a FROM given") is None
    assert source.syntax_error("SELECT a FORM given") is not None
    source.execute("UNLOCK TABLES" if dialect == "mysql" else "ROLLBACK")


@pytest.mark.parametrize(
    ("dialect", "setting", "usual", "sql"),
    [
        ("mysql", "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = DEFAULT", 'SELECT 1 AS "a b" FROM "given"'),
        (
            "postgres",
            "SET standard_conforming_strings = off",
            "SET standard_conforming_strings = on",
            r"SELECT 'a\'b'",
        ),
    ],
)
def test_a_session_that_reads_quotes_otherwise_is_left_to_the_database(
    sources: dict[str, Source], dialect: str, setting: str, usual: str, sql: str
) -> None:
    source = sources[dialect]
    assert source.syntax_error(sql) is not None
    source.execute(setting)
    assert source.syntax_error(sql) is None
    source.execute(usual)


@pytest.mark.parametrize("dialect", ["mysql", "postgres"])
def test_a_server_that_gives_no_second_connection_leaves_all_to_run_time(
    request: pytest.FixtureRequest, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server | PostgreSQL = request.getfixturevalue("mariadb" if dialect == "mysql" else "postgresql")
    database = server.database()
    limit: dict[str, Callable[[], object]] = {
        "mysql": lambda: server.run(
            "CREATE OR REPLACE USER single@'127.0.0.1' IDENTIFIED BY 'x' WITH MAX_USER_CONNECTIONS 1",
            f"GRANT ALL ON {database}.* TO single@'127.0.0.1'",
        ),
        "postgres": lambda: server.run(
            "DROP ROLE IF EXISTS single", "CREATE ROLE single LOGIN PASSWORD 'x' CONNECTION LIMIT 1"
        ),
    }
    limit[dialect]()
    with connect(server.url(database, user="single", password="x")) as source:  # noqa: S106
        assert source.syntax_error("SELEC 1") is None
