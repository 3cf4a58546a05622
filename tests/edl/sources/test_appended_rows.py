"""Rows that a job adds to a table, in every source: all or none, once, and only where they fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.data.source import ConflictError, UnreachableError
from edl.errors import SourceError
from edl.extensions.warehouses.results import WarehouseResults
from edl.sources.appending import check_range
from edl.sources.maxcompute.results import MaxComputeResults
from edl.sources.mysql import results as mysql_results
from edl.sources.mysql.results import MySQLResults
from edl.sources.staging_tables import Bookkeeping


@pytest.fixture
def source(any_source: Source) -> Source:
    """The tests here hold for every source."""
    return any_source


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(values, pa.int64()), "cost": [value / 2 for value in values]})


def added(source: Source, target: str, job: str, *values: int) -> int:
    """Stage a row in each task, the last task first, and add them."""
    for task, value in reversed(list(enumerate(values))):
        source.stage(target, job, task, 0, [batch(value)], append=True)
    return source.commit(target, job, len(values), append=True)


def rows(source: Source, names: str = "id, cost") -> list[Any]:
    found = source.stream(f"SELECT {names} FROM scores ORDER BY id").read_all()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def of_users(source: Source) -> None:
    """Make a table of the user's own, with a column that the rows do not have."""
    real = {"postgres": "DOUBLE PRECISION", "sqlite": "REAL"}.get(source.dialect, "DOUBLE")
    source.execute(f"CREATE TABLE scores (cost {real}, id BIGINT, note VARCHAR(10))")
    source.execute("INSERT INTO scores VALUES (9.5, 1, 'old')")


def test_rows_are_added_to_a_users_table_by_the_names_of_its_columns(source: Source) -> None:
    of_users(source)
    source.check_target("scores", batch().schema)
    assert added(source, "scores", "one", 2, 3) == 2
    assert added(source, "scores", "two", 4) == 1
    assert rows(source, "id, cost, note") == [(1, 9.5, "old"), (2, 1.0, None), (3, 1.5, None), (4, 2.0, None)]


@pytest.mark.soak
def test_a_missing_table_is_made_and_rows_are_added_to_that(source: Source) -> None:
    source.check_target("scores", batch().schema)
    assert added(source, "scores", "one", 2, 1) == 2
    assert added(source, "scores", "two", 3) == 1
    assert rows(source) == [(1, 0.5), (2, 1.0), (3, 1.5)]
    assert added(source, "scores", "one", 2, 1) == 2
    assert len(rows(source)) == 3


def test_a_repeated_commit_adds_nothing(source: Source) -> None:
    of_users(source)
    assert added(source, "scores", "one", 2, 3) == 2
    assert added(source, "scores", "one", 2, 3) == 2
    assert source.commit("scores", "one", 2, append=True) == 2
    assert len(rows(source)) == 3


