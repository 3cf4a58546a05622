"""DuckDB as a source: schemas, streams, pinned orders, statements, transactions, errors."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.pinned import open_reader
from edl.errors import SourceError, Span
from edl.sources.duckdb import engine
from edl.sources.duckdb.engine import open_database
from edl.sources.duckdb.source import DuckDBSource
from tests.privileges import run_without_privileges

IRIS = "CREATE TABLE iris AS SELECT range AS n, range / 3 AS x, 'k' || (range % 3) AS k FROM range({rows})"


def rows(source: Source, query: str) -> list[dict[str, Any]]:
    return source.stream(query).read_all().to_pylist()


def pinned_rows(
    source: Source, folder: Path, query: str, *, seed: int = 1, shuffle: bool = True
) -> list[dict[str, Any]]:
    pinned = source.pin(query, folder, seed=seed, shuffle=shuffle)
    reader = open_reader(pinned, folder)
    return pa.Table.from_batches(reader.read(0, pinned.rows), reader.schema).to_pylist()


# Schemas and types -------------------------------------------------------------------------------------------


@pytest.mark.variants(8)
@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("1::TINYINT", pa.int8(), 1),
        ("1::UBIGINT", pa.uint64(), 1),
        ("sum(1)", pa.int64(), 1),
        ("1::UHUGEINT", pa.uint64(), 1),
        ("1.5::FLOAT", pa.float32(), 1.5),
        ("1.5::DOUBLE", pa.float64(), 1.5),
        ("1.50::DECIMAL(10, 2)", pa.decimal128(10, 2), Decimal("1.50")),
        ("true", pa.bool_(), True),
        ("'x'", pa.string(), "x"),
        ("'x'::ENUM('x', 'y')", pa.string(), "x"),
        ("'00000000-0000-0000-0000-000000000001'::UUID", pa.string(), "00000000-0000-0000-0000-000000000001"),
        ("'101'::BIT", pa.string(), "101"),
        ("'[1]'::JSON", pa.string(), "[1]"),
        ("'x'::BLOB", pa.binary(), b"x"),
        ("DATE '2024-02-29'", pa.date32(), dt.date(2024, 2, 29)),
        ("TIME '10:00'", pa.time64("us"), dt.time(10)),
        ("TIMESTAMP '2024-02-29 01:02'", pa.timestamp("us"), dt.datetime(2024, 2, 29, 1, 2)),
        (
            "TIMESTAMPTZ '2024-02-29 01:02+01'",
            pa.timestamp("us", "UTC"),
            dt.datetime(2024, 2, 29, 0, 2, tzinfo=dt.UTC),
        ),
        ("[1, NULL]", pa.list_(pa.int32()), [1, None]),
        ("['x'::ENUM('x')]", pa.list_(pa.string()), ["x"]),
        ("{'a': 1}", pa.struct([("a", pa.int32())]), {"a": 1}),
        ("NULL", pa.null(), None),
        ("sum(1::HUGEINT << 70)", pa.decimal128(38), Decimal(2**70)),
        ("170141183460469231731687303715884105727::HUGEINT", pa.float64(), 2.0**127),
        ("1::BIGNUM", pa.float64(), 1.0),
        ("union_value(k := 1)", pa.string(), "1"),
        ("[union_value(k := 1)]", pa.string(), "[1]"),
        ("{'union': 1}", pa.struct([("union", pa.int32())]), {"union": 1}),
        ("INTERVAL 1 DAY", pa.month_day_nano_interval(), pa.MonthDayNano([0, 1, 0])),
        ("[INTERVAL 1 DAY]", pa.list_(pa.month_day_nano_interval()), [pa.MonthDayNano([0, 1, 0])]),
    ],
)
def test_a_value_of_every_type_arrives_and_so_does_its_null(
    source: Source, tmp_path: Path, value: str, kind: pa.DataType, expected: object
) -> None:
    query = f"SELECT CASE WHEN i = 1 THEN v END AS v, i FROM (SELECT {value} AS v), (VALUES (1), (2)) AS t(i)"
    assert source.schema(query).field("v").type == kind
    read = pinned_rows(source, tmp_path, query, shuffle=True)
    assert {row["i"]: row["v"] for row in read} == {1: expected, 2: None}


def test_the_schema_of_a_query_is_known_without_running_it(source: Source) -> None:
    schema = source.schema(
        "SELECT a.range AS n, error('ran') AS e FROM range(100000000) a, range(100000000) b"
    )
    assert schema.names == ["n", "e"]


@pytest.mark.parametrize("query", ["SELECT 1 AS a, 2 AS A", "SELECT 1 AS a, 2 AS a, 3 AS a_1"])
def test_two_columns_of_one_name_are_refused_not_renamed(source: Source, query: str, tmp_path: Path) -> None:
    for use in (source.schema, source.stream):
        with pytest.raises(SourceError, match="more than one column named"):
            use(query)
    with pytest.raises(SourceError, match="more than one column named"):
        source.pin(query, tmp_path, seed=0, shuffle=True)


def test_a_sum_too_large_for_an_integer_keeps_its_digits(source: Source) -> None:
    total = Decimal(3 * (2**63 - 1))
    assert rows(source, "SELECT sum(9223372036854775807) AS total FROM range(3)") == [{"total": total}]
    with pytest.raises(SourceError, match="INT128") as caught:
        rows(source, "SELECT sum(9223372036854775807)::BIGINT AS total FROM range(3)")
    assert "cast the column to DOUBLE" in str(caught.value.hint)


# What counts as a query --------------------------------------------------------------------------------------


def test_the_users_text_is_run_as_it_is(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=10))
    for query in (
        "SELECT * FROM iris",
        "SELECT * FROM iris -- a comment at the end",
        "SELECT * FROM iris /* ; */ ;",
        "\n  FROM iris\n",
        "WITH q AS (SELECT * FROM iris) SELECT * FROM q",
        "(SELECT * FROM iris)",
        "TABLE iris",
    ):
        assert source.schema(query).names == ["n", "x", "k"]
        assert len(rows(source, query)) == 10
        assert sorted(row["n"] for row in pinned_rows(source, tmp_path, query)) == list(range(10))


def test_a_pivot_is_a_query(source: Source, tmp_path: Path) -> None:
    source.execute("CREATE TABLE p AS SELECT * FROM (VALUES ('x', 1), ('y', 2)) AS t(k, n)")
    assert pinned_rows(source, tmp_path, "PIVOT p ON k USING sum(n)") == [{"x": 1, "y": 2}]


def test_a_text_that_is_not_one_query_is_refused_and_nothing_runs(source: Source) -> None:
    source.execute(IRIS.format(rows=3))
    for text, message in (
        ("", "no statement"),
        ("-- nothing", "no statement"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT 1; DROP TABLE iris", "2 statements"),
        ("DROP TABLE iris", "not a query"),
        ("INSERT INTO iris VALUES (1, 2, 'x')", "not a query"),
        ("INSERT INTO iris VALUES (1, 2, 'x') RETURNING n", "not a query"),
        ("EXPLAIN SELECT 1", "not a query"),
        ("SELECT 1) LIMIT 0; DROP TABLE iris; SELECT (1", "syntax error"),
        ("SELECT 1 AS a; -- and no more", "syntax error"),
        ("SELECT ?", "not provided"),
    ):
        for use in (source.schema, source.stream):
            with pytest.raises(SourceError, match=message):
                use(text)
        assert len(rows(source, "FROM iris")) == 3, text


def test_a_name_in_a_query_is_never_a_variable_of_the_program(source: Source) -> None:
    secret = pa.table({"a": [1]})
    for name in ("query", "self", "duckdb", "secret"):
        with pytest.raises(SourceError, match=f"Table with name {name} does not exist"):
            source.stream(f"SELECT * FROM {name}")
    assert secret.num_rows == 1


# Pinned order ------------------------------------------------------------------------------------------------


def test_without_shuffling_the_querys_own_order_stays(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=200_000))
    pinned = source.pin("SELECT n FROM iris ORDER BY n DESC", tmp_path, seed=1, shuffle=False)
    read = open_reader(pinned, tmp_path).read(0, pinned.rows)
    assert [n for batch in read for n in batch["n"].to_pylist()] == list(range(199_999, -1, -1))
    assert not pinned.shuffled


@pytest.mark.soak
def test_shuffling_keeps_every_row_once_and_leaves_the_order(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=70_000))
    order = [row["n"] for row in pinned_rows(source, tmp_path, "FROM iris")]
    assert sorted(order) == list(range(70_000))
    ascending = sum(before < after for before, after in pairwise(order))
    assert 0.48 < ascending / len(order) < 0.52


def digest(source: Source, folder: Path, query: str, seed: int = 1) -> str:
    return source.pin(query, folder, seed=seed, shuffle=True).digest


@pytest.mark.soak
def test_the_order_is_the_same_again_and_with_any_number_of_threads(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=300_000))
    query = "SELECT k, n % 1000 AS g, avg(x) AS mean, sum(sqrt(n)) AS s FROM iris GROUP BY ALL"
    orders = []
    for threads in (1, 2, 4, 4):
        source.execute(f"SET threads = {threads}")
        found = pinned_rows(source, tmp_path, query)
        orders.append([(row["k"], row["g"]) for row in found])
    assert len(orders[0]) == 3000
    assert all(order == orders[0] for order in orders)


def test_the_order_does_not_depend_on_the_order_of_insertion(source: Source, tmp_path: Path) -> None:
    values = [(n % 5, f"k{n % 3}", n / 7) for n in range(5000)]
    digests = set()
    for seed in range(3):
        np.random.default_rng(seed).shuffle(values)
        batch = pa.table(
            {"a": [v[0] for v in values], "k": [v[1] for v in values], "x": [v[2] for v in values]}
        )
        assert isinstance(source, DuckDBSource)
        with source.visible("incoming", batch):
            source.execute("CREATE OR REPLACE TABLE t AS FROM incoming")
        digests.add(digest(source, tmp_path, "FROM t"))
    assert len(digests) == 1


def test_rows_that_differ_in_their_last_digits_only_have_one_order(source: Source, tmp_path: Path) -> None:
    values = "SELECT 1 + range * 1e-15 AS x FROM range(1000)"
    assert digest(source, tmp_path, f"{values} ORDER BY x") == digest(
        source, tmp_path, f"{values} ORDER BY -x"
    )


def test_another_seed_is_another_order_of_the_same_rows(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=1000))
    orders = [
        [row["n"] for row in pinned_rows(source, tmp_path, "FROM iris", seed=seed)]
        for seed in (0, 1, -1, 2**40)
    ]
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == list(range(1000)) for order in orders)


def test_identical_rows_spread_out(source: Source, tmp_path: Path) -> None:
    query = "SELECT if(range < 5000, 'a', 'b') AS k FROM range(10000)"
    order = [row["k"] for row in pinned_rows(source, tmp_path, query)]
    assert Counter(order) == {"a": 5000, "b": 5000}
    changes = sum(before != after for before, after in pairwise(order))
    assert 4700 < changes < 5300


def test_numbers_no_real_can_hold_are_shuffled_too(source: Source, tmp_path: Path) -> None:
    query = (
        "SELECT x::DOUBLE AS x, [x, NULL]::DOUBLE[] AS l, [x]::DOUBLE[1] AS a"
        " FROM (VALUES ('1e300'), ('-1e300'), ('nan'), ('inf'), ('-inf'), (NULL), ('0'), ('-0.0')) AS v(x)"
    )
    assert len(pinned_rows(source, tmp_path, query)) == 8
    assert digest(source, tmp_path, query) == digest(source, tmp_path, query)


@pytest.mark.soak
def test_every_row_is_pinned_whatever_their_number(source: Source, tmp_path: Path) -> None:
    for count, shuffle in product((0, 1, 65_535, 65_536, 65_537), (True, False)):
        pinned = source.pin(f"SELECT range AS n FROM range({count})", tmp_path, seed=5, shuffle=shuffle)
        reader = open_reader(pinned, tmp_path)
        assert pinned.rows == count
        found = [n for batch in reader.read(0, count) for n in batch["n"].to_pylist()]
        assert sorted(found) == list(range(count))
        source.unpin(pinned, tmp_path)
        source.unpin(pinned, tmp_path)
        assert list(tmp_path.iterdir()) == []


HOSTILE = (
    'x"); drop table t; --',
    "a.b",
    "größe 表",
    "n" * 300,
    "select",
    "near",
    "NTH",
    "exact",
    "'",
    "\\",
    "%s",
)


def test_any_column_name_passes_through(source: Source, tmp_path: Path) -> None:
    columns = ['"' + name.replace('"', '""') + '"' for name in HOSTILE]
    listed = ", ".join(f"range + {number} AS {column}" for number, column in enumerate(columns))
    query = f"SELECT {listed}, sum(range) AS s FROM range(3) GROUP BY ALL"
    assert source.schema(query).names == [*HOSTILE, "s"]
    read = pinned_rows(source, tmp_path, query)
    for number, name in enumerate(HOSTILE):
        assert sorted(row[name] for row in read) == [number, number + 1, number + 2]


def test_an_error_in_the_midst_of_a_query_leaves_no_rows(source: Source, tmp_path: Path) -> None:
    query = "SELECT CASE WHEN range < 150000 THEN 1 ELSE CAST('x' || range AS INTEGER) END AS a FROM range(200000)"
    with pytest.raises(SourceError, match="Could not convert string 'x150000'"):
        source.pin(query, tmp_path, seed=0, shuffle=False)
    assert list(tmp_path.iterdir()) == []
    assert rows(source, "SELECT 1 AS a") == [{"a": 1}]


# Results that are not read to their end -----------------------------------------------------------------------


def test_temporary_tables_and_settings_of_the_user_are_seen_by_queries(
    source: Source, tmp_path: Path
) -> None:
    source.execute("CREATE TEMP TABLE mine AS SELECT 1 AS a")
    source.execute("CREATE SCHEMA s")
    source.execute("USE s")
    source.execute("CREATE TABLE here AS SELECT 2 AS a")
    assert rows(source, "SELECT * FROM mine") == [{"a": 1}]
    assert pinned_rows(source, tmp_path, "SELECT * FROM here") == [{"a": 2}]


# Statements and transactions ----------------------------------------------------------------------------------


def table(source: Source, sql: str, *parameters: object) -> list[dict[str, Any]] | None:
    reader = source.execute(sql, parameters)
    return None if reader is None else reader.read_all().to_pylist()


def test_a_statement_gives_its_rows_or_none(source: Source) -> None:
    assert table(source, "CREATE TABLE t (a INTEGER, b BLOB)") is None
    assert table(source, "INSERT INTO t VALUES (?, ?)", 1, b"\x00x") is None
    assert table(source, "UPDATE t SET a = 2") is None
    assert table(source, "INSERT INTO t VALUES (3, NULL) RETURNING a") == [{"a": 3}]
    assert table(source, "SELECT * FROM t WHERE a = ?", 2) == [{"a": 2, "b": b"\x00x"}]
    assert table(source, "SELECT 1 AS Count") == [{"Count": 1}]
    assert table(source, "SET threads = 2") is None
    assert [row["name"] for row in table(source, "SHOW TABLES") or []] == ["t"]
    assert "iris" in str(table(source, "EXPLAIN SELECT 1 AS iris"))
    assert table(source, "DROP TABLE t") is None


def test_a_statement_of_the_users_may_have_columns_that_no_job_could_use(source: Source) -> None:
    found = source.execute("SELECT 1 AS a, 2 AS a, INTERVAL 1 DAY AS wait")
    assert found is not None
    assert found.read_all().column_names == ["a", "a", "wait"]


def test_an_error_in_the_midst_of_a_statements_rows_is_a_named_one(source: Source) -> None:
    found = source.execute("SELECT CAST(if(range < 5000, '1', 'x') AS INTEGER) AS a FROM range(10000)")
    assert found is not None
    with pytest.raises(SourceError, match="Could not convert string 'x'"):
        found.read_all()


def test_a_query_that_would_write_is_refused_and_writes_nothing(source: Source, tmp_path: Path) -> None:
    source.execute(IRIS.format(rows=3))
    writing = "WITH w AS (INSERT INTO iris VALUES (9, 9, 'k') RETURNING n) SELECT n FROM w"
    for use in (
        source.schema,
        source.stream,
        lambda query: source.pin(query, tmp_path, seed=1, shuffle=True),
        lambda query: source.pin(query, tmp_path, seed=1, shuffle=False),
    ):
        with pytest.raises(SourceError):
            use(writing)
    assert len(rows(source, "FROM iris")) == 3


# Names and errors ---------------------------------------------------------------------------------------------


def test_tables_are_named_as_a_query_would_write_them(source: Source) -> None:
    for statement in (
        "CREATE TABLE iris AS SELECT 1 AS a",
        "CREATE VIEW seen AS FROM iris",
        "CREATE TEMP TABLE fleeting AS FROM iris",
        "CREATE SCHEMA sales",
        'CREATE TABLE sales."or""der.s" AS FROM iris',
        'CREATE TABLE sales."order" AS FROM iris',
        "ATTACH ':memory:' AS other",
        "CREATE TABLE other.far AS FROM iris",
    ):
        source.execute(statement)
    names = source.tables()
    assert set(names) == {"iris", "seen", "fleeting", 'sales."or""der.s"', 'sales."order"', "other.main.far"}
    for name in names:
        assert rows(source, f"SELECT * FROM {name}") == [{"a": 1}]


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("query", "message", "marked", "hint"),
    [
        ("SELECT * FROM irs", "Table with name irs does not exist", "irs", "did you mean iris?"),
        ("SELECT 'é表' AS a,\n  nn FROM iris", '"nn" not found', "nn", "did you mean n?"),
        ("SELECT flor(x) FROM iris", "flor does not exist", "flor(x)", "did you mean floor?"),
        ("SELECT distance(x) FROM iris", "distance does not exist", "distance(x)", None),
        ("SELEC 1", "syntax error at or near", "SELEC", None),
        ("SELECT * FROM nowhere.iris", 'schema "nowhere" does not exist', "nowhere.iris", "known: iris"),
        ("SELECT n FROM iris WHERE sum(n) > 1", "WHERE clause cannot contain aggregates", "sum(n) > 1", None),
    ],
)
def test_an_error_of_the_query_has_its_place_and_a_hint(
    source: Source, query: str, message: str, marked: str, hint: str | None
) -> None:
    source.execute(IRIS.format(rows=3))
    with pytest.raises(SourceError, match=message) as caught:
        source.schema(query)
    span = caught.value.span
    assert isinstance(span, Span)
    assert query[span.start :].startswith(marked[: span.end - span.start])
    assert query.index(marked) == span.start
    assert caught.value.hint == hint
    assert not caught.value.message.endswith((".", "!"))


def test_an_error_in_a_csv_file_has_its_reason(source: Source, tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_bytes("town,n\nKöln,1\n".encode("cp1252"))
    with pytest.raises(SourceError, match=r"Line: \d: Invalid unicode .* not utf-8 encoded") as caught:
        source.schema(f"SELECT * FROM '{tmp_path}/towns.csv'")
    assert "in its own encoding" in str(caught.value.hint)
    numbers = "\n".join(map(str, range(30_000)))
    (tmp_path / "late.csv").write_text(f"n\n{numbers}\nabc\n", encoding="utf-8")
    with pytest.raises(SourceError, match='Line: 30002: Error when converting column "n"') as caught:
        list(source.stream(f"SELECT * FROM '{tmp_path}/late.csv'"))
    assert "sample_size = -1" in str(caught.value.hint)
    rows_of_late = f"SELECT count(*) AS n FROM read_csv('{tmp_path}/late.csv', sample_size = -1)"
    assert rows(source, rows_of_late) == [{"n": 30_001}]
    (tmp_path / "ends.csv").write_bytes(b"a,b\r\n" + b"1,2\r\n" * 9 + b"3,4\n")
    with pytest.raises(SourceError) as caught:
        source.schema(f"SELECT * FROM '{tmp_path}/ends.csv'")
    assert "strict_mode = false" in str(caught.value.hint)
    query = f"SELECT count(*) AS n FROM read_csv('{tmp_path}/ends.csv', strict_mode = false)"
    assert rows(source, query) == [{"n": 10}]


def test_no_setting_is_changed_by_an_error(source: Source) -> None:
    before = rows(source, "SELECT name, value FROM duckdb_settings()")
    with pytest.raises(SourceError):
        source.schema("SELECT * FROM nothing")
    assert rows(source, "SELECT name, value FROM duckdb_settings()") == before


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "text",
    [
        "ANALYZE INSERT INTO iris VALUES (9, 9, 'k')",
        "/* */ ANALYZE DELETE FROM iris",
        "ANALYZE SELECT 1; DROP TABLE iris",
        "SELEC 1; DROP TABLE iris",
        "INSERT INTO iris SELECT 1, 2, nothing",
        "DROP TABLE iris; SELECT * FROM nothing",
    ],
)
def test_looking_for_the_place_of_an_error_runs_nothing(source: Source, text: str) -> None:
    source.execute(IRIS.format(rows=3))
    for use in (source.execute, source.schema):
        with pytest.raises(SourceError):
            use(text)
    assert len(rows(source, "FROM iris")) == 3


def test_an_error_of_a_statement_that_writes_has_its_place_too(source: Source) -> None:
    source.execute(IRIS.format(rows=3))
    with pytest.raises(SourceError, match='"m" not found') as caught:
        source.execute("INSERT INTO iris SELECT m FROM iris")
    assert caught.value.span == Span(24, 25)


def test_an_error_inside_a_transaction_keeps_its_own_words(source: Source) -> None:
    with pytest.raises(SourceError, match="Table with name nothing"), source.transaction():
        source.execute("CREATE TABLE t (a INTEGER)")
        source.execute("INSERT INTO nothing VALUES (1)")


def test_a_file_that_another_process_has_open_is_a_named_error(
    tmp_path: Path, in_another_process: Callable[[str], str]
) -> None:
    path = tmp_path / "x.duckdb"
    holder = duckdb.connect(path)
    shown = in_another_process(
        "from edl.data import connect\nfrom edl.errors import SourceError\n"
        f"try: connect({str(path)!r})\nexcept SourceError as error: print(error.message, '|', error.hint)\n"
    )
    holder.close()
    assert f"(PID {os.getpid()}) has {path} open | only one process may have" in shown


def test_a_second_source_of_a_process_leaves_the_lock_as_it_is(
    tmp_path: Path, in_another_process: Callable[[str], str]
) -> None:
    path = tmp_path / "x.duckdb"
    opens = (
        "import duckdb\n"
        f"try: duckdb.connect({str(path)!r})\nexcept duckdb.IOException: print('locked')\nelse: print('open')\n"
    )
    with connect(f"duckdb:{path}", create=True) as first:
        connect(f"duckdb:{path}").close()
        assert in_another_process(opens) == "locked\n"
        first.release()
        assert in_another_process(opens) == "open\n"


def test_a_secret_keeps_the_file_open(tmp_path: Path) -> None:
    with connect(f"duckdb:{tmp_path}/x.duckdb", create=True) as source:
        with suppress(SourceError):  # the extension may not be there
            source.execute("CREATE SECRET s (TYPE http, BEARER_TOKEN 'x')")
        source.release()
        assert source._connection is not None


def test_a_file_that_the_account_may_not_write_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS a")
    path.chmod(0o444)
    program = (
        "import sys\nfrom edl.data import connect\nfrom edl.data.source import MissingRightError\n"
        "source = connect(sys.argv[1])\nprint(source.stream('FROM t').read_all().to_pylist())\n"
        "for write in (lambda: source.check_may_write('u'), lambda: source.execute('CREATE TABLE u (a INTEGER)')):\n"
        "    try: write()\n    except MissingRightError as error: print(error.message, '|', error.hint)\n"
    )
    shown = run_without_privileges(program, str(path)).splitlines()
    assert shown[0] == "[{'a': 7}]"
    assert shown[1].startswith(f"this account may not write {path}")
    assert "read-only mode" in shown[2]
    assert "copy the file to change it" in shown[2]


def test_a_connection_of_the_users_can_be_used_as_a_source() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        assert rows(DuckDBSource(connection, "duckdb:"), "FROM t") == [{"a": 1}]


def test_two_sources_of_one_file_share_it_in_one_process(tmp_path: Path) -> None:
    first = connect(f"duckdb:{tmp_path}/x.db", create=True)
    second = connect(f"duckdb:{tmp_path}/x.db")
    first.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert second.tables() == ["t"]
    first.close()
    second.close()


def test_a_target_in_a_database_that_is_not_attached_is_told_before_the_work(source: Source) -> None:
    with pytest.raises(SourceError, match="no database shop is attached") as caught:
        source.check_target("shop.main.result")
    assert "write main.result" in str(caught.value.hint)
    source.execute("ATTACH ':memory:' AS shop")
    source.check_target("shop.main.result")


def limit(connection: duckdb.DuckDBPyConnection) -> float:
    """Return the bytes of memory that the database may take."""
    [(number, unit)] = connection.execute("SELECT split(current_setting('memory_limit'), ' ')").fetchall()[0]
    return float(number) * {"MiB": 2**20, "GiB": 2**30}[unit]


def test_a_source_takes_half_of_the_memory_until_the_user_sets_another_limit(tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/t.duckdb"
    with duckdb.connect(tmp_path / "other.duckdb") as other, connect(url, create=True) as source:
        assert isinstance(source, DuckDBSource)
        assert limit(source.connection) == pytest.approx(limit(other) / 0.8 / 2, rel=0.02)
        source.execute("SET memory_limit = '1GiB'")
        assert limit(source.connection) == 2**30


def test_the_environment_limits_the_memory_of_all_databases_that_are_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SQLFLOW_MEMORY_LIMIT", "1GiB")
    with open_database() as connection:
        assert limit(connection) == 2**30
    monkeypatch.setenv("SQLFLOW_MEMORY_LIMIT", "much")
    with pytest.raises(SourceError, match="SQLFLOW_MEMORY_LIMIT is 'much', no limit of memory") as caught:
        open_database()
    assert "SQLFLOW_MEMORY_LIMIT=6GB" in str(caught.value.hint)


def test_a_limit_that_the_calling_program_has_set_for_a_database_stays(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as own:
        own.execute("SET memory_limit = '1GiB'")
        with connect(f"duckdb:///{path}") as source:
            assert isinstance(source, DuckDBSource)
            assert limit(source.connection) == limit(own) == 2**30


def test_the_rows_of_a_slow_query_are_estimated_by_the_optimizer() -> None:
    with connect("duckdb:") as source:
        many = "FROM range(1000000) a, range(1000000) b"
        found = source.estimate_rows(f"SELECT a.range AS x {many} WHERE hash(a.range, b.range) = 7")
        assert found is not None
        assert not found.is_counted
        assert found.seconds is None
        assert found.rows > 1
        assert found.size == 8 * found.rows
        assert list(source.stream("SELECT 1 AS a").read_all()["a"].to_pylist()) == [1]


def test_rows_of_many_columns_have_the_order_that_they_had_and_settings_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ", ".join(f"hash(range, {number}) % 7 AS c{number}" for number in range(engine._WIDE))
    with connect("duckdb:") as source:
        source.execute("SET disabled_optimizers = 'top_n'")
        query = f"SELECT {columns} FROM range(100)"
        wide = source.pin(query, tmp_path / "wide", seed=1, shuffle=True)
        assert table(source, "SELECT current_setting('disabled_optimizers') AS a") == [{"a": "top_n"}]
        monkeypatch.setattr(engine, "_WIDE", engine._WIDE + 1)
        assert source.pin(query, tmp_path / "usual", seed=1, shuffle=True).digest == wide.digest
