"""Trino's source by the unmodified client, on a double that speaks the protocol in front of DuckDB."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.source import UnreachableError
from edl.errors import SourceError
from tests import trino_server


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with trino_server.running() as found:
        yield found


@pytest.fixture
def source(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with connect(f"trino://me@{host}/memory/default") as opened:
        yield opened
        for table in opened.tables():
            opened.execute(f"DROP TABLE {table}")


@pytest.mark.soak
def test_a_result_takes_the_place_of_the_one_before_and_of_no_other_table(source: Source) -> None:
    source.stage("Result", "one", 0, 0, [pa.record_batch({"a": [1], "t": ["it's \\ ü"]})])
    assert source.commit("Result", "one", 1) == 1
    for job in ("two", "three"):
        source.stage("result", job, 0, 0, [pa.record_batch({"a": [2, None], "t": [None, job]})])
        assert source.commit("result", job, 1) == 2
    assert source.stream("SELECT * FROM result ORDER BY t").read_all().to_pylist() == [
        {"a": None, "t": "three"},
        {"a": 2, "t": None},
    ]
    source.execute("CREATE TABLE mine (a INTEGER)")
    with pytest.raises(SourceError, match="not made by sqlflow-edl"):
        source.check_target("mine")
    assert sorted(source.tables()) == ["mine", "result"]


def test_columns_of_every_type_are_read(source: Source) -> None:
    query = (
        "SELECT true AS yes, CAST(2 AS INTEGER) AS i, CAST(3 AS BIGINT) AS l, CAST(0.5 AS REAL) AS r,"
        " CAST(1.5 AS DOUBLE) AS d, CAST(1.25 AS DECIMAL(9, 2)) AS n, DATE '2024-01-02' AS day,"
        " CAST('10:00:00' AS TIME) AS clock, TIMESTAMP '2024-01-02 03:04:05' AS at, CAST(NULL AS VARCHAR) AS t,"
        " ARRAY[CAST(1 AS BIGINT)] AS numbers"
    )
    found = source.stream(query).read_all()
    at = dt.datetime(2024, 1, 2, 3, 4, 5)
    assert list(found.to_pylist()[0].values()) == [
        True, 2, 3, 0.5, 1.5, Decimal("1.25"), at.date(), dt.time(10), at, None, [1],
    ]  # fmt: skip
    assert found.schema.types[:6] == [
        pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2),
    ]  # fmt: skip
    assert source.schema(query) == found.schema
    assert source.stream("SELECT n FROM UNNEST(SEQUENCE(1, 3000)) AS t(n)").read_all().num_rows == 3000


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("query", "message", "marked", "hint"),
    [
        ("SELECT * FROM irs", "Table 'memory.default.irs' does not exist", "irs", "did you mean iris?"),
        ("SELECT 'nn' AS a,\n  nn FROM iris", "Column 'nn' cannot be resolved", "nn FROM", "did you mean n?"),
        ("SELECT flor(n) FROM iris", "Function 'flor' not registered", "flor", None),
    ],
)
def test_an_error_has_its_place_and_a_hint(
    source: Source, query: str, message: str, marked: str, hint: str | None
) -> None:
    source.execute("CREATE TABLE iris (n INTEGER)")
    with pytest.raises(SourceError) as caught:
        source.schema(query)
    assert caught.value.message == message
    assert (caught.value.span and caught.value.span.start) == query.index(marked)
    assert caught.value.hint == hint


def test_a_url_without_a_schema_or_a_server_is_refused() -> None:
    with pytest.raises(SourceError, match="names no schema"):
        connect("trino://me@127.0.0.1:1/memory")
    with pytest.raises(UnreachableError, match=r"Trino at 127\.0\.0\.1:1 cannot be reached"):
        connect("trino://me@127.0.0.1:1/memory/default")


def test_a_password_goes_by_https_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match=r"Trino at 127\.0\.0\.1:1 .*refused"):
        connect("trino://me:secret@127.0.0.1:1/memory/default?secure=false")
