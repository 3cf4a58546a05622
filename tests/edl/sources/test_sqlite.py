"""SQLite as a source: types of dynamically typed columns, errors with a place, targets, other writers."""

from __future__ import annotations

import datetime as dt
import sqlite3
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.arrow_types import database_type
from edl.data.pinned import open_reader
from edl.errors import SourceError, Span

UTC = dt.UTC


def column(source: Source, declared: str, *values: object) -> tuple[pa.DataType, list[object]]:
    """Type and values of a column of that declared type."""
    source.execute("DROP TABLE IF EXISTS t")
    source.execute(f"CREATE TABLE t (v {declared})")
    for value in values:
        source.execute("INSERT INTO t VALUES (?)", (value,))
    found = source.stream("SELECT v FROM t ORDER BY rowid").read_all()
    assert source.schema("SELECT v FROM t") == found.schema
    return found.schema.field("v").type, found["v"].to_pylist()


# Types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "values", "kind", "read"),
    [
        ("INTEGER", [1, None, -(2**63)], pa.int64(), [1, None, -(2**63)]),
        ("BIGINT", [1, 2.5], pa.float64(), [1.0, 2.5]),
        ("REAL", [1, 2.5, None], pa.float64(), [1.0, 2.5, None]),
        ("REAL", [float("inf")], pa.float64(), [float("inf")]),
        ("DECIMAL(10, 2)", [1, 2], pa.float64(), [1.0, 2.0]),
        ("", [1, None, 2.5], pa.float64(), [1.0, None, 2.5]),
        ("", [2**60 + 1, 0.5], pa.float64(), [float(2**60 + 1), 0.5]),
        ("", [1, 2], pa.int64(), [1, 2]),
        ("TEXT", ["x", "größe 表\0!", ""], pa.string(), ["x", "größe 表\0!", ""]),
        ("VARCHAR(3)", ["12"], pa.string(), ["12"]),
        ("INTEGER", ["12"], pa.int64(), [12]),
        ("BLOB", [b"\x00x", None], pa.binary(), [b"\x00x", None]),
        ("BOOLEAN", [1, 0, None], pa.bool_(), [True, False, None]),
        ("BOOLEAN", [1, 2], pa.int64(), [1, 2]),
        ("BOOL", ["yes", "no"], pa.string(), ["yes", "no"]),
        ("DATE", ["2024-02-29", None], pa.date32(), [dt.date(2024, 2, 29), None]),
        ("DATE", ["2024-02-30"], pa.string(), ["2024-02-30"]),
        ("DATE", ["29.2.2024"], pa.string(), ["29.2.2024"]),
        ("DATE", [20240229], pa.int64(), [20240229]),
        ("TIME", ["07:20", "23:59:59.5", None], pa.time64("us"), [dt.time(7, 20), dt.time(23, 59, 59, 500_000), None]),
        ("TIME", ["24:00"], pa.string(), ["24:00"]),
        ("TIME", ["07:20+02:00"], pa.string(), ["07:20+02:00"]),
        ("TIME", ["7 o'clock", "now"], pa.string(), ["7 o'clock", "now"]),
        ("TIME", [720], pa.int64(), [720]),
        ("TIMESTAMP", ["2024-02-29 01:02:03.5", "2024-02-29T01:02", "2024-02-29"], pa.timestamp("us"),
         [dt.datetime(2024, 2, 29, 1, 2, 3, 500_000), dt.datetime(2024, 2, 29, 1, 2), dt.datetime(2024, 2, 29)]),
        ("DATETIME", ["2024-02-29 01:02:03+02:00", "2024-02-29 01:02:03Z"], pa.timestamp("us", "UTC"),
         [dt.datetime(2024, 2, 28, 23, 2, 3, tzinfo=UTC), dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC)]),
        ("DATETIME", ["2024-02-29 01:02:03+02:00", "2024-02-29 01:02:03"], pa.string(),
         ["2024-02-29 01:02:03+02:00", "2024-02-29 01:02:03"]),
        ("TIMESTAMP", ["2024-02-30 01:02:03"], pa.string(), ["2024-02-30 01:02:03"]),
        ("TIMESTAMP", ["2024-02-29 01:02:03.123456789"], pa.string(), ["2024-02-29 01:02:03.123456789"]),
        ("TIMESTAMP", ["now"], pa.string(), ["now"]),
        ("TIMESTAMP", [1709168523], pa.int64(), [1709168523]),
    ],
)  # fmt: skip
def test_a_column_has_the_type_of_all_its_values(
    sqlite: Source, declared: str, values: list[object], kind: pa.DataType, read: list[object]
) -> None:
    assert column(sqlite, declared, *values) == (kind, read)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [("INT", pa.int64()), ("DOUBLE", pa.float64()), ("TEXT", pa.string()), ("DATE", pa.date32()), ("BLOB", pa.binary()),
     ("BOOLEAN", pa.bool_()), ("TIMESTAMP", pa.timestamp("us")), ("PRICE", pa.null())],
)  # fmt: skip
def test_a_column_without_values_has_the_type_it_was_declared_as(
    sqlite: Source, declared: str, kind: pa.DataType
) -> None:
    assert column(sqlite, declared)[0] == kind
    assert column(sqlite, declared, None, None)[0] == kind


