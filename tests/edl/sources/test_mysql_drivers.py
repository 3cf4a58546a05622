"""Drivers that read pinned rows from MySQL: equal rows, and the cases that connectorx leaves to PyMySQL."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import connect
from edl.data.server_url import ServerURL
from edl.data.source import Pinned, PinnedTable
from edl.data.url import parse
from edl.errors import SourceError
from edl.sources.mysql import arrow_driver, drivers, pinning
from edl.sources.mysql.source import MySQLSource
from edl.sources.pinned_tables import LostTableError
from tests.mariadb import PASSWORD, Server

pytest.importorskip("connectorx", reason="no connectorx")

DRIVERS = ("pymysql", "connectorx")


@pytest.fixture
def url(mariadb: Server) -> str:
    return mariadb.url()


@pytest.fixture
def source(url: str) -> Iterator[MySQLSource]:
    with connect(url) as opened:
        assert isinstance(opened, MySQLSource)
        yield opened


@pytest.fixture(autouse=True)
def every_range(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Let connectorx read every range, and collect what it says."""
    monkeypatch.setattr(arrow_driver, "LEAST_ROWS", 1)
    caplog.set_level(logging.DEBUG, arrow_driver.__name__)


def read(pinned: Pinned, url: str, driver: str, columns: list[str] | None = None) -> pa.Table:
    reader = reader_of(pinned, url, driver)
    return pa.Table.from_batches(reader.read(0, reader.rows, columns))


def reader_of(pinned: Pinned, url: str, driver: str) -> pinning.MySQLRowReader:
    assert pinned.table is not None
    reader = pinning.open_rows(pinned, pinned.table)
    reader._idle.append(drivers.connect(parse(url), driver))  # type: ignore[arg-type]
    return reader


