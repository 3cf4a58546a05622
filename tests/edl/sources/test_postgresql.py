"""PostgreSQL as a source: types, names, rights, connections that are cut, and what others do meanwhile."""

from __future__ import annotations

import datetime as dt
import gc
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl.data import Reader, Source, connect, open_reader
from edl.data.arrow_types import database_type
from edl.data.server_url import SECRETS
from edl.data.source import ConflictError, UnreachableError
from edl.data.url import parse
from edl.errors import SourceError
from edl.sources import pinned_tables, server
from edl.sources.postgresql import connection, pinning
from edl.sources.postgresql.connection import LEXICON, number_parameters
from edl.sources.postgresql.source import PostgreSQLSource
from tests.cutting import proxied
from tests.postgresql import PASSWORD, Server

UTC = dt.UTC


def soak(value: object) -> object:
    """A variant that `make test` leaves out."""
    return pytest.param(value, marks=pytest.mark.soak)


@pytest.fixture
def database(postgresql: Server) -> str:
    return postgresql.database()


@pytest.fixture
def source(postgresql: Server, database: str) -> Iterator[PostgreSQLSource]:
    with connect(postgresql.url(database)) as opened:
        assert isinstance(opened, PostgreSQLSource)
        yield opened


def everything(reader: Reader, columns: list[str] | None = None) -> pa.Table:
    return pa.Table.from_batches(reader.read(0, reader.rows, columns))


