"""The double speaks with pyodps as it comes: what that does well, and every trap that
`edl.sources.maxcompute.source` avoids."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from odps import ODPS, errors, options
from odps.config import option_context
from odps.tunnel import TableTunnel

from tests.maxcompute.faults import Fault
from tests.maxcompute.process import ACCOUNT, REPOSITORY, SECRET, Running

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it

MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 123_000)
VALUES: list[tuple[str, list[Any]]] = [
    ("tinyint", [-128, 127]),
    ("smallint", [-32_768, 32_767]),
    ("int", [-(2**31), 2**31 - 1]),
    ("bigint", [-(2**63) + 1, 2**63 - 1]),
    ("float", [1.5, -0.25]),
    ("double", [1 / 3, -1e300]),
    ("boolean", [True, False]),
    ("string", ["größe", ""]),
    ("varchar(5)", ["abc", "größe"]),
    ("char(3)", ["abc", "xyz"]),
    ("binary", [b"\x00\xff", b""]),
    ("date", [dt.date(1970, 1, 1), dt.date(2038, 1, 19)]),
    ("datetime", [MOMENT, dt.datetime(1970, 1, 1)]),
    ("decimal(10,2)", [Decimal("-12345678.90"), Decimal("0.01")]),
    ("array<bigint>", [[1, None, -3], []]),
    ("map<string,bigint>", [{"a": 1, "b": None}, {}]),
    ("struct<x:bigint,y:array<string>>", [(1, ["p", None]), (None, None)]),
]


def given(client: ODPS, name: str, columns: str, rows: list[list[Any]]) -> Any:
    table = client.create_table(name, columns)
    with table.open_writer() as writer:
        writer.write(rows)
    return table


def numbers(client: ODPS, count: int) -> Any:
    table = client.create_table("numbers", "n bigint, s string")
    with table.open_writer(arrow=True) as writer:
        writer.write(pa.record_batch({"n": range(count), "s": [f"s{n}" for n in range(count)]}))
    return table


def read(client: ODPS, start: int, count: int, *, arrow: bool) -> list[int]:
    session = TableTunnel(client).create_download_session("numbers")
    if arrow:
        with session.open_arrow_reader(start, count) as reader:
            return [n for batch in reader for n in batch["n"].to_pylist()]
    with session.open_record_reader(start, count) as reader:
        return [record["n"] for record in reader]


# What works --------------------------------------------------------------------------------------------------


def test_a_value_comes_back_as_record_and_as_arrow(client: ODPS) -> None:
    kinds = [kind for kind, _ in VALUES]
    columns = [[*values, None] for _, values in VALUES]
    with option_context({"local_timezone": False}):
        declared = ", ".join(f"v{number} {kind}" for number, kind in enumerate(kinds))
        table = given(client, "t", declared, [list(row) for row in zip(*columns, strict=True)])
        types = [column.type for column in table.table_schema.columns]
        assert [str(each).replace("`", "").lower() for each in types] == kinds
        with table.open_reader() as reader:
            assert [list(values) for values in zip(*(each.values for each in reader), strict=True)] == columns
        session = TableTunnel(client).create_download_session("t")
        with session.open_arrow_reader(0, 3) as reader:
            found = pa.Table.from_batches(list(reader))
    for kind, values, column in zip(kinds, columns, found.columns, strict=True):
        assert column.null_count == 1, kind
        if not kind.startswith(("map", "struct")):
            assert column.to_pylist() == values, kind


def test_timestamps_come_back_to_the_nanosecond(client: ODPS) -> None:
    table = client.create_table("t", "v timestamp, w timestamp_ntz")
    values = pa.array([10**18 + 1, None], pa.timestamp("ns"))
    with table.open_writer(arrow=True) as writer:
        writer.write(pa.record_batch({"v": values, "w": values}))
    with option_context({"local_timezone": False}), table.open_reader() as reader:
        assert [(r[0].value, r[1].value) for r in reader if r[0] is not None] == [(10**18 + 1,) * 2]


def test_sql_makes_reads_and_changes_tables(client: ODPS) -> None:
    given(client, "t", "a bigint, b varchar(4)", [[1, "x"], [2, "y"], [3, "x"]])
    client.execute_sql("CREATE TABLE u LIFECYCLE 2 AS SELECT * FROM t WHERE a > 1")
    made = client.get_table("u")
    assert (str(made.table_schema["b"].type), made.lifecycle) == ("VARCHAR(4)", 2)
    client.execute_sql("INSERT INTO u VALUES (9, 'z')")
    client.execute_sql("INSERT OVERWRITE TABLE u SELECT a, b FROM u WHERE a > 2")
    client.execute_sql("ALTER TABLE u RENAME TO w")
    with client.execute_sql("SELECT b, count(*) AS n FROM w GROUP BY b ORDER BY b").open_reader(
        tunnel=True, limit=False
    ) as reader:
        assert [record.values for record in reader] == [["x", 1], ["z", 1]]
    assert [table.name for table in client.list_tables()] == ["t", "w"]
    with pytest.raises(errors.ODPSError, match="already exists"):
        client.execute_sql("ALTER TABLE t RENAME TO w")


def test_partitions_are_made_read_and_dropped(client: ODPS) -> None:
    table = client.create_table("t", ("a bigint", "pt string, hour bigint"))
    for pt, hour in (("x", 1), ("y", 2)):
        with table.open_writer(partition=f"pt='{pt}',hour={hour}", create_partition=True) as writer:
            writer.write([[hour * 10]])
    assert sorted(str(partition.name) for partition in table.partitions) == [
        "pt='x',hour='1'",
        "pt='y',hour='2'",
    ]
    with client.execute_sql("SELECT a, pt, hour FROM t WHERE pt = 'y'").open_reader(tunnel=True) as reader:
        assert [record.values for record in reader] == [[20, "y", 2]]
    assert [row.values for row in table.head(1, partition="pt='x',hour=1")] == [[10]]
    table.delete_partition("pt='x',hour=1")
    assert not table.exist_partition("pt='x',hour=1")
    with pytest.raises(errors.NoSuchPartition):
        TableTunnel(client).create_download_session("t", partition_spec="pt=x,hour=1")


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SELECT nn\nFROM t", errors.ODPSError, r"ODPS-0130071:\[1,8\] .* column nn cannot be resolved"),
        ("SELECT *\nFROM nope", errors.NoSuchTable, r"ODPS-0130131:\[2,6\] Table not found"),
        ("SELEC 1", errors.ParseError, r"ODPS-0130161:\[1,1\] Parse exception - invalid token 'SELEC'"),
        ("SELECT flor(a) FROM t", errors.ODPSError, r"function or view 'flor' cannot be resolved"),
    ],
)
def test_errors_of_sql_have_a_number_and_a_place(
    client: ODPS, sql: str, error: type[Exception], words: str
) -> None:
    client.create_table("t", "a bigint")
    with pytest.raises(error, match=words):
        client.execute_sql(sql)


def test_a_session_reads_what_was_there_when_it_began(client: ODPS) -> None:
    given(client, "t", "a bigint", [[1]])
    session = TableTunnel(client).create_download_session("t")
    client.execute_sql("INSERT OVERWRITE TABLE t VALUES (2), (3)")
    again = TableTunnel(client).create_download_session("t", download_id=session.id)
    with again.open_record_reader(0, again.count) as reader:
        assert [record[0] for record in reader] == [1]


def test_a_wrong_secret_is_refused(double: Running) -> None:
    stranger = ODPS(ACCOUNT, SECRET + "x", project="p", endpoint=double.endpoint)
    with pytest.raises(errors.ODPSError, match="signature"):
        stranger.exist_table("t")


def test_an_instance_can_be_told_to_run_for_a_while(client: ODPS, double: Running) -> None:
    double.poll(5)
    instance = client.run_sql("SELECT 1 AS a")
    assert not instance.is_terminated()
    instance.wait_for_completion(interval=0.01)
    assert instance.is_successful()


# Faults ------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "records"])
def test_a_reader_gets_over_it(client: ODPS, double: Running, arrow: bool) -> None:
    numbers(client, 50_000)
    for fault in (
        Fault("cut", "rowrange", times=3, part=0.6),
        Fault("drop", "rowrange", times=2),
        Fault("status", "rowrange", times=3, status=503),
        Fault("status", "rowrange", times=3, status=429, code="FlowExceeded"),
        Fault("flip", "rowrange", times=1),
        Fault("delay", "rowrange", seconds=0.01),
    ):
        double.go_wrong(fault)
        assert read(client, 100, 40_000, arrow=arrow) == list(range(100, 40_100)), fault


def test_a_session_that_expired_is_an_error_at_once(client: ODPS, double: Running) -> None:
    numbers(client, 10)
    double.go_wrong(Fault("expire", "rowrange"))
    with pytest.raises(errors.ODPSError, match="download id does not exist"):
        read(client, 0, 10, arrow=True)


# Traps -------------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_trap_1_a_forked_child_goes_on_with_its_parents_socket(double: Running) -> None:
    program = f"""
