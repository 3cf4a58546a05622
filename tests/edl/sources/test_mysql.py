"""MySQL as a source: types, rights, connections that are cut, tables left by makers that died, other writers."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import Reader, Source, connect, open_reader
from edl.data.arrow_types import database_type
from edl.data.source import ConflictError, Pinned, UnreachableError
from edl.data.url import parse
from edl.errors import SourceError
from edl.sources import pinned_tables, server
from edl.sources.mysql import drivers, pinning, types, upload
from edl.sources.mysql.connection import open_connection
from edl.sources.mysql.source import MySQLSource
from tests.cutting import proxied
from tests.mariadb import PASSWORD, Server

UTC = dt.UTC


@pytest.fixture
def database(mariadb: Server) -> str:
    return mariadb.database()


@pytest.fixture
def source(mariadb: Server, database: str) -> Iterator[MySQLSource]:
    with connect(mariadb.url(database)) as opened:
        assert isinstance(opened, MySQLSource)
        yield opened


def everything(reader: Reader, columns: list[str] | None = None) -> pa.Table:
    return pa.Table.from_batches(reader.read(0, reader.rows, columns))


def rows(source: Source, query: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = source.stream(query).read_all().to_pylist()
    return found


def shown(source: Source, sql: str) -> list[dict[str, object]]:
    found = source.execute(sql)
    assert found is not None
    listed: list[dict[str, object]] = found.read_all().to_pylist()
    return listed


def row_tables(source: MySQLSource) -> list[str]:
    return tables_like(source, "sqlflow\\_edl\\_rows\\_%")


def tables_like(source: MySQLSource, pattern: str) -> list[str]:
    query = (
        "SELECT table_name AS t FROM information_schema.tables"
        f" WHERE table_schema = DATABASE() AND table_name LIKE '{pattern}'"
    )
    return [str(each["t"]) for each in rows(source, query)]


# Types -------------------------------------------------------------------------------------------------------

TYPES = [
    ("TINYINT", pa.int8(), ["-128", "127"], [-128, 127]),
    ("TINYINT UNSIGNED", pa.uint8(), ["255"], [255]),
    ("SMALLINT", pa.int16(), ["-32768"], [-32768]),
    ("SMALLINT UNSIGNED", pa.uint16(), ["65535"], [65535]),
    ("MEDIUMINT", pa.int32(), ["-8388608"], [-8388608]),
    ("MEDIUMINT UNSIGNED", pa.uint32(), ["16777215"], [16777215]),
    ("INT", pa.int32(), ["-2147483648"], [-(2**31)]),
    ("INT UNSIGNED", pa.uint32(), ["4294967295"], [2**32 - 1]),
    ("BIGINT", pa.int64(), ["-9223372036854775808"], [-(2**63)]),
    ("BIGINT UNSIGNED", pa.uint64(), ["18446744073709551615"], [2**64 - 1]),
    ("BOOLEAN", pa.bool_(), ["TRUE", "FALSE"], [True, False]),
    ("BIT(1)", pa.bool_(), ["b'1'", "b'0'"], [True, False]),
    ("BIT(12)", pa.uint64(), ["b'100000000001'"], [2049]),
    ("BIT(64)", pa.uint64(), ["18446744073709551615"], [2**64 - 1]),
    ("FLOAT", pa.float32(), ["16777216", "0.5"], [16777216.0, 0.5]),
    ("DOUBLE", pa.float64(), ["0.1", "1e300", "-0.30000000000000004"], [0.1, 1e300, -0.30000000000000004]),
    ("DECIMAL(10, 2)", pa.decimal128(10, 2), ["-12345678.90"], [Decimal("-12345678.90")]),
    ("DECIMAL(12, 0) UNSIGNED", pa.decimal128(12, 0), ["999999999999"], [Decimal(999999999999)]),
    ("DECIMAL(38, 30)", pa.decimal128(38, 30), ["0.5"], [Decimal("0.5")]),
    ("DATE", pa.date32(), ["'2024-02-29'", "'9999-12-31'"], [dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    ("TIME", pa.time64("us"), ["'23:59:59'"], [dt.time(23, 59, 59)]),
    ("TIME(6)", pa.time64("us"), ["'01:02:03.000004'"], [dt.time(1, 2, 3, 4)]),
    ("DATETIME", pa.timestamp("us"), ["'2024-02-29 01:02:03'"], [dt.datetime(2024, 2, 29, 1, 2, 3)]),
    ("DATETIME(6)", pa.timestamp("us"), ["'1000-01-01 00:00:00.000001'"], [dt.datetime(1000, 1, 1, 0, 0, 0, 1)]),
    ("TIMESTAMP(3) NULL", pa.timestamp("us", "UTC"), ["'2024-02-29 01:02:03.5'"],
     [dt.datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=UTC)]),
    ("YEAR", pa.int16(), ["2155"], [2155]),
    ("CHAR(4)", pa.string(), ["'a'", "''"], ["a", ""]),
    ("VARCHAR(9) CHARACTER SET latin1", pa.string(), ["'größe'"], ["größe"]),
    ("TEXT COLLATE utf8mb4_bin", pa.string(), ["'表\\t\\n\\\\'"], ["表\t\n\\"]),
    ("LONGTEXT", pa.string(), ["'\U0001f600'"], ["\U0001f600"]),
    ("BINARY(3)", pa.binary(), ["x'00ff'"], [b"\0\xff\0"]),
    ("VARBINARY(3)", pa.binary(), ["x'00ff'", "''"], [b"\0\xff", b""]),
    ("BLOB", pa.binary(), ["x'ff5c0a09'"], [b"\xff\\\n\t"]),
    ("ENUM('a', 'b,c')", pa.string(), ["'b,c'"], ["b,c"]),
    ("SET('x', 'y')", pa.string(), ["'x,y'", "''"], ["x,y", ""]),
    ("JSON", pa.string(), ["'{\"a\": [1, null]}'"], ['{"a": [1, null]}']),
    ("UUID", pa.string(), ["'123e4567-e89b-12d3-a456-426614174000'"], ["123e4567-e89b-12d3-a456-426614174000"]),
    ("INET6", pa.string(), ["'::1'"], ["::1"]),
]  # fmt: skip


def test_every_type_comes_as_what_it_is_from_a_query_and_from_pinned_rows(
    source: MySQLSource, tmp_path: Path
) -> None:
    """All types in one table, NULLs in each; what we write of them comes back as it was."""
    names = [f"c{number}" for number in range(len(TYPES))]
    columns = ", ".join(f"{name} {declared}" for name, (declared, *_) in zip(names, TYPES, strict=True))
    source.execute(f"CREATE TABLE t (n INT PRIMARY KEY, {columns})")
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
    assert found.drop(["c14"]).equals(wanted.drop(["c14"]))  # the server rounds a FLOAT to six digits
    pinned = source.pin(query, tmp_path, seed=0, shuffle=False)
    assert everything(open_reader(pinned, tmp_path)).equals(wanted)
    source.stage("copy", "job", 0, 0, wanted.to_reader())
    source.commit("copy", "job", 1)
    copied = source.stream("SELECT * FROM copy").read_all().drop(["c14"])
    assert copied.cast(wanted.drop(["c14"]).schema).equals(wanted.drop(["c14"]))


@pytest.mark.parametrize(
    ("query", "words", "hint"),
    [
        ("SELECT x FROM t", r"column x is a TINYINT\(1\), a boolean, but holds 5", "CAST(x AS SIGNED)"),
        ("SELECT z FROM t", "column z holds '0000-00-00', which is not a date", "NULLIF(z, 0)"),
        ("SELECT w FROM t", "column w holds '25:00:00'", "TIME_TO_SEC(w)"),
        ("SELECT d FROM t", "column d holds", "CAST(d AS DOUBLE)"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_travel_is_named_with_what_to_write(
    source: MySQLSource, query: str, words: str, hint: str
) -> None:
    source.execute("SET sql_mode = ''")
    source.execute("CREATE TABLE t (x TINYINT(1), z DATE, w TIME, d DECIMAL(65, 30), g POINT)")
    source.execute(f"INSERT INTO t VALUES (5, '0000-00-00', '25:00:00', {'9' * 20}, POINT(1, 2))")
    with pytest.raises(SourceError, match=words) as caught:
        source.stream(query).read_all()
    assert hint in str(caught.value.hint)


SPRING, AUTUMN = "2024-03-31 00:30:00", "2024-10-27 00:30:00"


def test_instants_come_in_utc_whatever_the_time_zone_of_the_session(
    source: MySQLSource, tmp_path: Path
) -> None:
    source.execute("CREATE TABLE t (at TIMESTAMP NULL)")
    source.execute(f"INSERT INTO t VALUES ('{SPRING}'), ('{AUTUMN}'), (NULL)")
    query = "SELECT at FROM t ORDER BY at"
    wanted = rows(source, query)
    pinned = source.pin(query, tmp_path, seed=0, shuffle=False)
    for zone in ("-04:00", "+05:30", "+00:00"):
        source.execute(f"SET time_zone = '{zone}'")
        assert rows(source, query) == wanted
        assert shown(source, query) == wanted
        again = source.pin(query, tmp_path, seed=0, shuffle=False)
        assert everything(open_reader(again, tmp_path)).to_pylist() == wanted
        assert again.digest == pinned.digest
        assert rows(source, "SELECT @@time_zone AS z") == [{"z": zone}]


def test_a_statement_with_a_time_zone_of_its_own_shows_the_servers_texts(source: MySQLSource) -> None:
    source.execute("CREATE TABLE t (at TIMESTAMP NULL)")
    source.execute(f"INSERT INTO t VALUES ('{SPRING}')")
    other = "SET STATEMENT time_zone = '+01:00' FOR SELECT at FROM t"
    assert shown(source, other) == [{"at": "2024-03-31 01:30:00"}]
    assert rows(source, "SELECT @@time_zone AS z") == [{"z": "+00:00"}]


def test_an_hour_that_a_zone_has_twice_is_shown_as_text_and_refused_to_jobs() -> None:
    column = types.MySQLColumn("at", pa.timestamp("us", "UTC"))
    sent = [pa.array([b"2024-10-27 02:30:00", b"2024-06-01 17:00:00", None])]
    found = types.displayed_batch([column], sent, "Europe/Berlin")
    assert found.column("at").to_pylist() == ["2024-10-27 02:30:00", "2024-06-01 15:00:00+00:00", None]
    with pytest.raises(SourceError, match="'2024-10-27 02:30:00', of which the time zone") as caught:
        types.batch([column], sent, "Europe/Berlin")
    assert caught.value.hint == "SET time_zone = '+00:00'"


def test_rows_with_values_that_cannot_travel_are_pinned_and_their_other_columns_are_read(
    source: MySQLSource, tmp_path: Path
) -> None:
    source.execute("SET sql_mode = ''")
    source.execute("CREATE TABLE t (a INT, z DATE, g POINT)")
    source.execute("INSERT INTO t VALUES (1, '0000-00-00', POINT(1, 2)), (2, '2024-02-29', NULL)")
    assert database_type(source.schema("SELECT * FROM t").field("g")) == ("GEOMETRY", "ST_AsText(`g`) AS `g`")
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=0, shuffle=True)
    reader = open_reader(pinned, tmp_path)
    assert sorted(everything(reader, ["a"])["a"].to_pylist()) == [1, 2]
    assert everything(reader, ["g"])["g"].null_count == 1
    with pytest.raises(SourceError, match="column z holds '0000-00-00'"):
        everything(reader)


@pytest.mark.parametrize("load", [True, False])
def test_rows_are_written_by_load_data_and_by_inserts_alike(
    source: MySQLSource, monkeypatch: pytest.MonkeyPatch, load: bool
) -> None:
    monkeypatch.setattr(upload, "may_load", lambda _: load)
    texts = ["", None, "\\N", "NULL", "a\tb\nc\\", "it's", '"', "größe 表", "x" * 70_000] * 40
    table = pa.table(
        {
            "text": texts,
            "bytes": pa.array([None if text is None else b"\0\xff'" + text.encode() for text in texts]),
            "x": [float("nan"), 1e-300, None, -1.5, 2.0, 3.0, 4.0, 5.0, float("inf")] * 40,
        }
    )
    source.stage("t", "job", 0, 0, table.to_batches(100))
    source.commit("t", "job", 1)
    found = source.stream("SELECT * FROM t").read_all()
    assert found["text"].to_pylist() == texts
    assert found["bytes"].to_pylist() == table["bytes"].to_pylist()
    assert found["x"].to_pylist() == [None, 1e-300, None, -1.5, 2.0, 3.0, 4.0, 5.0, None] * 40


@pytest.mark.parametrize("load", [True, False])
def test_a_value_that_does_not_fit_is_an_error_and_never_cut_short(
    source: MySQLSource, monkeypatch: pytest.MonkeyPatch, load: bool
) -> None:
    monkeypatch.setattr(upload, "may_load", lambda _: load)
    late = pa.table({"at": pa.array([2**53], pa.timestamp("us", "UTC"))})
    with pytest.raises(SourceError, match=r"(?i)incorrect datetime value|out of range"):
        source.stage("t", "job", 0, 0, late.to_reader())
    with pytest.raises(SourceError, match="no staged rows"):
        source.commit("t", "job", 1)


def column_types(source: MySQLSource, table: str) -> dict[str, str]:
    query = (
        "SELECT column_name AS name, column_type AS type FROM information_schema.columns"
        f" WHERE table_schema = DATABASE() AND table_name = '{table}' AND column_name NOT LIKE 'sqlflow%'"
    )
    return {str(row["name"]): str(row["type"]) for row in rows(source, query)}


def test_short_texts_become_columns_that_can_be_joined_and_indexed(source: MySQLSource) -> None:
    """However the tasks come, the longest of all counts, in characters."""
    texts = {
        "code": ["ab", "größe 表" * 9],
        "note": ["", "x" * 65],
        "essay": ["x" * 256, "x"],
        "none": [None] * 2,
    }
    for task in (1, 0):
        given = {name: pa.array([values[task]], pa.string()) for name, values in texts.items()}
        source.stage("t", "job", task, 0, [pa.record_batch(given)])
    source.commit("t", "job", 2)
    wide, wider, longest = "varchar(64)", "varchar(255)", "longtext"
    assert column_types(source, "t") == {"code": wide, "note": wider, "essay": longest, "none": wide}
    assert source.stream("SELECT * FROM t").read_all().to_pydict() == texts
    source.execute("CREATE INDEX by_code ON t (code, note)")


@pytest.mark.soak
def test_a_table_with_more_short_texts_than_a_row_has_room_for_keeps_the_longer_ones_long(
    source: MySQLSource,
) -> None:
    row = {f"c{n}": ["x" * (200 if n % 2 else 20)] for n in range(180)}
    source.stage("t", "job", 0, 0, [pa.record_batch(row)])
    source.commit("t", "job", 1)
    found = list(column_types(source, "t").values())
    assert found.count("varchar(64)") == 90
    assert found.count("varchar(255)") > 0 < found.count("longtext")
    assert rows(source, "SELECT * FROM t") == [{name: value for name, [value] in row.items()}]


@pytest.mark.soak
def test_a_task_done_again_may_have_longer_texts_after_a_commit_that_stopped(
    source: MySQLSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise ConflictError("the connection was lost")

    for task in (0, 1):
        source.stage("t", "job", task, 0, [pa.record_batch({"a": ["short"]})])
    with monkeypatch.context() as patch, pytest.raises(ConflictError):
        patch.setattr(source._results, "_rename", stopped)
        source.commit("t", "job", 2)
    source.stage("t", "job", 1, 1, [pa.record_batch({"a": ["x" * 1000]})])
    assert source.commit("t", "job", 2) == 2
    assert rows(source, "SELECT a FROM t") == [{"a": "short"}, {"a": "x" * 1000}]


@pytest.mark.soak
def test_large_tables_are_joined_over_texts_without_an_index(source: MySQLSource) -> None:
    """By hashing; each with each would be 400 million pairs, which takes minutes."""
    for table in ("one", "other"):
        texts = pa.array([f"key {n}" for n in range(20_000)])
        source.stage(table, "job", 0, 0, [pa.record_batch({"k": texts})])
        source.commit(table, "job", 1)
    plan = source.execute("EXPLAIN SELECT * FROM one LEFT JOIN other USING (k)")
    assert plan is not None
    assert "BNLH" in plan.read_all()["Extra"][1].as_py()
    assert rows(source, "SELECT COUNT(*) AS n FROM one LEFT JOIN other USING (k)") == [{"n": 20_000}]


# Pinned rows -------------------------------------------------------------------------------------------------


def numbered(source: MySQLSource, count: int) -> None:
    source.execute(
        f"CREATE TABLE t AS SELECT CAST(seq AS SIGNED) AS n, REPEAT('x', 50) AS text FROM seq_1_to_{count}"
    )


@pytest.mark.variants(1)
@pytest.mark.parametrize("driver", ["pymysql", "connectorx"])
def test_a_range_is_read_on_where_it_was_when_the_connection_is_cut(
    mariadb: Server,
    database: str,
    source: MySQLSource,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    driver: str,
) -> None:
    pytest.importorskip(driver)
    monkeypatch.setattr(drivers, "FETCH_ROWS", 100)
    monkeypatch.setattr(pinned_tables, "Patience", lambda: _Patience(limit=30))
    original = drivers.connect
    monkeypatch.setattr(drivers, "connect", lambda url: original(url, driver))
    numbered(source, 10_000)
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
    with proxied(mariadb.port, after=5_000, left=10) as proxy:
        there = str(parse(mariadb.url(database, port=proxy.port)))
        parse(mariadb.url(database, port=proxy.port)).with_password()  # type: ignore[union-attr]
        reader = open_reader(_moved(pinned, there), tmp_path)
        found = everything(reader, ["n"])["n"].to_pylist()
        assert proxy.left == 0
    assert found == everything(open_reader(pinned, tmp_path), ["n"])["n"].to_pylist()
    assert sorted(found) == list(range(1, 10_001))
    assert found != sorted(found)


class _Patience(pinned_tables.Patience):
    """Never sleeps; gives up after so many attempts in a row."""

    def __init__(self, limit: int) -> None:
        clock = iter(range(0, 1000, max(1, int(pinned_tables.RETRY_SECS) // limit)))
        super().__init__(now=lambda: float(next(clock)), sleep=lambda _: None)


def _moved(pinned: Pinned, url: str) -> Pinned:
    import msgspec

    return msgspec.structs.replace(pinned, source=url)


def test_a_server_that_stays_away_is_an_error_in_the_end(
    mariadb: Server, database: str, source: MySQLSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(source, 10_000)
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=False)
    monkeypatch.setattr(pinned_tables, "Patience", lambda: _Patience(limit=10))
    with proxied(mariadb.port, after=0, left=1_000_000) as proxy:
        url = parse(mariadb.url(database, port=proxy.port))
        assert pinned.table is not None
        reader = pinning.MySQLRowReader(url, pinned.table, [pinning.MySQLColumn("n", pa.int64())], 10_000)  # type: ignore[arg-type]
        with pytest.raises(SourceError, match=r"lost|Lost|reading"):
            list(reader.read(0, 10_000))


def test_pinned_rows_stay_what_they_were_and_go_with_their_job(source: MySQLSource, tmp_path: Path) -> None:
    numbered(source, 1000)
    folder = tmp_path / "rows"
    first = source.pin("SELECT * FROM t", folder, seed=1, shuffle=True)
    source.execute("UPDATE t SET n = -n")
    second = source.pin("SELECT -n AS n, text FROM t ORDER BY n", folder, seed=1, shuffle=True)
    assert min(everything(open_reader(first, folder))["n"].to_pylist()) == 1
    one, other = (everything(open_reader(each, folder)).to_pydict() for each in (first, second))
    assert one == other
    assert source.pin("SELECT * FROM t", folder, seed=2, shuffle=True).digest != first.digest
    source.unpin(first, folder)
    source.unpin(first, folder)
    with pytest.raises(SourceError, match="pinned rows of this job no longer exist"):
        open_reader(first, folder)
    assert len(row_tables(source)) == 2
    assert source.unpin_abandoned() == 0
    shutil.rmtree(folder)  # as the next session does when the client died
    assert source.unpin_abandoned() == 2
    assert row_tables(source) == []


def test_the_tables_of_others_are_left_to_them(
    source: MySQLSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(source, 10)
    source.pin("SELECT * FROM t", tmp_path / "gone", seed=1, shuffle=False)
    shutil.rmtree(tmp_path / "gone")
    source.execute("CREATE TABLE sqlflow_edl_rows_mine (a INT)")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another user"))
    assert source.unpin_abandoned() == 0
    monkeypatch.setattr(pinned_tables, "KEPT_DAYS", -1)
    assert source.unpin_abandoned() == 1
    assert row_tables(source) == ["sqlflow_edl_rows_mine"]


def test_who_may_only_read_gets_the_same_rows_as_a_file(
    mariadb: Server, database: str, source: MySQLSource, tmp_path: Path
) -> None:
    numbered(source, 500)
    mariadb.run(
        f"CREATE USER {database}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT SELECT ON {database}.* TO {database}@'127.0.0.1'",
    )
    with connect(mariadb.url(database, user=database)) as reading:
        pinned = reading.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
        assert pinned.table is None
        assert [path.name for path in tmp_path.glob("*.arrow")] == ["rows.arrow"]
        assert "cannot create tables" in reading.how_rows_are_kept()
    ours = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
    assert everything(open_reader(ours, tmp_path)).equals(everything(open_reader(pinned, tmp_path)))
    assert source.how_rows_are_kept() == ""


# Writers that die --------------------------------------------------------------------------------------------

DYING = """
import os, signal, sys
import pyarrow as pa
from edl.data import connect
from edl.sources.mysql import results
source = connect(os.environ["SQLFLOW_SOURCE"])
if sys.argv[1] == "filling":
    def batches():
        yield pa.record_batch({"a": [7] * 1000})
        os.kill(os.getpid(), signal.SIGKILL)
    source.stage("t", "job", 0, 1, batches())