def rows(source: Source, query: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = source.stream(query).read_all().to_pylist()
    return found


def row_tables(source: Source) -> list[str]:
    query = (
        "SELECT relname AS t FROM pg_class WHERE relkind = 'r' AND starts_with(relname, 'sqlflow_edl_rows_')"
    )
    return [str(each["t"]) for each in rows(source, query)]


# Types -------------------------------------------------------------------------------------------------------

TYPES = [
    ("boolean", pa.bool_(), ["true", "false"], [True, False]),
    ("smallint", pa.int16(), ["-32768"], [-32768]),
    ("integer", pa.int32(), ["-2147483648"], [-(2**31)]),
    ("bigint", pa.int64(), ["-9223372036854775808"], [-(2**63)]),
    ("real", pa.float32(), ["16777216", "'-Infinity'"], [16777216.0, float("-inf")]),
    ("double precision", pa.float64(), ["0.1", "1e300", "'Infinity'"], [0.1, 1e300, float("inf")]),
    ("numeric(10, 2)", pa.decimal128(10, 2), ["-12345678.90"], [Decimal("-12345678.90")]),
    ("numeric(38, 30)", pa.decimal128(38, 30), ["0.5"], [Decimal("0.5")]),
    ("numeric", pa.float64(), ["0.25", "1e30"], [0.25, 1e30]),
    ("numeric(60, 1)", pa.float64(), ["1e50"], [1e50]),
    ("date", pa.date32(), ["'2024-02-29'", "'0001-01-01'"], [dt.date(2024, 2, 29), dt.date(1, 1, 1)]),
    ("time", pa.time64("us"), ["'01:02:03.000004'"], [dt.time(1, 2, 3, 4)]),
    ("timestamp", pa.timestamp("us"), ["'1000-01-01 00:00:00.000001'"], [dt.datetime(1000, 1, 1, 0, 0, 0, 1)]),
    ("timestamptz", pa.timestamp("us", "UTC"), ["'2024-02-29 01:02:03.5+05:30'"],
     [dt.datetime(2024, 2, 28, 19, 32, 3, 500_000, tzinfo=UTC)]),
    ("text", pa.string(), ["'表\t\n\\'", "''", "'NULL'"], ["表\t\n\\", "", "NULL"]),
    ("varchar(9)", pa.string(), ["'größe 😀'"], ["größe 😀"]),
    ("char(4)", pa.string(), ["'a'", "''"], ["a", ""]),
    ("bytea", pa.binary(), ["'\\x00ff5c'", "''"], [b"\0\xff\\", b""]),
    ("uuid", pa.string(), ["'123e4567-e89b-12d3-a456-426614174000'"], ["123e4567-e89b-12d3-a456-426614174000"]),
    ("jsonb", pa.string(), ["'{\"a\": [1, null]}'"], ['{"a": [1, null]}']),
    ("json", pa.string(), ["'[1,  2]'"], ["[1,  2]"]),
    ("mood", pa.string(), ["'so, so'"], ["so, so"]),
    ("age", pa.int32(), ["7"], [7]),
    ("inet", pa.string(), ["'::1'"], ["::1"]),
    ("bit(3)", pa.string(), ["b'101'"], ["101"]),
    ("timetz", pa.string(), ["'01:02:03+01'"], ["01:02:03+01"]),
    ("integer[]", pa.list_(pa.int32()), ["'{1,NULL,-3}'", "'{}'"], [[1, None, -3], []]),
    ("double precision[]", pa.list_(pa.float64()), ["'{0.1}'"], [[0.1]]),
    ("numeric[]", pa.list_(pa.float64()), ["'{0.25,3}'"], [[0.25, 3.0]]),
    ("text[]", pa.list_(pa.string()), ["ARRAY['a,b', '\"', NULL, '', '\\']"], [["a,b", '"', None, "", "\\"]]),
    ("date[]", pa.list_(pa.date32()), ["'{2024-02-29}'"], [[dt.date(2024, 2, 29)]]),
]  # fmt: skip


def test_every_type_comes_as_what_it_is_from_a_query_and_from_pinned_rows(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    """All types in one table, NULLs in each; what we write of them comes back as it was."""
    source.execute("CREATE TYPE mood AS ENUM ('so, so')")
    source.execute("CREATE DOMAIN age AS integer CHECK (VALUE > 0)")
    names = [f"c{number}" for number in range(len(TYPES))]
    columns = ", ".join(f"{name} {declared}" for name, (declared, *_) in zip(names, TYPES, strict=True))
    source.execute(f"CREATE TABLE t (n integer, {columns})")
    for row in range(4):
        values = [given[row] if row < len(given) else "NULL" for _, _, given, _ in TYPES]
        source.execute(f"INSERT INTO t VALUES ({row}, {', '.join(values)})")
    wanted = pa.table(
        {
            name: pa.array([*read, *[None] * (4 - len(read))], kind)
            for name, (_, kind, _, read) in zip(names, TYPES, strict=True)
        }
    )
    query = f"SELECT {', '.join(names)} FROM t ORDER BY n"
    found = source.stream(query).read_all()
    assert found.schema == wanted.schema
    assert found.equals(wanted)
    for shuffle in (False, True):
        pinned = source.pin(query, tmp_path, seed=0, shuffle=shuffle)
        kept = everything(open_reader(pinned, tmp_path))
        assert kept.schema == wanted.schema
        assert sorted(map(str, kept.to_pylist())) == sorted(map(str, wanted.to_pylist()))
    source.stage("copy", "job", 0, 0, wanted.to_reader())
    source.commit("copy", "job", 1)
    assert source.stream("SELECT * FROM copy").read_all().equals(wanted)


def test_arrow_types_that_postgresql_has_not_are_written_as_wider_ones(source: PostgreSQLSource) -> None:
    wide = pa.table(
        {
            "a": pa.array([-128, None], pa.int8()),
            "b": pa.array([255, None], pa.uint8()),
            "c": pa.array([2**32 - 1, None], pa.uint32()),
            "d": pa.array([2**64 - 1, None], pa.uint64()),
            "e": pa.array([b"\0\xff", None], pa.binary(2)),
            "f": pa.array([1, None], pa.duration("s")),
            "g": pa.array([[1.5, None], None], pa.list_(pa.float32(), 2)),
            "h": pa.array([dt.time(1, 2), None], pa.time32("s")),
            "i": pa.nulls(2),
        }
    )
    source.stage("t", "job", 0, 0, wide.slice(0).to_reader())
    source.commit("t", "job", 1)
    assert rows(source, "SELECT * FROM t")[0] == {
        "a": -128, "b": 255, "c": 2**32 - 1, "d": Decimal(2**64 - 1), "e": b"\0\xff", "f": 1, "g": [1.5, None],
        "h": dt.time(1, 2), "i": None,
    }  # fmt: skip
    assert set(rows(source, "SELECT * FROM t")[1].values()) == {None}


def shown(source: Source, sql: str) -> list[dict[str, object]]:
    found = source.execute(sql)
    assert found is not None
    listed: list[dict[str, object]] = found.read_all().to_pylist()
    return listed


def test_types_that_were_never_looked_up_are_shown_by_the_first_statement(
    postgresql: Server, source: PostgreSQLSource
) -> None:
    """The names of types are looked up before the rows are fetched: the client waited for itself."""
    source.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    for sql, value in (("'ok'::mood", "ok"), ("pg_sleep(0)", ""), ("ROW(1, 'ok'::mood)", "(1,ok)")):
        with connect(postgresql.url(source.database)) as opened:
            assert shown(opened, f"SELECT {sql} AS v") == [{"v": value}]


@pytest.mark.soak
def test_a_value_without_a_type_at_the_end_of_a_long_result_turns_its_column_into_text(
    source: PostgreSQLSource,
) -> None:
    days = "CASE WHEN i < 70000 THEN DATE '2024-02-29' ELSE 'infinity' END"
    query = f"SELECT {days} AS d FROM generate_series(1, 70000) s(i)"
    found = source.execute(query)
    assert found is not None
    assert found.schema.types == [pa.date32()]
    assert [batch.schema.types for batch in found] == [[pa.date32()], [pa.string()]]
    values = shown(source, query)
    assert [values[0], values[-1]] == [{"d": "2024-02-29"}, {"d": "infinity"}]


UNFIT = [
    ("d", "column d holds 'infinity', which is not a date", "isfinite"),
    ("s", "column s holds '-infinity', which is not a timestamp", "isfinite"),
    ("t", "column t holds '24:00:00', which is not a time", "EXTRACT"),
    ("n", "column n holds 'NaN', which is not a decimal", "::double precision"),
    ("a", "column a holds .*, which is not a list", "one dimension"),
    ("l", "column l holds .*, which is not a list", "one dimension"),
]


def test_values_that_cannot_travel_are_named_with_what_to_write_when_they_are_read(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    source.execute(
        "CREATE TABLE t AS SELECT 1 AS x, DATE 'infinity' AS d, TIMESTAMP '-infinity' AS s, TIME '24:00' AS t,"
        " 'NaN'::numeric(5, 2) AS n, ARRAY[[1, 2], [3, 4]] AS a, ARRAY[DATE '-infinity'] AS l"
    )
    source.execute("INSERT INTO t (x) VALUES (2)")
    for shuffle in (False, True):
        pinned = source.pin("SELECT * FROM t", tmp_path, seed=0, shuffle=shuffle)
        reader = open_reader(pinned, tmp_path)
        assert sorted(everything(reader, ["x"])["x"].to_pylist()) == [1, 2]
        assert refusal(pinned.check_fits).message == "column d holds 'infinity', which is not a date"
        for column, words, hint in UNFIT:
            read = refusal(partial(everything, reader, [column]))
            streamed = refusal(source.stream(f"SELECT {column} FROM t").read_all)
            assert re.match(words, read.message)
            assert re.match(words, streamed.message)
            assert hint in str(streamed.hint)
            assert read.hint == streamed.hint
        source.unpin(pinned, tmp_path)
    assert row_tables(source) == []


def refusal(read: Callable[[], object]) -> SourceError:
    """Return the error without its frames, which would keep connections open."""
    with pytest.raises(SourceError) as caught:
        read()
    return caught.value.with_traceback(None)


def test_types_of_postgresql_alone_are_described_and_come_as_texts(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    query = (
        "SELECT INTERVAL '1 month' AS x, 1.5::numeric::money AS m, point '(1,2)' AS p, int4range(1, 2) AS r,"
        " ARRAY[inet '::1'] AS i"
    )
    described = [database_type(field) for field in source.schema(query)]
    assert described == [
        ("interval", 'EXTRACT(epoch FROM "x") AS "x"'),
        ("money", '"m"::numeric AS "m"'),
        ("point", '"p"::text AS "p"'),
        ("int4range", '"r"::text AS "r"'),
        ("inet[]", '"i"::text AS "i"'),
    ]
    wanted = [{"x": "1 mon", "m": "$1.50", "p": "(1,2)", "r": "[1,2)", "i": "{::1}"}]
    assert rows(source, query) == wanted
    pinned = source.pin(query, tmp_path, seed=0, shuffle=False)
    assert everything(open_reader(pinned, tmp_path)).to_pylist() == wanted


def test_instants_come_in_utc_whatever_the_time_zone_and_forms_of_the_session(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    """In 1800 New York had an offset with seconds."""
    source.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('1800-01-01 00:00+00'::timestamptz), (NULL)) v(at)"
    )
    wanted = rows(source, "SELECT at FROM t")
    pinned = source.pin("SELECT at FROM t", tmp_path, seed=0, shuffle=False)
    source.execute("SET TIME ZONE 'America/New_York'")
    assert rows(source, "SELECT at FROM t") == wanted
    found = source.execute("SELECT at FROM t")
    assert found is not None
    assert found.read_all().to_pylist() == wanted
    source.execute("SET DateStyle = 'German'")
    again = source.pin("SELECT at FROM t", tmp_path, seed=0, shuffle=False)
    assert again.digest == pinned.digest
    assert everything(open_reader(again, tmp_path)).to_pylist() == wanted


def test_a_date_that_arrow_does_not_read_is_an_error_with_an_expression_that_helps(
    source: PostgreSQLSource,
) -> None:
    source.execute("CREATE TABLE t AS SELECT DATE '4713-01-01 BC' AS d")
    with pytest.raises(SourceError, match="holds '4713-01-01 BC'") as caught:
        source.stream("SELECT d FROM t").read_all()
    instead = str(caught.value.hint).removeprefix("write ")
    assert source.stream(f"SELECT {instead} FROM t").read_all().to_pylist() == [{"d": None}]


# Words and names ---------------------------------------------------------------------------------------------


def test_question_marks_of_texts_names_and_comments_are_no_parameters() -> None:
    sql = """SELECT '?', "?", $$?$$, $a$ ? $a$, E'\\'?', ? /* ? /* ? */ ? */ -- ?\n, ?"""
    assert number_parameters(sql) == sql.replace("'?', ?", "'?', $1").replace("\n, ?", "\n, $2")
    assert [token.lastgroup for token in LEXICON.words("$a$ x $b$ $a$ t")] == ["text", "name"]


def test_names_without_quotation_marks_are_read_in_small_letters(source: PostgreSQLSource) -> None:
    for target, found in (("Upper.Result", "upper.result"), ('"Upper"."Result"', '"Upper"."Result"')):
        source.stage(target, "job", 0, 0, [pa.record_batch({"Sum": [1]})])
        source.commit(target, "job", 1)
        assert rows(source, f'SELECT "Sum" FROM {found}') == [{"Sum": 1}]
    assert source.tables() == ['"Upper"."Result"', "upper.result"]
    with pytest.raises(SourceError, match='column "sum" does not exist') as caught:
        source.schema("SELECT Sum FROM upper.result")
    assert caught.value.hint == 'as a name with capital letters it is written "Sum"'


@pytest.mark.parametrize("target", ["n" * 64, "ö" * 32, "a.b.c.d", "other.public.t"])
def test_a_name_that_the_server_would_cut_short_or_not_find_is_refused(
    source: PostgreSQLSource, target: str
) -> None:
    with pytest.raises(SourceError, match=r"cannot be a name|has 4 parts|not the database"):
        source.check_target(target)


def test_a_schema_of_the_url_has_the_tables_that_are_named_without_one(
    postgresql: Server, database: str, source: PostgreSQLSource
) -> None:
    source.execute("CREATE SCHEMA shop")
    with connect(postgresql.url(database, options="?schema=shop")) as inside:
        inside.stage("t", "job", 0, 0, [pa.record_batch({"a": [1]})])
        inside.commit("t", "job", 1)
        assert inside.home == '"shop".'
        assert inside.tables() == ["t"]
    assert source.tables() == ["shop.t"]
    assert source.databases() == ["public", "shop"]
    with pytest.raises(SourceError, match="no schema shp") as caught:
        connect(postgresql.url(database, options="?schema=shp"))
    assert caught.value.hint == "did you mean shop?"


# Results -----------------------------------------------------------------------------------------------------


def test_a_result_with_the_same_columns_keeps_views_and_rights(
    postgresql: Server, database: str, source: PostgreSQLSource
) -> None:
    def write(job: str, batch: pa.RecordBatch) -> None:
        source.stage("out", job, 0, 0, [batch])
        source.commit("out", job, 1)

    write("one", pa.record_batch({"a": [1]}))
    source.execute("CREATE VIEW seen AS SELECT a + 1 AS b FROM out")
    write("two", pa.record_batch({"a": [2, 3]}))
    assert rows(source, "SELECT b FROM seen") == [{"b": 3}, {"b": 4}]
    with pytest.raises(SourceError, match=r"view seen depends on table .*out") as caught:
        write("three", pa.record_batch({"a": ["text"]}))
    assert "drop what depends" in str(caught.value.hint)
    assert rows(source, "SELECT a FROM out") == [{"a": 2}, {"a": 3}]


def test_a_text_with_the_character_nul_is_an_error_with_a_hint(source: PostgreSQLSource) -> None:
    with pytest.raises(SourceError, match="invalid byte sequence") as caught:
        source.stage("t", "job", 0, 0, [pa.record_batch({"a": ["x\0y"]})])
    assert "NUL" in str(caught.value.hint)


# Pinned rows -------------------------------------------------------------------------------------------------


def numbers(source: PostgreSQLSource, count: int) -> None:
    source.execute(f"CREATE TABLE t AS SELECT n, repeat('x', 50) AS text FROM generate_series(1, {count}) n")


class _Patience(pinned_tables.Patience):
    """Never sleeps; gives up after so many attempts in a row."""

    def __init__(self, limit: int = 30) -> None:
        clock = iter(range(0, 1000, max(1, int(pinned_tables.RETRY_SECS) // limit)))
        super().__init__(now=lambda: float(next(clock)), sleep=lambda _: None)


@pytest.mark.soak
def test_a_range_is_read_on_where_it_was_when_the_connection_is_cut(
    postgresql: Server,
    database: str,
    source: PostgreSQLSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pinned_tables, "Patience", _Patience)
    monkeypatch.setattr(pinning, "BATCH_BYTES", 4096)
    numbers(source, 10_000)
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
    with proxied(postgresql.port, after=400_000, left=4) as proxy:
        there = parse(postgresql.url(database, port=proxy.port))
        there.with_password()  # type: ignore[union-attr]
        moved = msgspec.structs.replace(pinned, source=str(there))
        found = everything(open_reader(moved, tmp_path))["n"].to_pylist()
        assert proxy.left == 0
    assert found == everything(open_reader(pinned, tmp_path), ["n"])["n"].to_pylist()
    assert sorted(found) == list(range(1, 10_001))
    assert found != sorted(found)


def test_a_server_that_stays_away_is_an_error_in_the_end(
    postgresql: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_tables, "Patience", lambda: _Patience(limit=5))
    with proxied(postgresql.port, after=0, left=1_000_000) as proxy:
        url = parse(postgresql.url(database, port=proxy.port))
        table = pinning.PinnedTable("gone", "key")
        reader = pinning.PostgreSQLRowReader(url, table, pa.schema([("n", pa.int64())]), 10)  # type: ignore[arg-type]
        with pytest.raises(SourceError, match="was lost"):
            list(reader.read(0, 10))


def test_pinned_rows_stay_what_they_were_and_go_with_their_job(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    numbers(source, 1000)
    folder = tmp_path / "rows"
    first = source.pin("SELECT * FROM t", folder, seed=1, shuffle=True)
    source.execute("UPDATE t SET n = -n")
    again = source.pin("SELECT -n AS n, text FROM t", folder, seed=1, shuffle=True)
    assert first.digest != source.pin("SELECT * FROM t", folder, seed=1, shuffle=True).digest
    assert again.digest == first.digest
    reader = open_reader(first, folder)
    assert sorted(everything(reader)["n"].to_pylist()) == list(range(1, 1001))
    assert [batch.num_rows for batch in reader.read(10, 20, [])] == [10]
    assert next(reader.read(0, 1000)).num_rows > 0  # and the rest is not read
    source.unpin(first, folder)
    with pytest.raises(SourceError, match="pinned rows of this job no longer exist"):
        open_reader(first, folder)
    assert source.unpin_abandoned() == 0
    shutil.rmtree(folder)  # as the next session does when the client died
    assert source.unpin_abandoned() == 2
    assert row_tables(source) == []


def test_the_tables_of_others_are_left_to_them(
    source: PostgreSQLSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.pin("SELECT 1 AS a", tmp_path / "gone", seed=1, shuffle=False)
    shutil.rmtree(tmp_path / "gone")
    source.execute("CREATE TABLE sqlflow_edl_rows_mine (a int)")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert source.unpin_abandoned() == 0
    monkeypatch.setattr(pinned_tables, "KEPT_DAYS", -1)
    assert source.unpin_abandoned() == 1
    assert row_tables(source) == ["sqlflow_edl_rows_mine"]


def test_who_may_only_read_gets_the_same_rows_as_a_file(
    postgresql: Server, database: str, source: PostgreSQLSource, tmp_path: Path
) -> None:
    numbers(source, 500)
    postgresql.run(f"CREATE USER r{database} PASSWORD '{PASSWORD}'")
    source.execute(f"GRANT SELECT ON t TO r{database}")
    with connect(postgresql.url(database, user=f"r{database}")) as reading:
        pinned = reading.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
        assert pinned.table is None
        assert [path.name for path in tmp_path.glob("*.arrow")] == ["rows.arrow"]
        assert "cannot create tables in the schema public" in reading.how_rows_are_kept()
        with pytest.raises(SourceError, match="permission denied") as caught:
            reading.stage("out", "job", 0, 0, [pa.record_batch({"a": [1]})])
        assert "GRANT USAGE, CREATE ON SCHEMA public" in str(caught.value.hint)
    ours = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
    assert everything(open_reader(ours, tmp_path)).equals(everything(open_reader(pinned, tmp_path)))
    assert source.how_rows_are_kept() == ""
    assert len(row_tables(source)) == 1


@pytest.mark.soak
def test_a_reader_that_garbage_collection_finds_amid_a_result_ends_in_silence(
    source: PostgreSQLSource, tmp_path: Path
) -> None:
    """pytest turns what a finalizer prints into an error."""
    numbers(source, 1000)
    found = source.pin("SELECT * FROM t", tmp_path, seed=0, shuffle=False)
    for _ in range(5):
        cycle: dict[str, object] = {"rows": open_reader(found, tmp_path).read(0, 1000)}
        assert next(cycle["rows"])  # type: ignore[call-overload]
        cycle["itself"] = cycle
        del cycle
        gc.collect()


def test_rows_of_a_temporary_table_can_be_pinned(source: PostgreSQLSource, tmp_path: Path) -> None:
    source.stage_temporary("mine", pa.table({"a": [3, 1, 2]}).to_reader())
    found = source.pin("SELECT a FROM mine ORDER BY a", tmp_path, seed=0, shuffle=False)
    assert everything(open_reader(found, tmp_path))["a"].to_pylist() == [1, 2, 3]
    source.drop_temporary("mine")
    with pytest.raises(SourceError, match='relation "mine" does not exist'):
        source.schema("SELECT a FROM mine")


# Connections -------------------------------------------------------------------------------------------------


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "work",
    [
        soak(lambda source: source.check_target("out")),
        lambda source: source.stage("out", "job", 0, 1, [pa.record_batch({"a": [2]})]),
        lambda source: source.commit("out", "job", 1),
        soak(lambda source: source.sweep(lambda job: True)),
        lambda source: source.schema("SELECT 1 AS a"),
        soak(lambda source: source.tables()),
    ],
    ids=["check", "stage", "commit", "sweep", "schema", "tables"],
)
def test_what_a_lost_connection_undid_may_be_tried_again(
    postgresql: Server, source: PostgreSQLSource, work: Callable[[PostgreSQLSource], object]
) -> None:
    source.stage("out", "job", 0, 0, [pa.record_batch({"a": [1]})])
    postgresql.run(f"SELECT pg_terminate_backend({source.connection.driver.info.backend_pid}, 10000)")
    with pytest.raises(ConflictError, match="was lost"):
        work(source)
    work(source)


def test_a_connection_that_was_lost_while_it_was_idle_is_replaced(
    postgresql: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_SECS", -1.0)
    with connect(postgresql.url(database, options="?schema=public")) as source:
        postgresql.run(f"SELECT pg_terminate_backend({source.connection.driver.info.backend_pid}, 10000)")  # type: ignore[attr-defined]
        assert rows(source, "SELECT current_setting('search_path') AS path") == [{"path": "public, public"}]


@contextmanager
def stopping(source: Source) -> Iterator[None]:
    """Interrupts the source until the end; the statement may not have begun yet."""
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.01):
            source.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.soak
@pytest.mark.parametrize(
    "query", ["SELECT pg_sleep(60)::text AS a", "CREATE TABLE x AS SELECT pg_sleep(60)::text"]
)
def test_a_statement_is_stopped_from_another_thread_and_the_connection_goes_on(
    source: PostgreSQLSource, query: str
) -> None:
    with stopping(source), pytest.raises(SourceError, match="canceling statement due to user request"):
        source.execute(query)
    assert rows(source, "SELECT 1 AS x") == [{"x": 1}]
    source.interrupt()  # nothing
    assert source.tables() == []


def test_a_query_that_waits_for_a_lock_while_it_is_described_is_stopped(
    postgresql: Server, database: str, source: PostgreSQLSource
) -> None:
    source.execute("CREATE TABLE t (a int)")
    with connect(postgresql.url(database)) as other, other.transaction():
        other.execute("LOCK TABLE t")
        with stopping(source), pytest.raises(SourceError, match="canceling statement due to user request"):
            source.schema("SELECT a FROM t")
    assert source.schema("SELECT a FROM t").names == ["a"]


def test_a_host_may_be_tried_again_if_its_name_is_not_found() -> None:
    with pytest.raises(UnreachableError, match=r"failed to resolve host 'db\.invalid'") as caught:
        connect("postgresql://reader:secret@db.invalid/shop")
    assert caught.value.hint == "check the name of the host, and the name service"


@pytest.mark.parametrize(
    ("change", "words", "unreachable"),
    [
        ({"password": "wrong"}, "password authentication failed", False),
        ({"database": "nowhere"}, 'database "nowhere" does not exist', False),
        ({"port": 1}, "Connection refused", True),
        ({"options": "?pni=file"}, "no option pni", False),
        ({"options": "?password=secret"}, "no option password", False),
        ({"options": "?sslmode=require"}, "server does not support SSL", False),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_password(
    postgresql: Server, database: str, change: dict[str, object], words: str, unreachable: bool
) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        connect(postgresql.url(**{"database": database, **change}))  # type: ignore[arg-type]
    assert PASSWORD not in str(caught.value)
    assert isinstance(caught.value, UnreachableError) is unreachable
    assert caught.value.hint


def test_a_password_of_libpq_reaches_the_processes_of_a_job(
    postgresql: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the environment, or from the file that psql reads; and postgres:// is the same scheme."""
    monkeypatch.setenv(SECRETS, "{}")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = postgresql.url(database, password="").replace(":@", "@").replace("postgresql:", "postgres:")
    with connect(url) as source:
        assert source.url.startswith("postgresql://owner@")
    monkeypatch.delenv("PGPASSWORD")
    assert parse(url).with_password().password == PASSWORD  # type: ignore[union-attr]
    connect(url).close()


def test_an_old_server_is_named(postgresql: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAST_VERSION", 99)
    with pytest.raises(SourceError, match=r"the server is PostgreSQL \d+; PostgreSQL 99 or later is needed"):
        connect(postgresql.url("postgres"))


@pytest.mark.soak
def test_the_query_of_a_client_that_was_killed_ends(
    postgresql: Server, database: str, source: PostgreSQLSource
) -> None:
    program = (
        "import sys; from edl.data import connect; from edl.sources.postgresql import connection\n"
        "connection.CHECK_MS = 50\n"
        "connect(sys.stdin.read()).stream('SELECT count(*) AS endless FROM generate_series(1, 1000000000000)')"
    )
    running = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%AS endless%' AND pid <> pg_backend_pid()"
    active = f"{running} AND state = 'active'"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, text=True) as client:
        assert client.stdin is not None
        client.stdin.write(postgresql.url(database))
        client.stdin.close()
        while not rows(source, active):
            assert client.poll() is None
            rows(source, "SELECT 1 AS waited FROM pg_sleep(0.02)")
        client.kill()
    deadline = time.monotonic() + 30
    while rows(source, running):
        assert time.monotonic() < deadline
        rows(source, "SELECT 1 AS waited FROM pg_sleep(0.02)")
