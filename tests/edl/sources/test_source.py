"""What every source owes its callers, whatever the database."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.data import Source, connect, open_reader
from edl.errors import SourceError
from edl.extensions.warehouses.source import WarehouseSource
from edl.sources.mysql import arrow_driver
from tests.mariadb import Server
from tests.postgresql import Server as PostgreSQL

# MaxCompute has neither transactions nor names of any characters; its texts are tested in test_maxcompute_text.
transactional = pytest.mark.parametrize(
    "url", ["duckdb", "sqlite", "csv", "mysql", "postgres", "granite"], indirect=True
)


def fill(source: Source, name: str, table: pa.Table) -> None:
    source.stage(name, f"job-{name}", 0, 0, table.to_reader())
    source.commit(name, f"job-{name}", 1)


def numbers(count: int) -> pa.Table:
    n = np.arange(count)
    return pa.table(
        {"n": n, "x": n / 3 - 7, "k": [None if i % 7 == 0 else f"k{i % 3}" for i in range(count)]}
    )


def pinned(source: Source, folder: Path, query: str, *, seed: int = 1, shuffle: bool = True) -> pa.Table:
    rows = source.pin(query, folder, seed=seed, shuffle=shuffle)
    reader = open_reader(rows, folder)
    return pa.Table.from_batches(reader.read(0, rows.rows), reader.schema)


def table(source: Source, sql: str, *parameters: object) -> list[dict[str, Any]] | None:
    reader = source.execute(sql, parameters)
    return None if reader is None else reader.read_all().to_pylist()


@pytest.fixture(autouse=True)
def fast_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read short ranges of MySQL by connectorx too; PyMySQL reads the ranges of most other tests."""
    monkeypatch.setattr(arrow_driver, "LEAST_ROWS", 1)


def test_a_source_has_all_that_the_contract_names(any_source: Source) -> None:
    assert [name for name in vars(Source) if not name.startswith("_") and not hasattr(any_source, name)] == []


def test_a_source_names_its_databases(any_source: Source) -> None:
    found = any_source.databases()
    assert found
    assert len(set(found)) == len(found)
    if any_source.dialect == "mysql":
        assert any_source.url.rpartition("/")[2] in found


# others say nothing: the question may be billed, or read files far away
estimating = pytest.mark.parametrize("url", ["duckdb", "sqlite", "csv", "mysql", "postgres"], indirect=True)


@estimating
def test_a_source_estimates_the_rows_of_a_query(any_source: Source) -> None:
    fill(any_source, "t", numbers(1000))
    found = any_source.estimate_rows("SELECT n, x FROM t;")
    assert found is not None
    assert (found.rows, found.size) == (1000, pytest.approx(16_000, rel=0.05))
    fewer = any_source.estimate_rows("SELECT n, x FROM t WHERE n < 500")
    assert fewer is not None
    assert fewer.rows == pytest.approx(500, rel=0.1)


@estimating
def test_an_estimate_of_a_query_without_rows_has_none(any_source: Source) -> None:
    fill(any_source, "t", numbers(10))
    found = any_source.estimate_rows("SELECT * FROM t WHERE 1 = 0")
    assert found is not None
    assert found.rows <= 1  # PostgreSQL expects one row at least


@estimating
def test_an_estimate_leaves_a_transaction_as_it_is(any_source: Source) -> None:
    fill(any_source, "t", numbers(10))
    with any_source.transaction():
        any_source.execute("INSERT INTO t (n) VALUES (10)")
        any_source.estimate_rows("SELECT * FROM t")
        assert table(any_source, "SELECT count(*) AS n FROM t") == [{"n": 11}]
    assert table(any_source, "SELECT count(*) AS n FROM t") == [{"n": 11}]


TYPES = {
    "duckdb": [("n", "BIGINT"), ("x", "DOUBLE"), ("k", "VARCHAR")],
    "sqlite": [("n", "INTEGER"), ("x", "REAL"), ("k", "TEXT")],
    "mysql": [("n", "bigint(20)"), ("x", "double"), ("k", "varchar(64)")],
    "postgres": [("n", "bigint"), ("x", "double precision"), ("k", "text")],
    "maxcompute": [("n", "BIGINT"), ("x", "DOUBLE"), ("k", "STRING")],
}