import os, sys
from odps import ODPS
def connected():
    return ODPS({ACCOUNT!r}, {SECRET!r}, project="p", endpoint={double.endpoint!r})
connected().exist_table("parent")
if os.fork() == 0:
    connected().exist_table("child")
    os._exit(0)
os.wait()
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY, timeout=60)
    ports = {line.split("/")[-1].split("?")[0]: line.split()[0] for line in double.requests()}
    assert ports["parent"] == ports["child"]


def test_trap_2_a_partition_column_that_is_not_the_last_empties_the_others(client: ODPS) -> None:
    table = client.create_table("t", ("a string, b string", "pt string"))
    with table.open_writer(partition="pt=x", create_partition=True) as writer:
        writer.write([["1", "2"]])
    session = TableTunnel(client).create_download_session("t", partition_spec="pt=x")
    with session.open_record_reader(0, 1, columns=["pt", "b"]) as reader:
        assert [record["b"] for record in reader] == [None]


def test_trap_3_a_short_stream_of_arrow_is_no_error(client: ODPS, double: Running) -> None:
    numbers(client, 1000)
    double.go_wrong(Fault("short", "rowrange", part=0.3))
    assert len(read(client, 0, 1000, arrow=True)) == 300


def test_trap_4_pyodps_tries_eight_times_and_then_fails(client: ODPS, double: Running) -> None:
    numbers(client, 10)
    double.requests()
    double.go_wrong(Fault("status", "rowrange", times=100, status=500))
    with pytest.raises(errors.ODPSError):
        next(iter(TableTunnel(client).create_download_session("numbers").open_record_reader(0, 10)))
    assert sum("rowrange" in line for line in double.requests()) >= 8


