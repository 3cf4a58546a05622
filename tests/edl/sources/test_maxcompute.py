"""MaxCompute as a source, against a double of the service; what every source owes is tested in test_source."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl.data import connect, open_reader
from edl.data.source import Pinned
from edl.errors import SourceError
from edl.sources.maxcompute import client
from edl.sources.maxcompute.download import TableRows
from edl.sources.maxcompute.source import MaxComputeSource
from tests.maxcompute.faults import Fault
from tests.maxcompute.process import SECRET, Running

UTC = dt.UTC
MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123_000)


@pytest.fixture
def double(maxcompute: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """Nobody waits between attempts; what is made to go wrong goes well again for the next test."""
    monkeypatch.setattr(client, "_FIRST_WAIT", 0.0)
    maxcompute.reset()
    yield maxcompute
    maxcompute.reset()


@pytest.fixture
def url(double: Running) -> str:
    return double.url()


@pytest.fixture
def source(url: str) -> Iterator[MaxComputeSource]:
    with connect(url) as opened:
        assert isinstance(opened, MaxComputeSource)
        yield opened


def fill(source: MaxComputeSource, name: str, table: pa.Table) -> None:
    source.stage(name, f"job-{name}", 0, 0, table.to_reader())
    source.commit(name, f"job-{name}", 1)


def numbers(source: MaxComputeSource, count: int) -> None:
    fill(source, "numbers", pa.table({"n": range(count), "s": [f"s{n}" for n in range(count)]}))


def read(pinned: Pinned, folder: Path, start: int = 0, end: int | None = None) -> list[int]:
    batches = open_reader(pinned, folder).read(start, pinned.rows if end is None else end, ["n"])
    return [n for batch in batches for n in batch["n"].to_pylist()]


@pytest.mark.soak
def test_a_first_request_without_an_answer_is_made_again(
    double: Running, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "CHECK_SECONDS", 1)
    double.go_wrong(Fault("delay", "GET .*/projects/[^/]+$", seconds=5.0))
    with connect(url):
        assert len(double.requests()) == 2


# Types -------------------------------------------------------------------------------------------------------

TYPES: list[tuple[str, str, pa.DataType, Any]] = [
    ("TINYINT", "CAST(-128 AS TINYINT)", pa.int8(), -128),
    ("SMALLINT", "CAST(-32768 AS SMALLINT)", pa.int16(), -32_768),
    ("INT", "CAST(2147483647 AS INT)", pa.int32(), 2**31 - 1),
    ("BIGINT", "CAST(-9223372036854775807 AS BIGINT)", pa.int64(), -(2**63) + 1),
    ("FLOAT", "CAST(0.5 AS FLOAT)", pa.float32(), 0.5),
    ("DOUBLE", "CAST(0.1 AS DOUBLE)", pa.float64(), 0.1),
    ("DECIMAL(10,2)", "CAST('-12345678.90' AS DECIMAL(10,2))", pa.decimal128(10, 2), Decimal("-12345678.90")),
    ("BOOLEAN", "TRUE", pa.bool_(), True),
    ("STRING", "'größe'", pa.string(), "größe"),
    ("VARCHAR(5)", "CAST('größe' AS VARCHAR(5))", pa.string(), "größe"),
    ("CHAR(3)", "CAST('abc' AS CHAR(3))", pa.string(), "abc"),
    ("BINARY", "UNHEX('00ff')", pa.binary(), b"\x00\xff"),
    ("DATE", "DATE '1970-01-01'", pa.date32(), dt.date(1970, 1, 1)),
    ("DATETIME", "CAST('2024-05-06 07:08:09.123' AS DATETIME)", pa.timestamp("ms"), MOMENT),
    (
        "TIMESTAMP",
        "CAST('2024-05-06 07:08:09.123' AS TIMESTAMP)",
        pa.timestamp("ns", "UTC"),
        (MOMENT - dt.timedelta(hours=8)).replace(tzinfo=UTC),
    ),
    ("TIMESTAMP_NTZ", "CAST('2024-05-06 07:08:09.123' AS TIMESTAMP_NTZ)", pa.timestamp("ns"), MOMENT),
    ("ARRAY<BIGINT>", "ARRAY(1L, NULL)", pa.list_(pa.int64()), [1, None]),
    (
        "ARRAY<DATETIME>",
        "ARRAY(CAST('2024-05-06 07:08:09.123' AS DATETIME))",
        pa.list_(pa.timestamp("ms")),
        [MOMENT],
    ),
    ("MAP<STRING,BIGINT>", "MAP('a', 1L)", pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    (
        "STRUCT<x:BIGINT,y:STRING>",
        "NAMED_STRUCT('x', 1L, 'y', 'p')",
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        {"x": 1, "y": "p"},
    ),
]


@pytest.mark.variants(1)
@pytest.mark.parametrize("beside", ["v BIGINT", "v JSON"], ids=["arrow", "records"])
def test_a_column_of_each_type_is_pinned_and_read(
    source: MaxComputeSource, tmp_path: Path, beside: str
) -> None:
    """A column of JSON makes all come as records."""
    columns = ", ".join(f"v{n} {name}" for n, (name, *_) in enumerate(TYPES))
    values = ", ".join(written for _, written, *_ in TYPES)
    nulls = ", ".join("NULL" for _ in TYPES)
    source.execute(f"CREATE TABLE t ({columns}, {beside})")
    source.execute(f"INSERT INTO t SELECT {values}, NULL UNION ALL SELECT {nulls}, NULL")
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=0, shuffle=True)
    found = pa.Table.from_batches(open_reader(pinned, tmp_path).read(0, 2))
    assert found.schema == source.schema("SELECT * FROM t")
    for n, (name, _, kind, value) in enumerate(TYPES):
        column = found[f"v{n}"]
        assert column.type == kind, name
        kept = column.cast(pa.timestamp("us", kind.tz)) if pa.types.is_timestamp(kind) else column
        assert [each for each in kept.to_pylist() if each is not None] == [value], name
    shown = source.execute("SELECT * FROM t")
    assert shown is not None
    assert shown.read_all().schema == found.schema


def test_flags_of_set_reach_the_statements_behind_them(source: MaxComputeSource) -> None:
    assert source.execute("-- small splits\nSET odps.sql.mapper.split.size = 64;") is None
    source.execute("set odps.sql.reshuffle=true")
    [task] = source.run("SELECT 1 AS a").get_tasks()
    flags = json.loads(task.properties["settings"])
    wanted = {
        "odps.sql.mapper.split.size": "64",
        "odps.sql.reshuffle": "true",
        "odps.sql.type.system.odps2": "true",
    }
    assert flags.items() >= wanted.items()
    with pytest.raises(SourceError, match="timezone cannot be SET") as raised:
        source.execute("SET odps.sql.timezone = UTC")
    assert raised.value.hint == "the option timezone of the URL sets it"


def test_json_is_text(source: MaxComputeSource) -> None:
    source.execute("CREATE TABLE t (v JSON)")
    source.execute("""INSERT INTO t VALUES ('{"a": [1, "ö"]}')""")
    assert source.stream("SELECT v FROM t").read_all().to_pylist() == [{"v": '{"a": [1, "ö"]}'}]


def test_a_type_that_cannot_be_used_is_named(source: MaxComputeSource) -> None:
    source.execute("CREATE TABLE t (a BIGINT, v INTERVAL_DAY_TIME)")
    with pytest.raises(SourceError, match="column v is of the type INTERVAL_DAY_TIME, which cannot be used"):
        TableRows(source.client, "t")
    assert TableRows(source.client, "t", displayed=True).schema.field("v").type == pa.string()


def test_every_type_of_arrow_is_stored_and_comes_back(source: MaxComputeSource) -> None:
    given = {
        "u8": pa.array([255, None], pa.uint8()),
        "u64": pa.array([2**64 - 1, None], pa.uint64()),
        "time": pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
        "wait": pa.array([7, None], pa.duration("s")),
        "zoned": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
        "plain": pa.array([MOMENT, None], pa.timestamp("us")),
        "clock": pa.array([MOMENT, None], pa.timestamp("ms")),
        "list": pa.array([[1.5, None], None], pa.list_(pa.float32())),
        "pair": pa.array([{"a": b"x"}, None], pa.struct([("a", pa.binary())])),
        "none": pa.array([None, None], pa.null()),
    }
    fill(source, "t", pa.table(given))
    (row, empty) = source.stream("SELECT * FROM t").read_all().to_pylist()
    assert set(empty.values()) == {None}
    assert (row["u8"], row["u64"], row["time"], row["wait"]) == (255, Decimal(2**64 - 1), "01:02:03", 7)
    assert row["zoned"].to_pydatetime() == MOMENT.replace(tzinfo=UTC)
    assert (row["plain"].to_pydatetime(), row["clock"]) == (MOMENT, MOMENT)
    assert (row["list"], row["pair"], row["none"]) == ([1.5, None], {"a": b"x"}, None)


# Reading -----------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_partitions_are_columns_of_a_query(source: MaxComputeSource, tmp_path: Path) -> None:
    source.execute("CREATE TABLE t (n BIGINT) PARTITIONED BY (pt STRING)")
    for pt, n in (("a", 1), ("b", 2)):
        source.execute(f"INSERT INTO t PARTITION (pt='{pt}') VALUES ({n})")
    pinned = source.pin("SELECT pt, n FROM t WHERE pt = 'b'", tmp_path, seed=0, shuffle=True)
    (batch,) = open_reader(pinned, tmp_path).read(0, 1)
    assert batch.to_pylist() == [{"pt": "b", "n": 2}]


@pytest.mark.soak
def test_a_result_of_more_rows_than_an_instance_has_is_whole(source: MaxComputeSource) -> None:
    numbers(source, 10_001)
    found = source.execute("SELECT n FROM numbers")
    assert found is not None
    assert sorted(found.read_all()["n"].to_pylist()) == list(range(10_001))


@pytest.mark.soak
def test_the_columns_of_a_query_are_asked_for_once_before_its_rows_and_anew_before_the_next(
    source: MaxComputeSource, double: Running, url: str
) -> None:
    numbers(source, 10)

    def statements() -> int:
        return sum("POST" in line and "/instances?" in line for line in double.requests())

    query = "SELECT * FROM numbers"
    double.requests()
    assert source.schema(query).names == ["n", "s"]
    assert statements() == 1
    assert source.stream(query).read_all().num_rows == 10
    assert statements() == 2  # the rows become a table, which is dropped
    with connect(url) as other:
        other.execute("DROP TABLE numbers")
        other.execute("CREATE TABLE numbers (n BIGINT)")
    assert source.schema(query).names == ["n"]
    assert source.stream(query).read_all().num_rows == 0


@pytest.mark.soak
def test_processes_share_one_download_session(
    source: MaxComputeSource, double: Running, tmp_path: Path, in_another_process: Callable[[str], str]
) -> None:
    numbers(source, 1000)
    pinned = source.pin("SELECT * FROM numbers", tmp_path, seed=0, shuffle=True)
    double.requests()
    program = f"""