def test_columns_have_the_types_of_the_database(any_source: Source) -> None:
    fill(any_source, "typed", numbers(3))
    assert any_source.column_types("typed") == TYPES[any_source.dialect]
    with pytest.raises(SourceError):
        any_source.column_types("typo")


# Rows --------------------------------------------------------------------------------------------------------


@pytest.mark.variants(1)
def test_every_row_is_pinned_once(any_source: Source, tmp_path: Path) -> None:
    for count in (0, 1, 2048, 65_537):
        fill(any_source, f"t{count}", numbers(count))
        for shuffle in (True, False):
            folder = tmp_path / f"{count}{shuffle}"
            found = pinned(any_source, folder, f"SELECT n FROM t{count}", shuffle=shuffle)["n"].to_pylist()
            assert sorted(found) == list(range(count))
            assert (found == list(range(count))) is (not shuffle or count < 2)
            files = [path.name for path in folder.iterdir()]
            in_a_server = any_source.dialect in ("mysql", "postgres", "maxcompute")
            assert files == ([] if in_a_server else ["rows.arrow"])


@pytest.mark.soak
def test_without_shuffling_the_querys_own_order_stays(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", numbers(70_000))
    found = pinned(any_source, tmp_path, "SELECT n FROM t ORDER BY n DESC", shuffle=False)
    assert found["n"].to_pylist() == list(range(69_999, -1, -1))


@pytest.mark.soak
def test_equal_rows_have_one_order_whatever_the_source(
    tmp_path: Path, mariadb: Server, postgresql: PostgreSQL
) -> None:
    """Negative numbers, doubles that differ in their last digits, NULLs, texts, dates and rows that are there twice."""
    n = 3000
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 40) for i in range(n)]
    rows = pa.table(
        {
            "small": pa.array([i % 50 - 25 for i in range(n)], pa.int32()),
            "large": [(-1) ** i * 2**40 * (i % 9) for i in range(n)],
            "x": [None if i % 11 == 0 else 1 + (i % 100) * 1e-15 for i in range(n)],
            "text": [f"größe {i % 4}" for i in range(n)],
            "yes": [i % 2 == 0 for i in range(n)],
            "day": days,
            "at": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=i % 30) for i in range(n)],
            "clock": [dt.time(i % 24, i % 60) for i in range(n)],
        }
    )
    found = []
    for number, url in enumerate(("duckdb:", "sqlite:", mariadb.url(), postgresql.url())):
        with connect(url) as source:
            mixed = rows.take(np.random.default_rng(number).permutation(n))
            fill(source, "t", mixed)
            found.append(pinned(source, tmp_path / str(number), "SELECT * FROM t", seed=3))
    widened = found[0].cast(found[1].schema)
    assert widened.equals(found[1])
    assert widened.equals(found[2].cast(found[1].schema))
    assert widened.equals(found[3].cast(found[1].schema))
    assert widened["small"].to_pylist() != rows["small"].to_pylist()


@pytest.mark.soak
def test_another_seed_is_another_order(any_source: Source, tmp_path: Path) -> None:
    fill(any_source, "t", numbers(500))
    orders = [
        tuple(pinned(any_source, tmp_path, "SELECT n FROM t", seed=s)["n"].to_pylist()) for s in (0, 1, -1)
    ]
    assert len(set(orders)) == 3


@pytest.mark.soak
def test_a_stream_has_batches_of_the_size_asked_for(any_source: Source) -> None:
    fill(any_source, "t", numbers(5000))
    sizes = [batch.num_rows for batch in any_source.stream("SELECT * FROM t", batch_rows=2000)]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2048


@pytest.mark.variants(1)
def test_a_statement_ends_an_unread_result_and_reading_on_says_so(any_source: Source) -> None:
    fill(any_source, "t", numbers(200_000))
    reader = any_source.stream("SELECT * FROM t", batch_rows=1000)
    assert reader.read_next_batch().num_rows > 0
    any_source.execute("CREATE TABLE other (a INT)")
    with pytest.raises(SourceError, match="another statement ran"):
        reader.read_all()


LONGEST = {"mysql": 64, "postgres": 63}  # letters of a name
HOSTILE = (
    'x"); drop table t; --',
    "a.b",
    "größe 表",
    "n" * 300,
    "select",
    "near",
    "NTH",
    "'",
    "\\",
    "%s ?",
    "a:1",
)