def test_trap_5_read_table_cannot_read_arrow(client: ODPS) -> None:
    numbers(client, 10)
    with pytest.raises(TypeError):
        list(client.read_table("numbers", arrow=True))


def test_trap_7_moments_are_local_unless_it_is_said_otherwise(
    client: ODPS, monkeypatch: pytest.MonkeyPatch
) -> None:
    with option_context({"local_timezone": False}):
        table = given(client, "t", "v datetime", [[MOMENT]])
    with option_context({"local_timezone": "Asia/Shanghai"}), table.open_reader(reopen=True) as reader:
        (moment,) = (record[0] for record in reader)
        assert moment.replace(tzinfo=None) == MOMENT + dt.timedelta(hours=8)
    assert options.local_timezone is None


def test_trap_8_a_table_does_not_see_what_was_written_after_it_was_looked_at(client: ODPS) -> None:
    table = given(client, "t", "a bigint", [[1]])
    with table.open_reader() as reader:
        assert reader.count == 1
    client.execute_sql("INSERT INTO t VALUES (2)")
    with table.open_reader() as reader:
        assert reader.count == 1
    with table.open_reader(reopen=True) as reader:
        assert reader.count == 2


def test_trap_9_a_result_that_does_not_come_by_the_tunnel_ends_at_ten_thousand_rows(client: ODPS) -> None:
    numbers(client, 10_001)
    instance = client.execute_sql("SELECT n FROM numbers")
    with instance.open_reader(tunnel=False) as reader:
        assert sum(1 for _ in reader) == 10_000
    with instance.open_reader(tunnel=True, limit=True) as reader:
        assert reader.count == 10_000
    with instance.open_reader(tunnel=True, limit=False, reopen=True) as reader:
        assert reader.count == 10_001


def test_trap_10_views_are_not_read_by_the_tunnel(client: ODPS) -> None:
    numbers(client, 10)
    client.execute_sql("CREATE VIEW v AS SELECT n FROM numbers WHERE n > 7")
    with pytest.raises(errors.ODPSError, match="is a view"):
        TableTunnel(client).create_download_session("v")
    with client.execute_sql("SELECT * FROM v").open_reader(tunnel=True) as reader:
        assert reader.count == 2


def test_trap_13_an_arrow_reader_of_no_rows_fails(client: ODPS) -> None:
    numbers(client, 10)
    with pytest.raises(AttributeError):
        read(client, 0, 0, arrow=True)
