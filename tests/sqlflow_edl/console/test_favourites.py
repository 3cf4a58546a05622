"""Favourites: statements kept by name. Their parameters become values."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.errors import SemanticError
from sqlflow_edl.console.favourites import arguments, fill_parameters, parameters
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.dialects import dialect_named
from tests.databases import Databases
from tests.sqlflow_edl.console.conftest import Typed


def test_a_favourite_is_kept_and_run_with_other_arguments(typed: Typed, state_folder: Path) -> None:
    typed("/fs big SELECT size FROM flowers WHERE size > $1 AND colour = $2;\r")
    console = typed("/f big 1 red\r", "/f big 0 it's\r", "/f big 0 'it''s'\r", "/f\r")
    assert console.data.split()[:2] == ["size", "2"]
    assert "WHERE size > 1 AND colour = 'red'" in console.words
    assert "a quote is not closed, or stands within a word, in it's" in console.words
    assert "colour = 'it''s'" in console.words
    assert "big   SELECT size FROM flowers WHERE size > $1 AND colour = $2" in console.data
    assert (state_folder / "sqlflow-edl" / "favourites.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.soak
def test_the_last_statement_becomes_a_favourite_and_is_removed(typed: Typed) -> None:
    console = typed("SELECT 7\r", "AS x;\r", "/fs seven\r", "/f seven\r", "/fd seven\r", "/f seven\r")
    assert console.data.split() == ["x", "7", "x", "7"]
    assert "removed seven" in console.words
    assert "there is no favourite seven" in console.words


@pytest.mark.soak
def test_mistakes_are_told(typed: Typed, state_folder: Path) -> None:
    words = typed(
        "/fs a\r",
        "/fs a/b SELECT 1\r",
        "/fs login SELECT 'x' AS password\r",
        "/fs large SELECT $1\r",
        "/f lrage\r",
        "/f large\r",
    ).words
    assert "the name or the statement is missing" in words
    assert "a/b cannot name a favourite" in words
    assert "may contain a password" in words
    assert "did you mean large?" in words
    assert "it takes 1 argument, not 0" in words
    (state_folder / "sqlflow-edl" / "favourites.json").write_text("[]")
    assert "favourites.json is damaged" in typed("/f\r").words


@pytest.mark.parametrize(
    ("statement", "given", "wanted"),
    [
        ("SELECT $1, $2, $1", "1 2.5e3", "SELECT 1, 2.5e3, 1"),
        ("SELECT 1 -$1", "-5", "SELECT 1 - -5"),
        ("SELECT $1, $2, $3", "null '1' 007", "SELECT null, '1', '007'"),
        ("SELECT a$1, '$2' -- $3", "x y", "SELECT a$1, 'y' -- $3"),
        ("SELECT * FROM \"$1\" WHERE a LIKE '%$2%'", '"a b" it\'s', None),
        (
            "SELECT * FROM \"$1\" WHERE a LIKE '%$2%'",
            "'a\"b' 'it''s'",
            "SELECT * FROM \"a\"\"b\" WHERE a LIKE '%it''s%'",
        ),
        ("SELECT $1", '"1\'; DROP TABLE t; --"', "SELECT '1''; DROP TABLE t; --'"),
        ("SELECT $1", "a\\", None),
        ("SELECT $x$ $1 $x$", "a", None),
    ],
)
def test_an_argument_is_a_value_or_refused(statement: str, given: str, wanted: str | None) -> None:
    dialect = dialect_named("duckdb")
    if wanted is None:
        with pytest.raises(SemanticError):
            fill_parameters(statement, arguments(given), dialect)
        return
    if "a$1" in statement:
        assert parameters(statement, dialect) == 2
    assert fill_parameters(statement, arguments(given), dialect) == wanted


@pytest.mark.soak
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "mysql", "postgres", "maxcompute"])
def test_every_database_reads_an_argument_as_it_is_written(
    typed: Typed, databases: Databases, dialect: str
) -> None:
    source = databases.url(dialect)
    Session(source, create=True).close()
    typed("/fs echo SELECT $1 AS a, '<$1>' AS b\r")
    console = typed("/format csv\r", '/f echo "it\'s -- $1"\r', source=source)
    assert console.data.splitlines()[1:] == ["it's -- $1,<it's -- $1>"]