import msgspec
from pathlib import Path
from urllib.parse import quote
from edl.data import Pinned, open_reader
pinned = msgspec.json.decode({msgspec_json(pinned)!r}, type=Pinned)
print(sum(sum(b["n"].to_pylist()) for b in open_reader(pinned, Path()).read(100, 300)))
"""
    assert int(in_another_process(program)) == sum(read(pinned, tmp_path, 100, 300))
    assert not any("downloads" in line for line in double.requests())
    assert SECRET not in program


@pytest.mark.soak
def test_a_forked_process_opens_connections_of_its_own(
    source: MaxComputeSource, double: Running, tmp_path: Path
) -> None:
    numbers(source, 100)
    pinned = source.pin("SELECT * FROM numbers", tmp_path, seed=0, shuffle=False)
    reader = open_reader(pinned, tmp_path)
    next(reader.read(0, 10))
    source.tables()
    before = {line.split()[0] for line in double.requests()}
    if (child := os.fork()) == 0:
        try:
            source.client.odps.get_table("numbers").reload()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert {line.split()[0] for line in double.requests()}.isdisjoint(before)


@pytest.mark.soak
@pytest.mark.parametrize("column", ["s", "j"], ids=["arrow", "records"])
def test_a_download_that_is_cut_ten_times_loses_and_doubles_nothing(
    source: MaxComputeSource, double: Running, tmp_path: Path, column: str
) -> None:
    """A column of JSON comes as records."""
    count = 70_000 if column == "s" else 7000
    numbers(source, count)
    source.execute("CREATE TABLE t (n BIGINT, s STRING, j JSON)")
    source.execute("INSERT INTO t SELECT n, s, '{}' FROM numbers")
    pinned = source.pin(f"SELECT n, {column} FROM t", tmp_path, seed=3, shuffle=True)
    double.go_wrong(
        *(Fault("cut", "rowrange", skip=1, part=0.4 + n / 20) for n in range(10)),
        Fault("drop", "rowrange"),
        Fault("flip", "rowrange"),
        Fault("short", "rowrange", part=0.5),
        Fault("status", "rowrange", status=429, code="FlowExceeded"),
        Fault("status", "rowrange", status=503),
        Fault("expire", "rowrange"),
    )
    batches = open_reader(pinned, tmp_path).read(0, count)
    found = [n for batch in batches for n in batch["n"].to_pylist()]
    assert sorted(found) == list(range(count))
    double.go_wrong()
    assert found == read(pinned, tmp_path)


@pytest.mark.soak
def test_a_service_that_stays_away_is_an_error_and_not_for_ever(
    source: MaxComputeSource, double: Running, tmp_path: Path
) -> None:
    numbers(source, 10)
    pinned = source.pin("SELECT * FROM numbers", tmp_path, seed=0, shuffle=False)
    double.go_wrong(Fault("status", "rowrange", times=10_000, status=429, code="FlowExceeded"))
    with pytest.raises(SourceError, match="asked for by a test"):
        read(pinned, tmp_path)


def test_pinned_rows_that_are_gone_say_so(source: MaxComputeSource, tmp_path: Path) -> None:
    numbers(source, 10)
    pinned = source.pin("SELECT * FROM numbers", tmp_path, seed=0, shuffle=False)
    source.unpin(pinned, tmp_path)
    source.unpin(pinned, tmp_path)
    with pytest.raises(SourceError, match="the pinned rows of this job no longer exist"):
        open_reader(pinned, tmp_path)


@pytest.mark.soak
def test_equal_rows_and_seeds_have_equal_orders_and_digests(source: MaxComputeSource, tmp_path: Path) -> None:
    rows = pa.table({"n": [n % 50 for n in range(300)], "x": [1 + (n % 9) * 1e-12 for n in range(300)]})
    fill(source, "one", rows)
    fill(source, "two", rows.take(pa.array(range(299, -1, -1))))
    pins = [
        source.pin(f"SELECT * FROM {table}", tmp_path, seed=seed, shuffle=True)
        for table, seed in (("one", 1), ("two", 1), ("two", 2))
    ]
    orders = [read(pinned, tmp_path) for pinned in pins]
    assert orders[0] == orders[1] != orders[2]
    assert pins[0].digest == pins[1].digest != pins[2].digest


def test_tables_of_jobs_without_their_folders_are_dropped(source: MaxComputeSource, tmp_path: Path) -> None:
    numbers(source, 10)
    source.pin("SELECT * FROM numbers", tmp_path / "there", seed=0, shuffle=False)
    source.pin("SELECT * FROM numbers", tmp_path / "gone", seed=0, shuffle=False)
    (tmp_path / "gone").rmdir()
    assert source.unpin_abandoned() == 1
    assert len(source.list_objects("sqlflow_edl_pinned_")) == 1


# Writing -----------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_writer_that_dies_and_is_followed_by_another_writes_once(url: str, double: Running) -> None:
    with connect(url) as first:
        double.go_wrong(Fault("status", "POST .*uploadid", times=10_000, status=400, code="Killed"))
        with pytest.raises(SourceError):
            first.stage("result", "job", 0, 1, [pa.record_batch({"a": [1, 2]})])
    double.go_wrong()
    with connect(url) as second:
        with pytest.raises(SourceError, match="no staged rows"):
            second.commit("result", "job", 1)
        assert second.stage("result", "job", 0, 1, [pa.record_batch({"a": [1, 2]})]) == 2
        assert second.stage("result", "job", 0, 1, [pa.record_batch({"a": [1, 2]})]) == 2
        assert second.commit("result", "job", 1) == 2
        assert second.stream("SELECT a FROM result").read_all()["a"].to_pylist() == [1, 2]


DYING = """
import os, signal
import pyarrow as pa
from edl.data import connect