def test_a_column_without_values_and_declaration_has_no_type_or_the_type_of_bytes(sqlite: Source) -> None:
    assert column(sqlite, "")[0] in (
        pa.null(),
        pa.binary(),
    )  # some releases of SQLite declare it BLOB in a view


def test_the_type_of_an_expression_holds_for_all_its_rows(sqlite: Source) -> None:
    late = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
    query = f"{late} SELECT CASE WHEN i < 9000 THEN NULL WHEN i < 9999 THEN i ELSE 0.5 END AS x, i || '' AS k FROM n"
    assert sqlite.schema(query).types == [pa.float64(), pa.string()]
    assert sqlite.stream(query).read_all()["x"].null_count == 9000


@pytest.mark.parametrize(
    ("values", "words", "hint"),
    [
        ([1, "n/a"], "both numbers and text, for example 'n/a'", "CAST(v AS REAL)"),
        ([1.5, ""], "both numbers and empty texts", "NULLIF(v, '')"),
        ([1, b"x"], "both bytes and other values", "CAST(v AS TEXT)"),
        ([b"x", None, 1], "both bytes and other values", "CAST(v AS TEXT)"),
        (["a", b"x"], "both bytes and other values", "CAST(v AS TEXT)"),
    ],
)
def test_a_column_of_mixed_values_is_no_feature_and_named_where_a_job_reads_it(
    sqlite: Source, tmp_path: Path, values: list[object], words: str, hint: str
) -> None:
    sqlite.execute("CREATE TABLE t (v NUMERIC, w)")
    for value in values:
        sqlite.execute("INSERT INTO t (v) VALUES (?)", (value,))
    described = database_type(sqlite.schema("SELECT w, v FROM t").field("v"))
    assert described is not None
    assert described[0] == f"mixed ({words.removeprefix('both ')})"
    assert hint in described[1]
    pinned = sqlite.pin("SELECT w, v FROM t", tmp_path, seed=0, shuffle=True)
    reader = open_reader(pinned, tmp_path)
    assert [batch.num_rows for batch in reader.read(0, pinned.rows, ["w"])] == [len(values)]
    for columns in (None, ["w", "v"]):
        with pytest.raises(SourceError, match=f"column v holds {words}") as caught:
            reader.read(0, pinned.rows, columns)
        assert hint in str(caught.value.hint)
    assert len(sqlite.schema(f"SELECT w, {hint} AS v FROM t")) == 2


def test_a_result_that_is_only_shown_may_be_mixed_and_long(sqlite: Source) -> None:
    sqlite.execute(
        "CREATE TABLE t AS SELECT 1 AS v UNION ALL SELECT 'x' UNION ALL SELECT x'00ff' UNION ALL SELECT NULL"
    )
    found = sqlite.execute("SELECT v FROM t")
    assert found is not None
    assert found.read_all()["v"].to_pylist() == ["1", "x", "x'00ff'", None]
    long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    sqlite.execute(
        f"CREATE TABLE long AS {long} SELECT CASE WHEN i < 4000 THEN i ELSE 'late' END AS v, i AS n FROM n"
    )
    found = sqlite.execute("SELECT v, n, n FROM long")
    assert found is not None
    rows = found.read_all()
    assert rows.column_names == ["v", "n", "n"]
    assert rows.column(0).to_pylist()[-1] == "late"
    assert rows.column(1).to_pylist() == list(range(1, 5001))