def test_all_drivers_read_equal_rows(
    source: MySQLSource, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Extreme values, columns named as parameters are, a column without values, and no column at all."""
    source.execute(
        "CREATE TABLE t (id BIGINT UNSIGNED, `a:b ?` DOUBLE, f FLOAT, d DECIMAL(38, 20), day DATE, span TIME(6),"
        " at DATETIME(6), stamp TIMESTAMP(6) NULL, y YEAR, flag BOOLEAN, bits BIT(64), word VARCHAR(9) COLLATE"
        " utf8mb4_bin, kind ENUM('a', 'ß'), tags SET('x', 'y'), blob_ LONGBLOB, doc JSON)"
    )
    source.execute(
        "INSERT INTO t VALUES (18446744073709551615, 5e-324, 0.1, -123456789012345678.00000000000000000001,"
        " '1000-01-01', '00:00:00.000001', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', 1901, TRUE,"
        " 18446744073709551615, '\U0001f600', 'ß', 'x,y', x'00ff', '{\"a\": 1.0}'),"
        " (0, -1.7976931348623157e308, 3.4e38, 0, '9999-12-31', '23:59:59.999999', '1000-01-01',"
        " '2038-01-19 03:14:07.999999', 2155, FALSE, 0, '', 'a', '', '', '[]'),"
        f" ({', '.join(['NULL'] * 16)})"
    )
    pinned = source.pin("SELECT *, NULL AS nothing FROM t", tmp_path, seed=0, shuffle=False)
    plain, fast = (read(pinned, url, driver) for driver in DRIVERS)
    assert fast.schema == plain.schema
    assert fast.equals(plain)
    assert fast["id"].to_pylist() == [2**64 - 1, 0, None]
    for columns in (["nothing"], ["word", "id"]):
        assert read(pinned, url, "connectorx", columns).equals(plain.select(columns))
    assert read(pinned, url, "connectorx", []).num_rows == 3
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("x", "is a TINYINT\\(1\\), a boolean, but holds 5"),
        ("z", "holds '0000-00-00', which is not a date"),
        ("p", "holds '2024-00-00 00:00:00', which is not a timestamp"),
        ("w", "holds '25:00:00', which is not a time"),
    ],
)
def test_a_value_that_no_type_holds_is_the_error_of_the_plain_driver(
    source: MySQLSource, tmp_path: Path, column: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source.execute("SET sql_mode = ''")
    source.execute("CREATE TABLE t (x TINYINT(1), z DATE, p DATETIME, w TIME)")
    source.execute(
        "INSERT INTO t VALUES (5, '0000-00-00', '2024-00-00', '25:00:00'), (NULL, NULL, NULL, NULL)"
    )
    pinned = source.pin(f"SELECT {column} FROM t", tmp_path, seed=0, shuffle=False)
    assert pinned.table is not None
    with pytest.raises(SourceError, match=f"column {column} {words}"):
        list(pinning.open_rows(pinned, pinned.table).read(0, 2))
    assert capfd.readouterr().err == ""  # no panic of connectorx


@pytest.mark.soak
def test_parts_of_a_range_are_as_large_as_their_rows_allow(
    source: MySQLSource, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_driver, "_FIRST_ROWS", 100)
    monkeypatch.setattr(arrow_driver, "_QUERY_BYTES", 300_000)
    source.execute("CREATE TABLE t AS SELECT seq AS n, REPEAT('x', 1000) AS text FROM seq_1_to_1000")
    pinned = source.pin("SELECT * FROM t", tmp_path, seed=1, shuffle=True)
    assert pinned.table is not None
    reader = pinning.open_rows(pinned, pinned.table)
    sizes = [batch.num_rows for batch in reader.read(0, 1000)]
    assert sizes[:2] == [100, 296]
    assert sum(sizes) == 1000
    assert read(pinned, url, "connectorx").equals(read(pinned, url, "pymysql"))


@pytest.fixture
def parts(source: MySQLSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pinned:
    """Rows of four parts; `n` counts them, and row 150, in the second part, has a flag that is no boolean."""
    monkeypatch.setattr(arrow_driver, "_FIRST_ROWS", 100)
    monkeypatch.setattr(arrow_driver, "_MOST_ROWS", 100)
    monkeypatch.setattr(arrow_driver, "LEAST_ROWS", 100)
    source.execute("CREATE TABLE t (n INT, flag TINYINT(1))")
    source.execute("INSERT INTO t SELECT seq, IF(seq = 150, 5, 1) FROM seq_1_to_400")
    return source.pin("SELECT * FROM t ORDER BY n", tmp_path, seed=0, shuffle=False)


def reading() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "connectorx"]


def test_one_part_is_read_while_the_one_before_is_consumed_and_none_after_the_end(
    parts: Pinned, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: queue.Queue[str] = queue.Queue()
    before = arrow_driver._run_query
    monkeypatch.setattr(
        arrow_driver, "_run_query", lambda url, query: started.put(query) or before(url, query)
    )
    rows = reader_of(parts, url, "connectorx").read(0, 400, ["n"])
    assert next(rows)["n"].to_pylist() == list(range(1, 101))
    assert [("> 0 " in started.get(timeout=30)), ("> 100 " in started.get(timeout=30))] == [True, True]
    for thread in reading():
        thread.join()
    assert started.empty()  # the third part waits until the second is taken
    next(rows)
    assert "> 200 " in started.get(timeout=30)
    rows.close()  # type: ignore[attr-defined]
    assert reading() == []
    assert started.empty()


def test_a_value_that_no_type_holds_is_an_error_behind_the_rows_of_the_parts_before(
    parts: Pinned, url: str
) -> None:
    rows = reader_of(parts, url, "connectorx").read(0, 400)
    assert next(rows).num_rows == 100
    with pytest.raises(SourceError, match="column flag is a TINYINT"):
        next(rows)
    assert reading() == []


@pytest.mark.parametrize("case", ["fails", "is lost", "is forked"])
def test_rows_are_read_on_from_the_first_that_was_not_yielded(
    parts: Pinned, url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    before = arrow_driver._run_query
    errors = {"fails": arrow_driver._FailedError("broken"), "is lost": LostTableError("gone")}

    def queried(url: ServerURL, query: str) -> pa.Table:
        if "> 200 " in query and case in errors:
            raise errors.pop(case)
        return before(url, query)

    monkeypatch.setattr(arrow_driver, "_run_query", queried)
    rows = reader_of(parts, url, "connectorx").read(0, 400, ["n"])
    found = [next(rows), next(rows)]
    if case == "is forked":
        monkeypatch.setattr(arrow_driver, "_users", {-1})
    found += rows
    assert pa.Table.from_batches(found)["n"].to_pylist() == list(range(1, 401))
    said = {"fails": ["broken"], "is lost": [], "is forked": ["a fork of the one that reads"]}[case]
    assert [words in message for words, message in zip(said, caplog.messages, strict=True)] == [True] * len(
        said
    )
    assert reading() == []


def test_a_failure_of_connectorx_is_logged_without_the_password_and_the_rows_come(
    source: MySQLSource,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pinned = source.pin("SELECT 1 AS a UNION ALL SELECT 2", tmp_path, seed=0, shuffle=False)
    before = arrow_driver._connection
    monkeypatch.setattr(arrow_driver, "_connection", lambda url: before(url).replace("mysql://", "odd://"))
    assert read(pinned, url, "connectorx")["a"].to_pylist() == [1, 2]
    [message] = caplog.messages
    assert message.startswith("PyMySQL reads the pinned rows, not connectorx: ")
    monkeypatch.setattr(arrow_driver, "_import_connectorx", _Quoting)
    assert read(pinned, url, "connectorx")["a"].to_pylist() == [1, 2]
    assert "://owner:***@127.0.0.1" in caplog.messages[-1]
    assert PASSWORD not in caplog.text


class _Quoting:
    """connectorx, failing with a message that has its URL."""

    def read_sql(self, url: str, *_: object, **__: object) -> None:
        raise RuntimeError(f"cannot connect to {url}")


@pytest.mark.parametrize("case", ["fork", "password", "vain"])
def test_connectorx_is_not_used_where_it_would_hang_or_wait(
    mariadb: Server, source: MySQLSource, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    pinned = source.pin("SELECT 1 AS a UNION ALL SELECT 2", tmp_path, seed=0, shuffle=False)
    if case == "fork":
        monkeypatch.setattr(arrow_driver, "_users", {-1})
    elif case == "vain":
        monkeypatch.setattr(arrow_driver, "_refused", {parse(url)})
    else:
        name = parse(url).path.replace("d", "u")  # type: ignore[union-attr]
        mariadb.run(f"CREATE USER {name}@'127.0.0.1'", f"GRANT SELECT ON *.* TO {name}@'127.0.0.1'")
        url = url.replace(f"owner:{PASSWORD.replace('%', '%25')}", name)
    assert read(pinned, url, "connectorx")["a"].to_pylist() == [1, 2]
    said = {"fork": "is a fork", "password": "no password", "vain": "could not connect"}
    assert said[case] in caplog.messages[-1]


def test_an_interrupt_ends_the_wait_for_connectorx(mariadb: Server, url: str) -> None:
    slow = PinnedTable("(SELECT 1 AS k, SLEEP(20) AS n) AS slow", "k")
    reader = pinning.MySQLRowReader(parse(url), slow, [pinning.MySQLColumn("n", pa.int32())], 1)  # type: ignore[arg-type]
    waiting = (
        "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT `n` FROM (SELECT 1 AS k%'"
    )

    def interrupt() -> None:
        while not mariadb.run(waiting):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        list(reader.read(0, 1))
    thread.join()
    [[query]] = mariadb.run(waiting)
    mariadb.run(f"KILL {query}")
