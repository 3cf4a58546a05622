"""Texts of warehouses, and a driver of the DB-API; `quarry` of the conformance tests has one of ADBC."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from edl.data import connect
from edl.data.source import UnreachableError
from edl.data.url import SourceURL
from edl.errors import SourceError
from edl.extensions.warehouses import drivers
from edl.extensions.warehouses.errors import Asked, translate_message
from edl.extensions.warehouses.results import WarehouseResults
from edl.extensions.warehouses.source import Parts, WarehouseSource
from edl.extensions.warehouses.sql import BIGQUERY, STANDARD, DialectTexts
from edl.jobs.job_folder import state_folder
from tests.fixtures.databases.quarry import PitSource

TEXTS = {
    "bigquery": DialectTexts("bigquery", "`", BIGQUERY, {}),
    "trino": DialectTexts("trino", '"', STANDARD, {}),
}


@pytest.fixture
def pit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PitSource]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with PitSource.connect(SourceURL("pit", str(tmp_path / "pit.duckdb")), create=True) as source:
        yield source


@pytest.mark.parametrize(
    ("value", "trino", "bigquery"),
    [
        (None, "NULL", "NULL"),
        (float("nan"), "NULL", "NULL"),
        (True, "true", "true"),
        (-3, "-3", "-3"),
        (0.1, "CAST('0.1' AS DOUBLE)", "CAST('0.1' AS FLOAT64)"),
        (Decimal("1.50"), "1.50", "1.50"),
        (dt.date(2024, 1, 2), "CAST('2024-01-02' AS DATE)", "CAST('2024-01-02' AS DATE)"),
        ("it's \\ \n", "'it''s \\ \n'", "'it\\'s \\\\ \\n'"),
    ],
)
def test_a_value_is_a_literal_of_the_dialect(value: object, trino: str, bigquery: str) -> None:
    assert TEXTS["trino"].literal(value) == trino
    assert TEXTS["bigquery"].literal(value) == bigquery


def test_names_hold_any_quotation_mark() -> None:
    assert TEXTS["trino"].name("a.b", 'c"d`') == '"a.b"."c""d`"'
    assert TEXTS["bigquery"].name("a.b", 'c"d`\\') == '`a.b`.`c"d\\`\\\\`'


def test_a_type_without_a_literal_is_an_error() -> None:
    with pytest.raises(SourceError, match="cannot be given values of the type list"):
        TEXTS["trino"].literals(pa.array([[1]]))


def test_rows_of_the_db_api_are_stored_and_come_back(pit: PitSource) -> None:
    given = pa.table({"n": [1, None], "x": [0.5, None], "t": ["it's", None]}).select(["n", "x", "t"])
    pit.stage("result", "job", 0, 0, given.to_reader())
    assert pit.commit("result", "job", 1) == 2
    assert pit.stream("SELECT * FROM result").read_all().equals(given)
    assert pit.tables() == ["result"]
    pit.execute("INSERT INTO result VALUES (?, ?, ?)", (7, None, "?"))
    assert pit.execute("SELECT t FROM result WHERE n = ?", (7,)).read_all().to_pylist() == [{"t": "?"}]  # type: ignore[union-attr]


def test_long_rows_are_inserted_by_several_statements(
    pit: PitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "LONGEST", 20)
    texts = ["x" * 50, "a", "ü" * 12, "b", "c", "d" * 20]
    parts = [texts[:2], texts[2:5], texts[5:]]
    assert [*drivers.texts_of_statements(pa.array(texts))] == parts
    given = pa.table({"t": texts})
    pit.stage("result", "job", 0, 0, given.to_reader())
    assert pit.commit("result", "job", 1) == len(texts)
    assert pit.stream("SELECT * FROM result").read_all().equals(given)


def test_records_of_commits_are_kept_for_a_day(pit: PitSource) -> None:
    pit.stage("result", "job", 0, 0, [pa.record_batch({"n": [1]})])
    pit.commit("result", "job", 1)
    [record] = (state_folder() / "results").rglob("result.json")
    (damaged := record.parent.with_name("damaged")).mkdir()
    (damaged / record.name).touch()
    assert pit.sweep(lambda job: False) == 0
    assert record.is_file()
    os.utime(record, (0, 0))
    assert pit.sweep(lambda job: False) == 0
    assert not record.parent.exists()
    assert pit.tables() == ["result"]


def test_a_table_that_a_dying_commit_left_is_swept(pit: PitSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise UnreachableError("the connection is gone")

    pit.execute("CREATE TABLE result (n BIGINT)")
    pit.stage("result", "job", 0, 0, [pa.record_batch({"n": [1]})], append=True)
    with monkeypatch.context() as patched:
        patched.setattr(WarehouseResults, "_end", dies)
        with pytest.raises(UnreachableError):
            pit.commit("result", "job", 1, append=True)
    everything = "SELECT table_name FROM information_schema.tables"
    assert pit.stream(everything).read_all().num_rows == 2
    assert pit.sweep(lambda job: True) == 1
    assert pit.stream(everything).read_all().num_rows == 1


def test_a_value_that_is_not_of_its_columns_type_is_an_error_to_jobs_and_shown_as_text(
    pit: PitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pit, "arrow_type", lambda column: pa.int64())
    with pytest.raises(SourceError, match="column t has a value that is no int64"):
        pit.rows("SELECT 'x' AS t").read_all()  # type: ignore[union-attr]
    assert pit.execute("SELECT 'x' AS t").read_all().to_pylist() == [{"t": "x"}]  # type: ignore[union-attr]


def test_a_swap_that_ended_between_its_renames_is_undone_by_an_abort(
    pit: PitSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    pit.stage("result", "one", 0, 0, [pa.record_batch({"n": [1]})])
    pit.commit("result", "one", 1)
    pit.stage("result", "two", 0, 0, [pa.record_batch({"n": [2]})])

    def half(new: Parts, target: Parts, old: Parts, *, exists: bool) -> list[str]:
        pit.run([pit.rename(target, old)])
        raise KeyboardInterrupt

    monkeypatch.setattr(pit, "swap", half)
    with pytest.raises(KeyboardInterrupt):
        pit.commit("result", "two", 1)
    assert pit.tables() == []
    pit.abort("result", "two")
    assert pit.stream("SELECT n FROM result").read_all().to_pylist() == [{"n": 1}]


# Statements ----------------------------------------------------------------------------------------------------

SOURCES = {
    "clickhouse": "ClickHouseSource",
    "hive": "HiveSource",
    "redshift": "RedshiftSource",
    "snowflake": "SnowflakeSource",
    "trino": "TrinoSource",
    "bigquery": "BigQuerySource",
}
MADE = pa.schema(
    [
        ("whole", pa.int64()),
        ("small", pa.int8()),
        ("large", pa.uint64()),
        ("x", pa.float64()),
        ("near", pa.float32()),
        ("exact", pa.decimal128(10, 2)),
        ("yes", pa.bool_()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("clock", pa.time64("us")),
        ("at", pa.timestamp("us")),
        ("moment", pa.timestamp("us", "UTC")),
        ("numbers", pa.list_(pa.float64())),
        ("Größe \\ 'x'", pa.string()),
    ]
)


def sent(name: str) -> list[str]:
    """Return the statements that a source sends, without a connection."""
    base = getattr(importlib.import_module(f"edl.extensions.warehouses.{name}"), SOURCES[name])
    found: list[str] = []

    class Recording(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            WarehouseSource.__init__(self, f"{name}://host/shop")
            self.driver_errors = ()

        def rows(self, sql: str) -> pa.RecordBatchReader:
            found.append(sql)
            return pa.table({"name": ["a"], "type": ["DateTime"]}).to_reader()

        def append(self, parts: tuple[str, ...], batches: pa.RecordBatchReader) -> None:
            assert batches.schema.names[0] in ("whole", "WHOLE")

    source = Recording()
    target, new, old = (source.place(f"shop.{table}") for table in ("guesses", "new", "old"))
    if name != "bigquery":  # which asks by other requests
        source.schema("SELECT a FROM visits")
        source.tables()
        source.databases()
        source.existing(target)
        source.existing(source.place("guesses"))
    source.make(new, "made by sqlflow-edl, job it's", MADE.empty_table().to_reader())
    for exists in (False, True):
        source.run(source.swap(new, target, old, exists=exists))
    source.run([source.rename(old, target)])
    source.drop(old)
    source.execute(
        "SELECT a FROM visits WHERE day > ? AND text = ? AND x < ?", (dt.date(2024, 1, 2), "it's \\", 0.5)
    )
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_the_statements_of_a_warehouse_are_sqlglots(name: str, golden: Callable[[str, bytes], None]) -> None:
    """sqlglot reads all of them in the warehouse's dialect, but for those that no dialect of it has."""
    found = sent(name)
    golden(f"warehouses/{name}.sql", "".join(f"{statement};\n" for statement in found).encode())
    unread = []
    for statement in found:
        with contextlib.suppress(ParseError):
            if not isinstance(sqlglot.parse_one(statement, read=name), exp.Command):
                continue
        unread.append(statement.split(" ")[0])
    assert set(unread) == {"clickhouse": {"CREATE", "EXCHANGE", "RENAME"}, "hive": {"SHOW"}}.get(name, set())