def batches():
    yield pa.record_batch({"a": [7] * 1000})
    os.kill(os.getpid(), signal.SIGKILL)

connect(os.environ["SQLFLOW_SOURCE"]).stage("result", "job", 0, 1, batches())
"""


@pytest.mark.soak
def test_rows_of_a_writer_that_is_killed_never_count(
    url: str,
    source: MaxComputeSource,
    in_another_process: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source.stage("result", "job", 0, 0, [pa.record_batch({"a": [1, 2]})])
    monkeypatch.setenv("SQLFLOW_SOURCE", url)
    with pytest.raises(subprocess.CalledProcessError) as died:
        in_another_process(DYING)
    assert died.value.returncode == -signal.SIGKILL
    assert source.commit("result", "job", 1) == 2
    assert source.stream("SELECT a FROM result").read_all()["a"].to_pylist() == [1, 2]
    assert sorted(found.name for found in source.list_objects("")) == ["result", "sqlflow_edl_results"]


@pytest.mark.variants(1)
@pytest.mark.parametrize("step", [2, 6, 8, 9])
def test_a_commit_that_stops_anywhere_is_ended_by_a_repeated_one(
    url: str, double: Running, step: int
) -> None:
    with connect(url) as source:
        fill_with(source, "old", [7])
        source.stage("result", "job", 0, 0, [pa.record_batch({"a": [1, 2]})])
        double.go_wrong(Fault("status", "POST .*/instances", skip=step, times=1, status=400, code="Killed"))
        with pytest.raises(SourceError):
            source.commit("result", "job", 1)
    double.go_wrong()
    with connect(url) as source:
        assert source.commit("result", "job", 1) == 2
        assert source.stream("SELECT a FROM result").read_all()["a"].to_pylist() == [1, 2]
        assert isinstance(source, MaxComputeSource)
        assert sorted(t.name for t in source.list_objects("")) == ["result", "sqlflow_edl_results"]


def test_a_swap_that_nobody_ends_is_taken_back_by_a_sweep(url: str, double: Running) -> None:
    with connect(url) as source:
        fill_with(source, "old", [7])
        source.stage("result", "job", 0, 0, [pa.record_batch({"a": [1, 2]})])
        source.execute("ALTER TABLE result RENAME TO " + old_name(source))
        assert source.tables() == []
        assert source.sweep(lambda job: job != "job") == 0
        assert source.sweep(lambda job: job == "job") == 1
        assert source.stream("SELECT a FROM result").read_all()["a"].to_pylist() == [7]


@pytest.mark.soak
def test_a_statement_with_a_lost_answer_runs_once(source: MaxComputeSource, double: Running) -> None:
    source.execute("CREATE TABLE t (a BIGINT)")
    double.go_wrong(Fault("lose", "POST .*/instances"), Fault("drop", "GET .*/instances"))
    source.execute("INSERT INTO t VALUES (1)")
    assert source.execute("SELECT count(*) AS n FROM t").read_all().to_pylist() == [{"n": 1}]  # type: ignore[union-attr]


def test_a_statement_that_runs_is_stopped_from_another_thread(
    source: MaxComputeSource, double: Running
) -> None:
    double.poll(10_000)
    ended = threading.Event()

    def stop() -> None:
        while not ended.wait(0.01):  # the statement may not have begun yet
            source.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SourceError, match="the statement was stopped"):
            source.execute("CREATE TABLE t (a BIGINT)")
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("target", ["a b", "1a", "a;drop", "p.s.t.u", "other_project.t", 'x"y'])
def test_a_target_that_cannot_be_is_refused(source: MaxComputeSource, target: str) -> None:
    with pytest.raises(SourceError):
        source.check_target(target)


def fill_with(source: Any, job: str, values: list[int]) -> None:
    source.stage("result", job, 0, 0, [pa.record_batch({"a": values})])
    source.commit("result", job, 1)


def old_name(source: Any) -> str:
    (stage,) = source.list_objects("sqlflow_edl_stage_")
    return str(stage.name).replace("stage", "old")


# Connecting --------------------------------------------------------------------------------------------------


def test_the_secret_is_in_no_text(url: str, source: MaxComputeSource) -> None:
    assert SECRET not in source.url
    assert SECRET not in repr(source) + repr(vars(source.client))
    with pytest.raises(SourceError) as caught:
        connect(url.replace("s3cret", "wrong"))
    assert "secret key" in str(caught.value.hint)
    assert SECRET not in str(caught.value)


def test_the_secret_may_stand_in_the_environment_and_the_url_in_the_file_of_connections(
    double: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, _, place = double.url().rpartition("@")
    entry = f'[shop]\nurl = "{account.rpartition(":")[0]}@{place}"\npassword_from = "SHOP_SECRET"\n'
    file = tmp_path / "sqlflow-edl" / "connections.toml"
    file.parent.mkdir()
    file.touch(mode=0o600)
    file.write_text(entry, encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    with connect("shop") as source:
        assert source.tables() == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("maxcompute://id@127.0.0.1:1/api", "names no project"),
        ("maxcompute://id@127.0.0.1:1/api?curr_project=p&zone=x", "have no option zone"),
        ("maxcompute://id@127.0.0.1:1/api?curr_project=p&timezone=Nowhere", "not a time zone"),
        ("maxcompute:/x", "names no host"),
        ("maxcompute://id@127.0.0.1:1/api?curr_project=p&scheme=http", "the service cannot be reached"),
    ],
)
def test_a_url_that_names_nothing_is_refused(url: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        connect(url)


def test_moments_are_shown_in_the_zone_that_the_url_names(double: Running) -> None:
    project = double.new_project()
    with connect(double.url(project)) as source:
        source.execute("CREATE TABLE t AS SELECT CAST('2024-01-01 08:00:00' AS DATETIME) AS d")
    with connect(double.url(project) + "&timezone=UTC") as source:
        found = source.stream("SELECT d, CAST(d AS STRING) AS s FROM t").read_all().to_pylist()
    assert found[0]["d"] == dt.datetime(2024, 1, 1)
    assert found[0]["s"].startswith("2024-01-01 00:00:00")


def msgspec_json(value: object) -> bytes:
    import msgspec

    return msgspec.json.encode(value)