def test_a_commit_that_dies_behind_its_insert_is_repeated_without_adding_twice(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise UnreachableError("the connection is gone")

    with connect(url) as first, monkeypatch.context() as patched:
        of_users(first)
        patched.setattr(Bookkeeping, "record_commit", dies)
        patched.setattr(MaxComputeResults, "_record", dies)
        write = WarehouseResults._write
        patched.setattr(
            WarehouseResults, "_write", lambda *of: dies() if of[1].rows is not None else write(*of)
        )
        with pytest.raises(UnreachableError):
            added(first, "scores", "job", 2, 3)
    with connect(url) as second:
        assert second.commit("scores", "job", 2, append=True) == 2
        assert rows(second) == [(1, 9.5), (2, 1.0), (3, 1.5)]
        assert second.commit("scores", "job", 2, append=True) == 2
        assert len(rows(second)) == 3


@pytest.mark.parametrize("url", ["quarry"], indirect=True)
def test_a_commit_that_dies_behind_its_clean_up_is_repeated_without_adding_twice(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_users(source)
    drop = source.drop  # type: ignore[attr-defined]

    def drops_and_dies(*parts: Any) -> None:
        drop(*parts)
        if len(rows(source)) == 3 and "_new_" in parts[0][-1]:
            raise UnreachableError("the connection is gone")

    with monkeypatch.context() as patched:
        patched.setattr(source, "drop", drops_and_dies)
        with pytest.raises(UnreachableError):
            added(source, "scores", "job", 2, 3)
    assert source.commit("scores", "job", 2, append=True) == 2
    assert rows(source) == [(1, 9.5), (2, 1.0), (3, 1.5)]


def test_the_rows_of_two_jobs_that_find_no_table_are_all_there(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job, value in (("one", 2), ("two", 3)):
        source.stage("scores", job, 0, 0, [batch(value)], append=True)
    results = source._results  # type: ignore[attr-defined]
    steps = ((results, "_make_table"), (results, "_upload_rows"), (source, "transaction"))
    owner, step = next((owner, name) for owner, name in steps if hasattr(owner, name))
    done = getattr(owner, step)

    def behind_the_other(*given: Any) -> Any:
        monkeypatch.setattr(owner, step, done)
        assert source.commit("scores", "one", 1, append=True) == 1
        return done(*given)

    monkeypatch.setattr(owner, step, behind_the_other)
    assert source.commit("scores", "two", 1, append=True) == 1
    assert rows(source) == [(2, 1.0), (3, 1.5)]


@pytest.mark.variants(1)
def test_an_aborted_job_adds_nothing(source: Source) -> None:
    of_users(source)
    source.stage("scores", "job", 0, 0, [batch(2)], append=True)
    source.abort("scores", "job")
    assert rows(source) == [(1, 9.5)]


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        (
            {"id": [1], "costs": [1.5]},
            "the table scores has no column costs: its columns are cost, id, note, the rows have id, costs",
            r"did you mean cost\? .*INSERT INTO scores",
        ),
        ({"id": [1.5]}, "column id .* is of the type int, which does not hold the double values", "CAST"),
        ({"id": [1], "cost": ["high"]}, "cost of the table scores is of the type double", "CAST"),
    ],
)
def test_rows_that_do_not_fit_are_an_error_before_the_work(
    source: Source, columns: dict[str, list[Any]], message: str, hint: str
) -> None:
    of_users(source)
    wrong = pa.record_batch(columns)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: source.check_target("scores", wrong.schema),
        lambda: source.stage("scores", "job", 0, 0, [wrong], append=True),
    )
    for attempt in attempts:
        with pytest.raises(SourceError, match=message) as caught:
            attempt()
        assert re.search(hint, caught.value.hint or "")
    assert rows(source) == [(1, 9.5)]


def test_a_column_that_needs_a_value_is_an_error_before_the_work(source: Source) -> None:
    if source.url.startswith(("quarry", "granite")):
        pytest.skip("it says so when the rows are added")
    kind = "STRING" if source.dialect == "maxcompute" else "VARCHAR(10)"
    source.execute(f"CREATE TABLE scores (id BIGINT, note {kind} NOT NULL)")
    message = "scores needs values of note, NOT NULL without a default: the rows have id$"
    with pytest.raises(SourceError, match=message) as caught:
        source.check_target("scores", pa.schema({"id": pa.int64()}))
    assert "SELECT *, … AS note FROM …" in (caught.value.hint or "")
    source.check_target("scores", pa.schema({"id": pa.int64(), "NOTE": pa.string()}))


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("url", "columns"),
    [
        ("duckdb", "made INTEGER NOT NULL DEFAULT 3, two INTEGER GENERATED ALWAYS AS (id * 2)"),
        ("sqlite", "number INTEGER NOT NULL PRIMARY KEY, two INTEGER NOT NULL AS (id * 2)"),
        (
            "mysql",
            "number INTEGER AUTO_INCREMENT PRIMARY KEY, two INTEGER AS (id * 2), t TIMESTAMP NOT NULL DEFAULT NOW()",
        ),
        ("postgres", "number SERIAL, other INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ],
    indirect=["url"],
)
def test_columns_that_get_a_value_of_their_own_need_none(source: Source, columns: str) -> None:
    source.execute(f"CREATE TABLE scores (id BIGINT, cost DOUBLE PRECISION, {columns})")
    source.check_target("scores", batch().schema)
    assert added(source, "scores", "job", 2) == 1
    assert rows(source) == [(2, 1.0)]


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_trigger_may_give_a_column_its_value(source: Source) -> None:
    source.execute("CREATE TABLE scores (id BIGINT, cost DOUBLE PRECISION, note VARCHAR(10) NOT NULL)")
    source.execute(
        "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.note = 'new'; RETURN NEW; END $$"
    )
    source.execute("CREATE TRIGGER noting BEFORE INSERT ON scores FOR EACH ROW EXECUTE FUNCTION noted()")
    source.check_target("scores", batch().schema)
    assert added(source, "scores", "job", 2) == 1
    assert rows(source, "id, cost, note") == [(2, 1.0, "new")]


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("url", "kind"), [("duckdb", "INTERVAL"), ("postgres", "tsvector"), ("mysql", "POINT")], indirect=["url"]
)
def test_columns_that_no_row_is_added_to_may_be_of_any_type(source: Source, kind: str) -> None:
    source.execute(f"CREATE TABLE scores (cost DOUBLE PRECISION, seen {kind}, id BIGINT)")
    source.check_target("scores", batch().schema)
    assert added(source, "scores", "job", 2) == 1
    assert rows(source) == [(2, 1.0)]


