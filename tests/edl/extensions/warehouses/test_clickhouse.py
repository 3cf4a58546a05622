"""ClickHouse through its own client: conversations that were recorded with chdb, ClickHouse in process, chdb itself.

`--update-golden` records them, where chdb is (`tests/clickhouse/engine.py`).
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.source import UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.clickhouse import ClickHouseSource
from edl.installation import install_extras


@pytest.fixture
def source(clickhouse: str) -> Iterator[Source]:
    with connect(clickhouse) as opened:
        yield opened


def rows(source: Source, query: str) -> list[dict[str, Any]]:
    return source.stream(query).read_all().to_pylist()


def stored(source: Source, target: str, job: str, table: pa.Table) -> int:
    source.stage(target, job, 0, 0, table.to_reader())
    return source.commit(target, job, 1)


def test_a_result_takes_the_place_of_the_one_before_and_of_no_other_table(source: Source) -> None:
    source.stage("result", "job", 1, 0, [pa.record_batch({"a": [3], "b": ["z\n'\\"]})])
    source.stage("result", "job", 0, 0, [pa.record_batch({"a": [1, 2], "b": ["x", None]})])
    assert source.tables() == []
    assert [source.commit("result", "job", 2), source.commit("result", "job", 2)] == [3, 3]
    found = rows(source, "SELECT * FROM result ORDER BY a")
    assert found == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z\n'\\"}]
    assert stored(source, "result", "other", pa.table({"a": [7], 'é " \\ `': [b"\x00'".decode()]})) == 1
    assert rows(source, "SELECT * FROM result") == [{"a": 7, 'é " \\ `': "\x00'"}]
    assert source.commit("result", "job", 2) == 3
    source.execute("CREATE TABLE mine (a Int8) ENGINE = MergeTree ORDER BY a")
    source.execute("CREATE VIEW seen AS SELECT 1 AS a")
    for target, words in (("mine", "not made by sqlflow-edl"), ("seen", "is a view"), ("a.b.c", "3 parts")):
        with pytest.raises(SourceError, match=words):
            source.check_target(target)
    assert source.tables() == ["mine", "result", "seen"]
    assert source.databases() != []


def test_columns_of_every_type_come_and_go(source: Source) -> None:
    source.execute(
        "CREATE TABLE given (e Enum8('a, b' = 1), d DateTime, z DateTime64(3, 'Asia/Tokyo'), u UUID, f FixedString(3),"
        " l LowCardinality(Nullable(String)), at Array(DateTime('UTC')), i IPv4, j JSON, m Map(String, UInt8),"
        " n Nullable(Decimal(9, 2)), day Date) ENGINE = MergeTree ORDER BY tuple()"
    )
    source.execute(
        "INSERT INTO given VALUES ('a, b', '2024-01-02 03:04:05', '2024-01-02 03:04:05.678',"
        " '61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'ab', NULL, ['2024-01-02 03:04:05'], '1.2.3.4', '{\"k\": 1}',"
        " {'x': 2}, 1.25, '2024-01-02')"
    )
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    tokyo = dt.datetime(2024, 1, 1, 18, 4, 5, 678_000, tzinfo=dt.UTC)
    [found] = rows(source, "SELECT * FROM given")
    assert list(found.values()) == [
        "a, b", at, tokyo, "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "ab", None, [at], "1.2.3.4",
        found["j"], [("x", 2)], found["n"], dt.date(2024, 1, 2),
    ]  # fmt: skip
    assert (found["j"].replace(" ", ""), str(found["n"])) == ('{"k":1}', "1.25")
    assert dict(source.column_types("given"))["n"] == "Nullable(Decimal(9, 2))"
    made = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "large": pa.array([2**64 - 1, None], pa.uint64()),
            "x": pa.array([1.5, None], pa.float32()),
            "yes": [True, None],
            "day": pa.array([-1, None], pa.date32()),
            "clock": pa.array([1, None], pa.time64("us")),
            "at": pa.array([1, None], pa.timestamp("us", "UTC")),
            "numbers": [[1.0, None], []],
            "text": ["größe", None],
        }
    )
    assert stored(source, "typed", "job", made) == 2
    assert source.stream("SELECT * FROM typed").read_all().equals(made)
    for query, words in (
        ("SELECT toInt128(1) AS wide", "column wide is of the type Int128"),
        ("SELECT unhex('ff') AS raw", "column raw holds bytes"),
    ):
        with pytest.raises(SourceError, match=words):
            source.stream(query).read_all()


ERRORS = [
    ("SELECT * FROM irs", "Unknown table expression identifier 'irs'", "irs", "did you mean iris?"),
    (
        "SELECT 'nn é' AS a,\n  nn FROM iris",
        "Unknown expression identifier `nn`",
        "nn FROM",
        "did you mean n?",
    ),
    ("SELECT flor(n) FROM iris", "Function with name `flor` does not exist", "flor", "did you mean floor?"),
    ("SELECT 'é',\n n FROM FROM iris", "syntax error at iris", "iris", None),
    ("SELECT n FROM iris WHERE", "syntax error at WHERE", "WHERE", None),
    ("SELECT n FROM nowhere.iris", "Database nowhere does not exist", "nowhere", None),
    ("WITH w AS (SELECT 1) DELETE FROM iris", "syntax error at DELETE", "DELETE", None),
    ("SELECT 1) LIMIT 0; DROP TABLE iris; SELECT (1", "one statement is expected here", "", None),
    ("DROP TABLE iris", "this statement is not a query, it has no rows", "", "write a SELECT"),
]


def test_errors_have_their_place_and_a_hint(source: Source) -> None:
    source.execute("CREATE TABLE iris (n Int64) ENGINE = MergeTree ORDER BY n")
    for query, message, marked, hint in ERRORS:
        with pytest.raises(SourceError) as caught:
            source.schema(query)
        error = caught.value
        assert error.message.startswith(message)
        assert marked == "" or (error.span and error.span.start) == query.index(marked), query
        assert error.hint == hint
    assert rows(source, "SELECT n FROM iris") == []
    reader = source.stream("SELECT number FROM numbers(200000)", batch_rows=1000)
    reader.read_next_batch()
    source.execute("SELECT 1")
    with pytest.raises(SourceError, match="another statement ran"):
        reader.read_all()


@pytest.mark.soak
def test_equal_rows_are_pinned_as_in_duckdb(source: Source, tmp_path: Path) -> None:
    query = "SELECT {n} AS n, {n} / 3 AS x, 'größe' AS text FROM {rows}"
    given = query.format(n="toInt64(number % 50 - 25)", rows="numbers(900)")
    found = source.pin(given, tmp_path / "a", seed=3, shuffle=True)
    with connect("duckdb:") as duckdb:
        other = duckdb.pin(
            query.format(n="(i % 50 - 25)", rows="range(900) r(i)"), tmp_path / "b", seed=3, shuffle=True
        )
    assert found.digest == other.digest


# Without a server -----------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_unreachable() -> None:
    with pytest.raises(UnreachableError, match=r"ClickHouse at 127.0.0.1:1 cannot be reached: .*refused"):
        connect("clickhouse://me@127.0.0.1:1/shop")


def test_an_unknown_option_is_told_with_the_nearest() -> None:
    with pytest.raises(SourceError, match="have no option secur") as caught:
        connect("clickhouse://me@127.0.0.1:1/shop?secur=1")
    assert caught.value.hint == "did you mean secure?"


def test_a_missing_driver_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clickhouse_connect", None)
    with pytest.raises(SourceError, match="needs clickhouse-connect") as caught:
        connect("clickhouse://me@127.0.0.1:1/shop")
    assert caught.value.hint == install_extras("clickhouse")


class Client:
    """Client of a server that never answers."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.commands: list[str] = []
        self.command: Callable[[str], None] = self.commands.append

    def raw_stream(self, sql: str, settings: dict[str, str], transport_settings: object) -> None:
        self.ids.append(settings["query_id"])
        raise TimeoutError


def test_an_interruption_kills_the_statement_of_this_source_alone() -> None:
    client: Any = Client()
    source = ClickHouseSource("clickhouse://host/shop", client, (OSError,))
    source.interrupt()
    with pytest.raises(SourceError):
        source.execute("SELECT sleep(3)")
    source.interrupt()
    assert client.commands == [f"KILL QUERY WHERE query_id = '{client.ids[0]}'"]