def test_a_text_that_is_not_utf_8_is_a_named_error(sqlite: Source) -> None:
    sqlite.execute("CREATE TABLE t AS SELECT CAST(x'ff41' AS TEXT) AS v")
    with pytest.raises(SourceError, match="UTF-8 column 'v'") as caught:
        sqlite.stream("SELECT v FROM t").read_all()
    assert "BLOB" in str(caught.value.hint)


def test_what_is_known_of_a_query_is_forgotten_when_somebody_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with connect(f"sqlite:{path}", create=True) as source:
        source.execute("CREATE TABLE t AS SELECT 1 AS v")
        assert source.schema("SELECT v FROM t").types == [pa.int64()]
        source.execute("INSERT INTO t VALUES (0.5)")
        assert source.schema("SELECT v FROM t").types == [pa.float64()]
        with sqlite3.connect(path) as other:
            other.execute("UPDATE t SET v = 'x'")
        other.close()
        assert source.schema("SELECT v FROM t").types == [pa.string()]


# Results -----------------------------------------------------------------------------------------------------


def test_a_result_of_every_type_reads_back_as_it_was(sqlite: Source, tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": pa.array([1, None], pa.int8()),
            "f": pa.array([0.5, None], pa.float32()),
            "b": [True, None],
            "t": ["x", None],
            "raw": [b"\x00", None],
            "d": [dt.date(2024, 2, 29), None],
            "clock": [dt.time(1, 2, 3, 4), None],
            "at": pa.array([dt.datetime(2024, 2, 29, 1, 2, 3, 4), None], pa.timestamp("ns")),
            "z": pa.array([dt.datetime(2024, 2, 29, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "none": pa.nulls(2),
        }
    )
    sqlite.stage("r", "job", 0, 0, table.to_batches())
    sqlite.commit("r", "job", 1)
    found = sqlite.stream("SELECT * FROM r").read_all()
    assert found.to_pylist() == table.cast(found.schema).to_pylist()
    assert found.schema.types[5:9] == [
        pa.date32(),
        pa.time64("us"),
        pa.timestamp("us"),
        pa.timestamp("us", "UTC"),
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([[1]]), "column v is of the type list"),
        (pa.array([2**64 - 1], pa.uint64()), "column v holds numbers beyond the 64 bits"),
    ],
)
def test_what_sqlite_cannot_hold_is_a_named_error(sqlite: Source, values: pa.Array, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        sqlite.stage("r", "job", 0, 0, [pa.record_batch({"v": values})])
    assert sqlite.tables() == []


def test_a_target_in_no_attached_database_says_what_to_do(sqlite: Source, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no database iris is attached") as caught:
        sqlite.check_target("iris.predict")
    assert "iris_predict" in str(caught.value.hint)
    with pytest.raises(SourceError, match="3 parts"):
        sqlite.check_target("a.b.c")
    sqlite.execute(f"ATTACH '{tmp_path}/iris.sqlite' AS iris")
    sqlite.stage("iris.predict", "job", 0, 0, [pa.record_batch({"a": [1]})])
    sqlite.commit("iris.predict", "job", 1)
    assert sqlite.tables() == ["iris.predict"]
    with connect(f"{tmp_path}/iris.sqlite") as other:
        assert other.tables() == ["predict"]


def test_a_temporary_table_of_the_users_is_not_hidden_by_a_result(sqlite: Source) -> None:
    sqlite.execute("CREATE TEMP TABLE result AS SELECT 1 AS a")
    with pytest.raises(SourceError, match="not made by sqlflow-edl"):
        sqlite.check_target("Result")


def test_views_that_read_the_result_or_nothing_survive_a_new_one(sqlite: Source) -> None:
    sqlite.execute("CREATE TABLE gone (a)")
    sqlite.execute("CREATE VIEW broken AS SELECT * FROM gone")
    sqlite.execute("DROP TABLE gone")
    for value in (1, 2):
        sqlite.stage("r", f"job{value}", 0, 0, [pa.record_batch({"a": [value]})])
        sqlite.commit("r", f"job{value}", 1)
        sqlite.execute("CREATE VIEW IF NOT EXISTS seen AS SELECT a FROM r")
    assert sqlite.stream("SELECT a FROM seen").read_all()["a"].to_pylist() == [2]
    assert sqlite.execute("PRAGMA legacy_alter_table").read_all().to_pylist()[0] == {"legacy_alter_table": 0}  # type: ignore[union-attr]


def test_a_table_with_a_name_like_our_mark_is_the_users(sqlite: Source) -> None:
    name = '"r ( /* made by sqlflow-edl, job x */"'
    sqlite.execute(f"CREATE TABLE {name} (a)")
    with pytest.raises(SourceError, match="not made by"):
        sqlite.check_target(name)


def test_columns_that_take_all_names_of_the_row_number_are_refused(sqlite: Source) -> None:
    for names in (["rowid"], ["ROWID", "oid"]):
        sqlite.stage("r", f"j{len(names)}", 0, 0, [pa.record_batch({name: [5] for name in names})])
        assert sqlite.commit("r", f"j{len(names)}", 1) == 1
    with pytest.raises(SourceError, match="rowid, _rowid_, oid"):
        sqlite.stage("r", "j3", 0, 0, [pa.record_batch({name: [5] for name in ("rowid", "_rowid_", "oid")})])


# Names, errors, others ---------------------------------------------------------------------------------------


def test_tables_are_named_as_a_query_would_write_them(sqlite: Source, tmp_path: Path) -> None:
    for statement in (
        "CREATE TABLE iris AS SELECT 1 AS a",
        "CREATE VIEW seen AS SELECT * FROM iris",
        "CREATE TEMP TABLE fleeting AS SELECT * FROM iris",
        'CREATE TABLE "order" AS SELECT * FROM iris',
        'CREATE TABLE "or""der.s" AS SELECT * FROM iris',
        "ATTACH ':memory:' AS other",
        "CREATE TABLE other.far AS SELECT * FROM iris",
        "CREATE TABLE sqlflow_edl_x AS SELECT * FROM iris",
    ):
        sqlite.execute(statement)
    names = sqlite.tables()
    assert set(names) == {"iris", "seen", "fleeting", '"or""der.s"', '"order"', "other.far"}
    for name in names:
        assert sqlite.stream(f"SELECT * FROM {name}").read_all().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("SELECT 'm' AS a, /* m */ \"m\" AS b, t.m FROM t", "t.m"),
        ("SELECT n FROM t WHERE sum(n) > 1", "sum"),
        ("SELECT n FROM t, t AS u -- n", "n"),
        ("SELECT n AS FROM FROM t WHERE (", None),
        ("SELECT (n FROM t", "FROM"),
        ("SELECT n FROM t WHERE n = = 1", "= 1"),
        ("SELECT [n], `q` FROM t", "`q`"),
        ("SELECT '::', n::TEXT FROM t", "::TEXT"),
        ("SELECT n FROM t WHERE n = 'x", "'x"),
    ],
)
def test_the_place_of_an_error_is_its_words_place(sqlite: Source, query: str, marked: str | None) -> None:
    sqlite.execute("CREATE TABLE t (n INTEGER)")
    with pytest.raises(SourceError) as caught:
        sqlite.schema(query)
    span = caught.value.span
    if marked is not None:
        assert isinstance(span, Span)
        assert span.start == query.index(marked)