@pytest.mark.parametrize(
    ("url", "package", "message"),
    [
        (
            "snowflake://me@acme-shop/SHOP",
            "adbc_driver_snowflake.dbapi",
            "Snowflake needs adbc-driver-snowflake",
        ),
        ("snowflake://me@acme-shop/SHOP?auth=key", "adbc_driver_snowflake.dbapi", "auth is 'key'"),
        ("bigquery://acme/shop", "google.cloud.bigquery", "BigQuery needs google-cloud-bigquery"),
        ("trino://me@host/a/b", "trino", "Trino needs trino"),
    ],
)
def test_a_missing_driver_and_a_wrong_option_are_told(
    url: str, package: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    parent, _, name = package.rpartition(".")
    if parent in sys.modules:  # by another test
        monkeypatch.delattr(sys.modules[parent], name, raising=False)
    with pytest.raises(SourceError, match=message):
        connect(url)


@pytest.mark.parametrize(
    ("name", "message", "query", "found"),
    [
        (
            "snowflake",
            "002003 (42S02): SQL compilation error:\nObject 'IRS' does not exist or not authorized.",
            "SELECT * FROM irs",
            ("Object 'IRS' does not exist or not authorized", "irs"),
        ),
        (
            "snowflake",
            "000904 (42000): SQL compilation error: error line 2 at position 7\ninvalid identifier 'NN'",
            "SELECT nn FROM iris",
            ("invalid identifier 'NN'", "nn"),
        ),
        (
            "bigquery",
            "400 Unrecognized name: nn; Did you mean n? at [2:3]; reason: invalidQuery",
            "SELECT 1,\n  nn FROM iris",
            ("Unrecognized name: nn", "nn"),
        ),
        (
            "bigquery",
            '400 Syntax error: Unexpected identifier "FORM" at [1:10]',
            "SELECT n FORM iris",
            ('Syntax error: Unexpected identifier "FORM"', "FORM"),
        ),
        (
            "bigquery",
            "404 Not found: Table acme:shop.irs was not found in location EU",
            "SELECT * FROM irs",
            ("Not found: Table acme:shop.irs", "irs"),
        ),
    ],
)
def test_messages_of_a_warehouse_have_their_place(
    name: str, message: str, query: str, found: tuple[str, str]
) -> None:
    base = getattr(importlib.import_module(f"edl.extensions.warehouses.{name}"), SOURCES[name])
    asked = Asked(query, query, list, list)
    error = translate_message(message, base.patterns, base.lexicon, asked)
    assert error.message == found[0]
    assert error.span is not None
    assert query[error.span.start : error.span.end] == found[1]