@transactional
@pytest.mark.parametrize("names", [HOSTILE[::3], HOSTILE[1::3], HOSTILE[2::3]], ids=["1", "2", "3"])
def test_any_column_name_passes_through(any_source: Source, tmp_path: Path, names: tuple[str, ...]) -> None:
    columns = [*(name[: LONGEST.get(any_source.dialect)] for name in names), "a"]
    fill(any_source, "t", pa.table({name: [3, 1, 2] for name in columns}))
    assert any_source.schema("SELECT * FROM t").names == columns
    found = pinned(any_source, tmp_path, "SELECT * FROM t")
    assert [sorted(found[name].to_pylist()) for name in columns] == [[1, 2, 3]] * len(columns)


def test_two_columns_of_one_name_are_refused_not_renamed(any_source: Source) -> None:
    for query in ("SELECT 1 AS a, 2 AS A", "SELECT 1 AS a, 2 AS a, 3 AS a_1"):
        for use in (any_source.schema, any_source.stream):
            with pytest.raises(SourceError, match="more than one column named"):
                use(query)
    if any_source.dialect != "maxcompute":  # its client knows no such result
        assert any_source.execute("SELECT 1 AS a, 2 AS a").read_all().column_names == ["a", "a"]  # type: ignore[union-attr]


QUERIES = (
    "SELECT n FROM t",
    "SELECT n FROM t -- the end",
    "SELECT n FROM t /* ; */ ;",
    "\n VALUES (1)\n",
    "WITH q AS (SELECT n FROM t) SELECT n FROM q",
)


@transactional
@pytest.mark.parametrize("queries", [QUERIES[::2], QUERIES[1::2]], ids=["1", "2"])
def test_the_users_text_is_run_as_it_is(any_source: Source, tmp_path: Path, queries: tuple[str, ...]) -> None:
    fill(any_source, "t", pa.table({"n": [1]}))
    for number, query in enumerate(queries):
        assert any_source.schema(query).types[0] in (pa.int32(), pa.int64())
        assert pinned(any_source, tmp_path / str(number), query).num_rows == 1


NO_QUERIES = (
    "",
    "-- nothing",
    ";",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE t",
    "DROP TABLE t",
    "INSERT INTO t VALUES (9)",
    "INSERT INTO t VALUES (9) RETURNING n",
    "DELETE FROM t",
    "EXPLAIN SELECT 1",
    "WITH w AS (SELECT 1) DELETE FROM t",
    "SELECT 1) LIMIT 0; DROP TABLE t; SELECT (1",
    "SELECT 1) DELETE FROM t /*",
    "SELECT ?",
    "PRAGMA user_version = 7",
)


@transactional
@pytest.mark.parametrize("texts", [NO_QUERIES[turn::3] for turn in range(3)], ids=["1", "2", "3"])
def test_a_text_that_is_not_one_query_is_refused_and_nothing_runs(
    any_source: Source, tmp_path: Path, texts: tuple[str, ...]
) -> None:
    fill(any_source, "t", pa.table({"n": [1, 2, 3]}))
    for text in texts:
        for use in (
            any_source.schema,
            any_source.stream,
            lambda query: any_source.pin(query, tmp_path / "rows", seed=1, shuffle=True),
        ):
            with pytest.raises(SourceError):
                use(text)
        assert any_source.stream("SELECT n FROM t").read_all().num_rows == 3, text
    if any_source.dialect == "sqlite":
        assert table(any_source, "PRAGMA user_version") == [{"user_version": 0}]


# Statements --------------------------------------------------------------------------------------------------


@transactional
def test_a_statement_gives_its_rows_or_none(any_source: Source) -> None:
    blob = "BYTEA" if any_source.dialect == "postgres" else "BLOB"
    assert table(any_source, f"CREATE TABLE t (a INTEGER, b {blob})") is None
    assert table(any_source, "INSERT INTO t VALUES (?, ?)", 1, b"\x00x") is None
    assert table(any_source, "UPDATE t SET a = 2") is None
    assert table(any_source, "INSERT INTO t VALUES (3, NULL) RETURNING a") == [{"a": 3}]
    assert table(any_source, "SELECT * FROM t WHERE a = ?", 2) == [{"a": 2, "b": b"\x00x"}]
    assert table(any_source, "SELECT a FROM t WHERE a = 7") == []
    assert table(any_source, "DROP TABLE t") is None