@pytest.mark.variants(1)
def test_a_table_that_changes_during_the_job_gets_no_row(source: Source) -> None:
    of_users(source)
    source.stage("scores", "job", 0, 0, [batch(2)], append=True)
    source.execute("DROP TABLE scores")
    source.execute("CREATE TABLE scores AS SELECT 7 AS id")
    with pytest.raises(SourceError, match="the table scores has no column cost"):
        source.commit("scores", "job", 1, append=True)
    assert rows(source, "id") == [(7,)]


def test_views_and_samples_are_not_added_to(source: Source) -> None:
    source.execute("CREATE VIEW seen AS SELECT 8 AS id, 1.5 AS cost")
    source.stage("iris", "samples", 0, 0, [batch(1)])
    source.commit("iris", "samples", 1)
    for target, words in (("seen", "is a view"), ("iris", "a sample table, it is not added to")):
        with pytest.raises(SourceError, match=words):
            source.check_target(target, batch().schema)


@pytest.mark.parametrize("url", ["duckdb", "postgres"], indirect=True)
def test_a_temporary_table_in_the_way_is_an_error(source: Source) -> None:
    source.execute("CREATE TEMPORARY TABLE scores (id BIGINT, cost DOUBLE PRECISION)")
    with pytest.raises(SourceError, match="scores is a temporary table"):
        source.check_target("scores", batch().schema)


