"""Redshift's source on a server of PostgreSQL, which speaks its protocol and nearly all of the SQL that is sent."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.source import UnreachableError
from edl.errors import SourceError
from tests.postgresql import Server


@pytest.fixture
def source(postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with connect(postgresql.url().replace("postgresql:", "redshift:")) as opened:
        opened.execute("SET standard_conforming_strings = off")  # backslashes escape, as in Redshift
        opened.execute("SET escape_string_warning = off")
        yield opened


def test_a_result_takes_the_place_of_the_one_before_and_of_no_other_table(source: Source) -> None:
    source.stage("Result", "one", 0, 0, [pa.record_batch({"A": [1], "t": ["it's"]})])
    assert source.commit("Result", "one", 1) == 1
    for _ in range(2):
        source.stage("result", "two", 0, 0, [pa.record_batch({"a": [2, None], "t": [None, "it's \\\\ ü"]})])
        assert source.commit("result", "two", 1) == 2
    found = source.stream("SELECT * FROM result ORDER BY a").read_all().to_pylist()
    assert found == [{"a": 2, "t": None}, {"a": None, "t": "it's \\\\ ü"}]
    source.execute("CREATE TABLE mine (a INTEGER)")
    source.execute("CREATE VIEW seen AS SELECT 1 AS a")
    for target, words in (("mine", "not made by sqlflow-edl"), ("seen", "is a view")):
        with pytest.raises(SourceError, match=words):
            source.check_target(target)
    assert source.tables() == ["mine", "result", "seen"]
    assert source.url.rpartition("/")[2] in source.databases()


def test_columns_of_every_type_are_read(source: Source) -> None:
    query = (
        "SELECT true AS yes, 1::smallint AS s, 2::int AS i, 3::bigint AS l, 0.5::real AS r, 1.5::double precision AS d,"
        " 1.25::numeric(9, 2) AS n, 'x'::char(3) AS c, '2024-01-02'::date AS day, '10:00'::time AS clock,"
        " '2024-01-02 03:04:05'::timestamp AS at, '2024-01-02 03:04:05+00'::timestamptz AS z, NULL::text AS t,"
        " avg(2.5::numeric(9, 2)) AS mean"
    )
    [found] = source.stream(query).read_all().to_pylist()
    at = dt.datetime(2024, 1, 2, 3, 4, 5)
    assert list(found.values()) == [
        True, 1, 2, 3, 0.5, 1.5, Decimal("1.25"), "x  ", at.date(), dt.time(10), at,
        at.replace(tzinfo=dt.UTC), None, 2.5,
    ]  # fmt: skip
    assert source.schema(query + " LIMIT 0").field("n").type == pa.decimal128(9, 2)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("query", "message", "marked", "hint"),
    [
        ("SELECT * FROM irs", 'relation "irs" does not exist', "irs", "did you mean iris?"),
        ("SELECT 'nn' AS a,\n  nn FROM iris", 'column "nn" does not exist', "nn FROM", "did you mean n?"),
        ("SELECT flor(n) FROM iris", "function flor\\(integer\\) does not exist", "flor", None),
        ("SELECT n FROM iris WHERE n = = 1", 'syntax error at or near "="', "= = 1", None),
    ],
)
def test_an_error_has_its_place_and_a_hint(
    source: Source, query: str, message: str, marked: str, hint: str | None
) -> None:
    source.execute("CREATE TABLE iris (n INTEGER)")
    with pytest.raises(SourceError, match=message) as caught:
        source.schema(query)
    assert marked == "= = 1" or (caught.value.span and caught.value.span.start) == query.index(marked)
    assert caught.value.hint == hint


def test_a_statement_is_interrupted_and_an_unread_one_ends(source: Source) -> None:
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.02):  # the statement may not have begun yet
            source.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SourceError, match="cancel"):
            source.execute("SELECT pg_sleep(30)")
    finally:
        ended.set()
        thread.join()
    reader = source.stream("SELECT generate_series(1, 200000) AS n", batch_rows=1000)
    reader.read_next_batch()
    assert source.execute("SELECT 1 AS x").read_all().to_pylist() == [{"x": 1}]  # type: ignore[union-attr]
    with pytest.raises(SourceError, match="another statement ran"):
        reader.read_all()


def test_a_failed_swap_leaves_no_transaction_open(source: Source) -> None:
    with pytest.raises(SourceError):
        source.run(["BEGIN", "CREATE TABLE half (a INTEGER)", "DROP TABLE nowhere"])  # type: ignore[attr-defined]
    assert source.tables() == []


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"Redshift at 127.0.0.1:1 cannot be reached"):
        connect("redshift://me@127.0.0.1:1/shop")