@transactional
def test_a_transaction_commits_at_its_end_and_rolls_back_on_an_error(any_source: Source) -> None:
    any_source.execute("CREATE TABLE t (a INTEGER)")
    with any_source.transaction():
        any_source.execute("INSERT INTO t VALUES (1)")
        with any_source.transaction():
            any_source.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(KeyError), any_source.transaction():
        any_source.execute("INSERT INTO t VALUES (3)")
        raise KeyError
    with pytest.raises(SourceError), any_source.transaction(), any_source.transaction():
        any_source.execute("INSERT INTO t VALUES (4)")
        any_source.execute("INSERT INTO nowhere VALUES (5)")
    assert table(any_source, "SELECT a FROM t ORDER BY a") == [{"a": 1}, {"a": 2}]


@transactional
def test_a_transaction_that_the_user_left_open_is_said_to_be_open(any_source: Source) -> None:
    any_source.execute("BEGIN")
    with pytest.raises(SourceError) as caught, any_source.transaction():
        pass
    assert "COMMIT or ROLLBACK" in str(caught.value.hint)


def test_an_error_of_the_batches_keeps_what_was_staged(any_source: Source) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [2]})
        raise ZeroDivisionError("in the model")

    any_source.stage("t", "job", 0, 0, [pa.record_batch({"a": [1]})])
    with pytest.raises(ZeroDivisionError, match="in the model"):
        any_source.stage("t", "job", 0, 1, failing())
    assert any_source.commit("t", "job", 1) == 1
    assert table(any_source, "SELECT a FROM t") == [{"a": 1}]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("query", "message", "marked", "hint"),
    [
        ("SELECT * FROM irs", "irs", "irs", "did you mean iris?"),
        ("SELECT 'nn é' AS a,\n  nn FROM iris", "nn", "nn FROM", "did you mean n?"),
        ("SELECT flor(n) FROM iris", "flor", "flor", None),
        ("SELEC 1", "SELEC", "SELEC", None),
    ],
)
def test_an_error_of_the_query_has_its_place_and_a_hint(
    any_source: Source, query: str, message: str, marked: str, hint: str | None
) -> None:
    fill(any_source, "iris", numbers(3))
    if isinstance(any_source, WarehouseSource) and marked == "SELEC":  # where the query is in parentheses
        message = marked = "1"
    with pytest.raises(SourceError, match=message) as caught:
        any_source.schema(query)
    assert caught.value.span is not None
    assert caught.value.span.start == query.index(marked)
    assert hint is None or caught.value.hint == hint
    assert not caught.value.message.endswith((".", "!"))


@transactional
def test_an_error_at_the_end_of_the_query_is_not_placed_at_its_beginning(any_source: Source) -> None:
    fill(any_source, "iris", numbers(3))
    query = "SELECT n FROM iris WHERE"
    with pytest.raises(SourceError) as caught:
        any_source.schema(query)
    assert caught.value.span is None or caught.value.span.start >= query.index("WHERE")


@transactional
def test_a_reserved_word_that_is_a_name_is_told_with_its_quotes(any_source: Source) -> None:
    fill(any_source, "shop", pa.table({"n": [1], "order": [2], "group": [3]}))
    fill(any_source, "table", numbers(1))
    quote = "`" if any_source.dialect == "mysql" else '"'
    words = {
        "SELECT order FROM shop": "order",
        "SELECT n, GROUP FROM shop": "GROUP",
        "SELECT n FROM shop WHERE order > 1": "order",
        "SELECT max(group) FROM shop": "group",
        "SELECT n FROM table": "table",
        "SELECT n FROM shop WHERE where > 1": None,  # no column is called so
        "SELECT n FROM shop n n": None,
    }
    for query, word in words.items():
        with pytest.raises(SourceError, match=r"(?i)syntax error") as caught:
            any_source.schema(query)
        wanted = f"{word} is a reserved word; as a name it is written {quote}{word}{quote}"
        assert caught.value.hint == (wanted if word else None), query