@pytest.mark.parametrize("url", ["mysql"], indirect=True)
def test_a_commit_in_mysql_ends_one_of_a_client_that_is_gone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DROP TABLE commits the rows before it waits for those who read the table: two commits would add them twice."""
    monkeypatch.setattr(mysql_results, "_LOCK_SECS", 1)
    with connect(url) as first, connect(url) as second:
        of_users(first)
        first.stage("scores", "job", 0, 0, [batch(2)], append=True)
        second.execute("SET SESSION lock_wait_timeout = 0")
        drop_staged = MySQLResults._drop_staged

        def overtaken(results: MySQLResults, *given: Any) -> None:
            monkeypatch.setattr(MySQLResults, "_drop_staged", drop_staged)
            assert second.commit("scores", "job", 1, append=True) == 1
            drop_staged(results, *given)

        monkeypatch.setattr(MySQLResults, "_drop_staged", overtaken)
        with pytest.raises(ConflictError, match="connection to the database was lost"):
            first.commit("scores", "job", 1, append=True)
        assert first.commit("scores", "job", 1, append=True) == 1
        assert rows(second) == [(1, 9.5), (2, 1.0)]


@pytest.mark.parametrize("url", ["mysql"], indirect=True)
def test_a_commit_in_mysql_waits_for_one_that_is_carried_out(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_results, "_LOCK_SECS", 0)
    with connect(url) as first, connect(url) as second:
        of_users(first)
        first.stage("scores", "job", 0, 0, [batch(2)], append=True)
        results: MySQLResults = first._results  # type: ignore[attr-defined]
        assert results._locks(f"'{results._place('scores').stage_name('job')}'")
        under_way = first.stream("SELECT seq FROM seq_1_to_1000000000")
        assert under_way.read_next_batch().num_rows
        with pytest.raises(ConflictError, match="another connection stores the rows of job"):
            second.commit("scores", "job", 1, append=True)


@pytest.mark.soak
@pytest.mark.parametrize("url", ["mysql"], indirect=True)
def test_a_value_that_a_column_of_mysql_does_not_hold_is_an_error_whatever_the_server_says(
    source: Source,
) -> None:
    source.execute("SET SESSION sql_mode = 'ANSI_QUOTES'")
    source.execute("CREATE TABLE scores (id TINYINT, cost DOUBLE)")
    source.stage("scores", "job", 0, 0, [batch(300)], append=True)
    with pytest.raises(SourceError, match="Out of range value for column 'id'"):
        source.commit("scores", "job", 1, append=True)
    assert rows(source) == []
    [mode] = source.stream("SELECT @@sql_mode AS mode").read_all()["mode"].to_pylist()
    assert mode == "ANSI_QUOTES"


@pytest.mark.parametrize(
    ("column", "given", "message"),
    [
        (pa.int8(), pa.array([300]), "from 300 to 300 for column n of the table scores, .* from -128 to 127"),
        (pa.uint32(), pa.array([-1]), "from 0 to 4294967295"),
        (pa.int64(), pa.array([2**63], pa.uint64()), "to 9223372036854775807"),
        (pa.decimal128(4, 2), pa.array([-99.996]), "from -99.99 to 99.99"),
        (pa.decimal128(4, 2), pa.array([Decimal("100.00")]), "from 100.00 to 100.00"),
    ],
)
def test_numbers_that_a_warehouse_might_wrap_are_an_error(
    column: pa.DataType, given: pa.Array, message: str
) -> None:
    columns = pa.schema({"n": column, "x": pa.float64(), "whole": pa.int64()})
    fitting = pa.record_batch({"n": [1], "x": [1e300], "whole": [True]})
    with pytest.raises(SourceError, match=message):
        check_range("scores", columns, [fitting, fitting.set_column(0, "n", given)])


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (pa.int8(), [-128, 127]),
        (pa.uint8(), [0, 255]),
        (pa.decimal128(2, 1), [Decimal("-9.9"), Decimal("9.9")]),
    ],
)
def test_the_least_and_the_largest_number_of_a_column_fit(column: pa.DataType, given: list[Any]) -> None:
    check_range("scores", pa.schema({"n": column}), [pa.record_batch({"n": given})])


@pytest.mark.soak
@pytest.mark.parametrize("url", ["quarry"], indirect=True)
def test_a_warehouse_gets_no_number_that_a_column_does_not_hold(source: Source) -> None:
    source.execute("CREATE TABLE scores (id INTEGER, cost DOUBLE)")
    assert added(source, "scores", "one", 7) == 1
    with pytest.raises(SourceError, match="numbers from 5000000000 to 5000000000 for column id"):
        added(source, "scores", "two", 2, 5_000_000_000)
    assert rows(source) == [(7, 3.5)]


@pytest.mark.parametrize("url", ["mysql"], indirect=True)
def test_a_table_of_mysql_without_transactions_is_an_error(source: Source) -> None:
    source.execute("CREATE TABLE scores (id BIGINT, cost DOUBLE) ENGINE = MyISAM")
    with pytest.raises(SourceError, match="all or none: it is a table of MyISAM"):
        source.check_target("scores", batch().schema)


@pytest.mark.parametrize("url", ["maxcompute"], indirect=True)
def test_rows_of_maxcompute_go_into_the_partitions_that_they_name(source: Source) -> None:
    source.execute("CREATE TABLE scores (id BIGINT, cost DOUBLE) PARTITIONED BY (ds STRING)")
    with pytest.raises(
        SourceError, match="scores is partitioned by ds, which the rows do not have"
    ) as caught:
        source.check_target("scores", batch().schema)
    assert caught.value.hint == "select the partition: SELECT *, '…' AS ds FROM …"
    for job, days in (("one", ["1", "2"]), ("two", ["2", "2"])):
        dated = pa.record_batch({"ds": days, "id": pa.array([5, 6], pa.int64())})
        source.stage("scores", job, 0, 0, [dated], append=True)
        source.commit("scores", job, 1, append=True)
    assert sorted(rows(source, "id, ds, cost")) == [
        (5, "1", None),
        (5, "2", None),
        (6, "2", None),
        (6, "2", None),
    ]


@pytest.mark.parametrize("url", ["maxcompute"], indirect=True)
def test_rows_of_which_nobody_knows_whether_they_are_there_are_not_added_again(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise UnreachableError("the connection is gone")

    of_users(source)
    with monkeypatch.context() as patched:
        patched.setattr(MaxComputeResults, "_record", dies)
        with pytest.raises(UnreachableError):
            added(source, "scores", "job", 2, 3)
    source.execute("INSERT INTO scores VALUES (0.5, 5, 'new')")
    with pytest.raises(SourceError, match="it had 1 rows and has 4"):
        source.commit("scores", "job", 2, append=True)
    assert len(rows(source)) == 4