def test_looking_for_the_place_of_an_error_runs_nothing(sqlite: Source) -> None:
    sqlite.execute("CREATE TABLE t (n INTEGER)")
    for text in ("DELETE FROM t WHERE n = = 1", "PRAGMA user_version = = 5", "INSERT INTO t VALUES (1) 1 1"):
        sqlite.execute("DELETE FROM t")
        sqlite.execute("INSERT INTO t VALUES (7)")
        with pytest.raises(SourceError):
            sqlite.execute(text)
        assert sqlite.stream("SELECT n FROM t").read_all()["n"].to_pylist() == [7]


@pytest.mark.soak
def test_a_write_waits_for_another_writer_and_then_says_who_is_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with connect(f"sqlite:{path}", create=True) as source:
        source.execute("PRAGMA busy_timeout = 50")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SourceError, match="database is locked") as caught, source.transaction():
            pass
        assert "busy_timeout" in str(caught.value.hint)
        source.execute("PRAGMA busy_timeout = 10000")
        release = threading.Timer(0.2, lambda: None)
        release.start()
        release.join()
        other.execute("COMMIT")
        other.close()
        with source.transaction():
            source.execute("CREATE TABLE t (a)")
        assert source.tables() == ["t"]


def test_a_connection_to_what_is_no_database_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    path.write_text("a,b\n" * 1000, encoding="utf-8")
    with pytest.raises(SourceError, match=r"cannot open .*not a database"):
        connect(str(path))
    with pytest.raises(SourceError, match="there is no database file"):
        connect(f"sqlite:{tmp_path}/none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_duckdb_says_that_a_file_is_of_sqlite(tmp_path: Path) -> None:
    with connect(f"sqlite:{tmp_path}/x.db", create=True) as source:
        source.execute("CREATE TABLE t (a)")
    with pytest.raises(SourceError, match="is a SQLite database") as caught:
        connect(f"{tmp_path}/x.db")
    with connect(str(caught.value.hint).removeprefix("write it as ")) as source:
        assert source.tables() == ["t"]


@pytest.mark.soak
def test_rows_are_pinned_in_bounded_memory(tmp_path: Path) -> None:
    """A hundred megabytes of text pass through; nothing of that size is ever held."""
    with connect(f"sqlite:{tmp_path}/x.sqlite", create=True) as source:
        source.execute(
            "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
            " SELECT i, hex(zeroblob(1000)) AS text FROM n"
        )
        before = pa.total_allocated_bytes()
        peaks = []
        for batch in source.stream("SELECT * FROM t", batch_rows=1000):
            peaks.append(pa.total_allocated_bytes() - before)
            assert batch.num_rows <= 2048
        assert max(peaks) < 20 << 20
        pinned = source.pin("SELECT * FROM t", tmp_path / "rows", seed=1, shuffle=True)
    assert pinned.rows == open_reader(pinned, tmp_path / "rows").rows == 50_000


def test_all_columns_of_a_wide_table_are_read_and_a_result_that_is_too_wide_is_refused(
    sqlite: Source,
) -> None:
    names = [f"x{number}" for number in range(1_500)]
    sqlite.execute(f"CREATE TABLE wide ({', '.join(f'{name} REAL' for name in names)})")
    sqlite.execute(f"INSERT INTO wide VALUES ({', '.join(['0.5', '1'] * 750)})")
    found = sqlite.stream("SELECT * FROM wide").read_all()
    assert sqlite.schema("SELECT * FROM wide") == found.schema
    assert found.schema.names == names
    assert set(found.schema.types) == {pa.float64()}
    with pytest.raises(SourceError, match="too many columns") as raised:
        sqlite.execute(f"CREATE TABLE wider ({', '.join(f'{name}, {name}_shap' for name in names)})")
    assert raised.value.hint == "a table of SQLite has at most 2,000 columns; write fewer"


def test_the_last_instant_of_sqlite_is_a_timestamp(sqlite: Source) -> None:
    sqlite.execute("CREATE TABLE until (end TIMESTAMP)")
    sqlite.execute("INSERT INTO until VALUES ('9999-12-31 23:59:59.999999'), ('2024-01-01 00:00:00')")
    assert sqlite.schema("SELECT end FROM until").types == [pa.timestamp("us")]
    sqlite.execute("INSERT INTO until VALUES ('9999-12-31 23:59:60.5')")
    assert sqlite.schema("SELECT end FROM until").types == [pa.string()]