source._results._drop_staged = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
record = results.MySQLResults._rename
def renamed(self, *arguments, **named):
    record(self, *arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "swapping":
    results.MySQLResults._rename = renamed
source.commit("t", "job", 1)
"""


@pytest.mark.variants(1)
@pytest.mark.parametrize("when", ["filling", "swapping", "cleaning"])
def test_rows_count_once_when_their_writer_is_killed(
    mariadb: Server, database: str, source: MySQLSource, when: str
) -> None:
    source.stage("t", "before", 0, 0, [pa.record_batch({"a": [0]})])
    source.commit("t", "before", 1)
    source.stage("t", "job", 0, 0, [pa.record_batch({"a": [1, 2]})])
    environment = {**os.environ, "SQLFLOW_SOURCE": mariadb.url(database)}
    ended = subprocess.run([sys.executable, "-c", DYING, when], env=environment, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    if when == "filling":
        assert source.stage("t", "job", 0, 1, [pa.record_batch({"a": [1, 2]})]) == 2
    assert source.commit("t", "job", 1) == 2
    assert source.commit("t", "job", 1) == 2
    assert rows(source, "SELECT a FROM t") == [{"a": 1}, {"a": 2}]
    assert tables_like(source, "%stage\\_%") == tables_like(source, "%\\_old\\_%") == []


# The connection ----------------------------------------------------------------------------------------------


def test_a_connection_that_the_server_ended_is_replaced_before_the_next_statement(
    mariadb: Server, source: MySQLSource, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(server, "IDLE_SECS", -1.0)
    mariadb.run(f"KILL {source.connection.thread_id()}")
    assert rows(source, "SELECT 1 AS a") == [{"a": 1}]


def test_a_connection_lost_in_a_transaction_rolls_it_back_and_says_so(
    mariadb: Server, source: MySQLSource
) -> None:
    source.execute("CREATE TABLE t (a INT)")
    with pytest.raises(SourceError, match="was lost"), source.transaction():
        source.execute("INSERT INTO t VALUES (1)")
        mariadb.run(f"KILL {source.connection.thread_id()}")
        source.execute("INSERT INTO t VALUES (2)")
    assert rows(source, "SELECT * FROM t") == []


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    "work",
    [
        lambda source: source.check_target("out"),
        lambda source: source.stage("out", "job", 1, 0, [pa.record_batch({"a": [2]})]),
        lambda source: source.commit("out", "job", 1),
        lambda source: source.abort("out", "job"),
        lambda source: source.sweep(lambda job: True),
        lambda source: source.unpin_abandoned(),
        lambda source: source.tables(),
    ],
    ids=["check", "stage", "commit", "abort", "sweep", "unpin", "tables"],
)
def test_what_a_lost_connection_undid_may_be_tried_again(
    mariadb: Server, source: MySQLSource, work: Callable[[MySQLSource], object]
) -> None:
    source.stage("out", "job", 0, 0, [pa.record_batch({"a": [1]})])
    mariadb.run(f"KILL {source.connection.thread_id()}")
    with pytest.raises(ConflictError, match="was lost"):
        work(source)
    work(source)


def test_a_server_that_is_away_is_told_from_one_that_refuses(mariadb: Server) -> None:
    with pytest.raises(UnreachableError, match=r"cannot open .*: 127\.0\.0\.1:1: the connection is refused"):
        connect(mariadb.url(port=1))
    with pytest.raises(SourceError, match="cannot open") as refused:
        connect(mariadb.url(user="nobody"))
    assert not isinstance(refused.value, UnreachableError)


def test_in_a_pod_it_is_said_that_the_client_did_reach_it(
    mariadb: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreachableError) as here:
        connect(mariadb.url(port=1))
    monkeypatch.setenv("EDL_MASTER", "job.team-a.svc:50001")
    with pytest.raises(UnreachableError) as in_pod:
        connect(mariadb.url(port=1))
    assert here.value.hint == "check host and port, and that the server is running"
    assert (in_pod.value.hint or "").startswith(
        "pods do not reach it, though the client did: check the name service"
    )


def test_a_running_statement_is_stopped_from_another_thread(source: MySQLSource) -> None:
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.05):
            source.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SourceError, match="interrupt") as caught:
            source.execute(
                "CREATE TABLE x AS SELECT SUM(a.seq * b.seq) s FROM seq_1_to_90000 a, seq_1_to_90000 b"
            )
    finally:
        ended.set()
        thread.join()
    assert caught.value.hint == "the statement was stopped"
    assert source.tables() == []


def test_a_statement_that_is_broken_off_here_does_not_go_on_there(
    source: MySQLSource, mariadb: Server
) -> None:
    """Nobody calls `interrupt`: Ctrl-C may be heard before that is."""
    number = source.connection.thread_id()
    running = f"SELECT 1 FROM information_schema.processlist WHERE id = {number} AND info LIKE '%seq_%'"

    def break_off() -> None:
        until(lambda: mariadb.run(running))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=break_off)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        source.execute("SELECT SUM(a.seq * b.seq) s FROM seq_1_to_90000 a, seq_1_to_90000 b")
    thread.join()
    until(lambda: not mariadb.run(running))


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_server_is_given_no_file_of_this_machine(source: MySQLSource, tmp_path: Path) -> None:
    source.execute("CREATE TABLE t (a TEXT)")
    secret = tmp_path / "secret"
    secret.write_text("mine", encoding="utf-8")
    with pytest.raises(SourceError, match="requested a file of this machine"):
        source.execute(f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE t")
    assert rows(source, "SELECT * FROM t") == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"password": "wrong"}, "Access denied"),
        ({"database": "nowhere"}, "Unknown database 'nowhere'"),
        ({"port": 1}, "(?i)can't connect|the connection is refused"),
        ({"options": "?pni=file"}, "no option pni"),
    ],
)
def test_what_is_wrong_with_a_url_is_said_without_its_password(
    mariadb: Server, database: str, change: dict[str, object], words: str
) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        connect(mariadb.url(**{"database": database, **change}))  # type: ignore[arg-type]
    assert PASSWORD not in str(caught.value)


def test_an_old_server_is_named(mariadb: Server, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from edl.sources.mysql import connection

    monkeypatch.setitem(connection._VERSIONS, "MariaDB", (99, 1, 0))
    with pytest.raises(SourceError, match=r"the server is MariaDB .*; MariaDB 99\.1\.0 or later is needed"):
        open_connection(parse(mariadb.url(database)))  # type: ignore[arg-type]


def test_a_table_that_is_too_wide_is_refused_with_the_limit(source: MySQLSource) -> None:
    with pytest.raises(SourceError, match="Too many columns") as raised:
        source.execute(f"CREATE TABLE wide ({', '.join(f'x{number} DOUBLE' for number in range(1_018))})")
    assert raised.value.hint == "a table of MySQL has at most 1,017 columns; write fewer"
