"""Hive through impyla: conversations that were recorded with Spark's Thrift server, and that server itself.

`--update-golden` records them, where Spark is (`tests/hive/engine.py`).
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.source import UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.errors import Asked, translate_message
from edl.extensions.warehouses.hive import HiveSource

pytest.importorskip("impala", reason="no impyla")


@pytest.fixture
def source(hive: str) -> Iterator[Source]:
    with connect(hive) as opened:
        yield opened


def rows(source: Source, query: str) -> list[dict[str, Any]]:
    return source.stream(query).read_all().to_pylist()


def stored(source: Source, target: str, job: str, table: pa.Table) -> int:
    source.stage(target, job, 0, 0, table.to_reader())
    return source.commit(target, job, 1)


def test_a_result_takes_the_place_of_the_one_before_and_of_no_other_table(source: Source) -> None:
    assert stored(source, "Result", "job", pa.table({"A": [1, None], "b": ["z\n'\\\"", None]})) == 2
    assert source.commit("Result", "job", 1) == 2
    assert rows(source, "SELECT * FROM result") == [{"a": 1, "b": "z\n'\\\""}, {"a": None, "b": None}]
    assert stored(source, "result", "other", pa.table({"a": [7]})) == 1
    assert rows(source, "WITH r AS (SELECT * FROM result) SELECT a AS `a b`` ;` FROM r;") == [{"a b` ;": 7}]
    source.execute("CREATE TABLE mine (a INT)")
    source.execute("CREATE VIEW seen AS SELECT 1 AS a")
    for target, words in (("mine", "not made by sqlflow-edl"), ("seen", "is a view"), ("a.b.c", "3 parts")):
        with pytest.raises(SourceError, match=words):
            source.check_target(target)
    assert source.tables() == ["mine", "result", "seen"]
    assert "default" in source.databases()


def test_columns_of_every_type_come_and_go(source: Source) -> None:
    made = pa.table(
        {
            "tiny": pa.array([-128, None], pa.int8()),
            "small": pa.array([-32768, None], pa.int16()),
            "n": pa.array([2**31 - 1, None], pa.int32()),
            "big": [-(2**63), None],
            "x": pa.array([0.1, None], pa.float32()),
            "y": [1e-300, float("nan")],
            "money": pa.array([Decimal("-12345678901234567890.0123456789"), None], pa.decimal128(38, 10)),
            "yes": [True, None],
            "day": pa.array([dt.date(1600, 2, 29), None]),
            "at": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 6), None]),
            "text": ["größe \U0001f600", None],
            "zoned": pa.array([dt.datetime(2024, 1, 2), None], pa.timestamp("us", "UTC")),
            "clock": pa.array([dt.time(1, 2, 3), None], pa.time64("us")),
        }
    )
    assert stored(source, "typed", "job", made) == 2
    found = source.stream("SELECT * FROM typed").read_all()
    same = made.column_names[:11]
    assert found.select(same).equals(made.set_column(5, "y", [[1e-300, None]]).select(same))
    assert found.select(["zoned", "clock"]).to_pylist()[0] == {
        "zoned": dt.datetime(2024, 1, 2),
        "clock": "01:02:03.000000",
    }
    assert rows(source, "SELECT CAST('ab' AS BINARY) AS b, NULL AS nothing, CAST('x' AS CHAR(2)) AS c") == [
        {"b": b"ab", "nothing": None, "c": "x"}
    ]
    for query, words in (
        ("SELECT array(1) AS xs", "column xs is of the type ARRAY"),
        ("SELECT INTERVAL 1 DAY AS i", "of a type that impyla does not know"),
    ):
        with pytest.raises(SourceError, match=words):
            source.schema(query)


ERRORS = [
    ("SELECT * FROM irs", "The table or view `irs` cannot be found", "irs", "did you mean iris?"),
    (
        "SELECT 'nn é' AS a,\n  nn FROM iris",
        "with name `nn` cannot be resolved",
        "nn FROM",
        "did you mean n?",
    ),
    ("SELECT flor(n) FROM iris", "Cannot resolve routine `flor`", "flor", None),
    ("SELECT 'é',\n n FROM iris WHERE n n n", "syntax error at n", "n n", None),
    ("WITH w AS (SELECT 1 AS a) SELECT b FROM w", "with name `b` cannot be resolved", "b FROM", None),
    ("DROP TABLE iris", "this statement is not a query, it has no rows", "", "write a SELECT"),
]


def test_errors_have_their_place_and_a_hint(source: Source) -> None:
    source.execute("CREATE TABLE iris (n BIGINT)")
    for query, message, marked, hint in ERRORS:
        with pytest.raises(SourceError) as caught:
            source.stream(query)
        error = caught.value
        assert message in error.message
        assert marked == "" or (error.span and query[error.span.start :].startswith(marked)), error
        assert hint is None or error.hint == hint


@pytest.mark.parametrize(
    ("message", "shown", "marked"),
    [
        ("FAILED: SemanticException [Error 10001]: Line 1:14 Table not found 'irs'", "Table not found 'irs'", "irs"),
        ("SemanticException [Error 10004]: Line 1:7 Invalid table alias or column reference 'nn': (possible",
         "Invalid table alias or column reference 'nn'", "nn"),
        ("FAILED: ParseException line 1:10 cannot recognize input near ','", "syntax error at FROM", "FROM"),
    ],
)  # fmt: skip
def test_messages_of_hive_have_their_place(message: str, shown: str, marked: str) -> None:
    """The messages have the form that Hive is known to use; no Hive was asked."""
    query = "SELECT nn, FROM irs"
    asked = Asked(query, query, list, list)
    text = HiveSource.message(object.__new__(HiveSource), Exception(message))
    error = translate_message(text, HiveSource.patterns, HiveSource.lexicon, asked)
    assert error.message == shown
    assert error.span is not None and query[error.span.start : error.span.end] == marked


def test_what_cannot_be_reached_or_is_not_known_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"Hive at 127\.0\.0\.1:1 cannot be reached"):
        connect("hive://127.0.0.1:1/shop")
    with pytest.raises(SourceError, match="URLs of Hive have no option secur") as caught:
        connect("hive://127.0.0.1:1/shop?secur=true")
    assert "secure" in (caught.value.hint or "")


@pytest.mark.soak
@pytest.mark.parametrize("hive", ["spark"], indirect=True)
def test_a_statement_that_runs_is_stopped(source: Source) -> None:
    slow = "SELECT sum(sqrt(a.id * b.id)) AS s FROM range(9000000) a CROSS JOIN range(9000000) b"
    timer = threading.Timer(0.5, source.interrupt)
    timer.start()
    with pytest.raises(SourceError, match="the statement was interrupted"):
        source.execute(slow)
    timer.join()
    assert rows(source, "SELECT 1 AS a") == [{"a": 1}]


def test_a_session_is_closed_if_its_database_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = mock.MagicMock()
    monkeypatch.setattr("impala.dbapi.connect", lambda **options: opened)
    opened.cursor.return_value.execute_async.side_effect = OSError("there is no such database")
    with pytest.raises(SourceError, match="there is no such database"):
        connect("hive://reader@db.example:10000/nowhere")
    opened.cursor.return_value.close.assert_called_once()
    opened.close.assert_called_once()
