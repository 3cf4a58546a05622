"""Result tables in every source: staged out of sight, swapped in once, never over a user's own table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from edl.data import Source, connect
from edl.errors import SourceError
from edl.sources.maxcompute.source import MaxComputeSource

LONGEST = {"mysql": 64, "postgres": 63}  # letters of a name
HOSTILE = ('x"); drop table t; --', "größe 表", "n" * 300, "select", "'", "%s ?", "sqlflow_edl_staged_")


# MaxCompute has neither transactions nor names of any characters.
transactional = pytest.mark.parametrize(
    "url", ["duckdb", "sqlite", "csv", "mysql", "postgres", "granite"], indirect=True
)


def batch(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int64())})


def rows(source: Source, name: str) -> list[Any]:
    return source.stream(f"SELECT a FROM {name}").read_all().column("a").to_pylist()


@pytest.fixture
def source(any_source: Source) -> Source:
    """The tests here hold for every source."""
    return any_source


def left_over(source: Source) -> list[str]:
    """The staging tables that are there."""
    if isinstance(source, MaxComputeSource):
        return [table.name for table in source.list_objects("sqlflow_edl_stage_")]
    query = "SELECT name AS t FROM sqlite_master WHERE name GLOB 'sqlflow_edl_stage_*'"
    if source.dialect == "duckdb":
        query = (
            "SELECT table_name AS t FROM duckdb_tables() WHERE starts_with(table_name, 'sqlflow_edl_stage_')"
        )
    elif source.dialect == "mysql":
        query = (
            "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = DATABASE()"
            " AND table_name LIKE 'sqlflow\\_edl\\_stage\\_%'"
        )
    elif source.dialect == "postgres":
        query = (
            "SELECT quote_ident(schemaname) || '.' || tablename AS t FROM pg_tables"
            " WHERE starts_with(tablename, 'sqlflow_edl_stage_')"
        )
    return source.stream(query).read_all().column("t").to_pylist()


def made(source: Source) -> list[str]:
    """The tables that are there, but for the views of a file."""
    return [name for name in source.tables() if name not in ("given", "rows")]


def test_rows_of_all_tasks_are_committed_in_their_order(source: Source) -> None:
    assert source.stage("result", "job", 2, 0, [batch(5, 6)]) == 2
    assert source.stage("result", "job", 0, 0, [batch(1), batch(2, None), batch()]) == 3
    assert source.stage("result", "job", 1, 0, [batch()]) == 0
    assert made(source) == []
    assert source.commit("result", "job", 3) == 5
    assert rows(source, "result") == [1, 2, None, 5, 6]
    assert made(source) == ["result"]
    assert left_over(source) == []


def test_rows_that_are_all_there_are_committed_in_one_call(source: Source) -> None:
    assert source.commit_rows("result", "job", 0, [batch(5, 6), batch(None), batch()]) == 3
    assert rows(source, "result") == [5, 6, None]
    assert source.commit_rows("result", "job", 1, [batch(9)]) == 3  # it has committed already
    assert source.committed_rows("result", "job") == 3
    assert rows(source, "result") == [5, 6, None]
    assert source.commit_rows("result", "another job", 0, [batch(7)]) == 1
    assert source.commit_rows("result", "a third job", 0, [batch(8)], append=True) == 1
    assert sorted(rows(source, "result")) == [7, 8]
    assert made(source) == ["result"]
    assert left_over(source) == []


def test_rows_that_end_in_an_error_leave_the_table_as_it_was(source: Source) -> None:
    def fail() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise ZeroDivisionError

    source.commit_rows("result", "job", 0, [batch(5)])
    with pytest.raises(ZeroDivisionError):
        source.commit_rows("result", "another job", 0, fail())
    assert rows(source, "result") == [5]
    assert source.commit_rows("result", "another job", 1, [batch(6)]) == 1
    assert rows(source, "result") == [6]


@pytest.mark.soak
def test_large_tasks_keep_the_order_of_their_rows(source: Source) -> None:
    per_task = 130_000  # a row group of DuckDB has 122,880
    for task in (1, 0):
        start = task * per_task
        pieces = (batch(*range(at, at + 65_000)) for at in range(start, start + per_task, 65_000))
        assert source.stage("result", "job", task, 0, pieces) == per_task
    assert source.commit("result", "job", 2) == 2 * per_task
    assert rows(source, "result") == list(range(2 * per_task))


def test_a_later_attempt_replaces_the_rows_of_its_task_and_an_older_one_does_not(source: Source) -> None:
    source.stage("result", "job", 0, 1, [batch(1)])
    source.stage("result", "job", 1, 1, [batch(9)])
    assert source.stage("result", "job", 0, 2, [batch(2, 3)]) == 2
    assert source.stage("result", "job", 0, 1, [batch(4)]) == 2
    assert source.stage("result", "job", 0, 2, [batch(2, 3)]) == 2
    source.commit("result", "job", 2)
    assert rows(source, "result") == [2, 3, 9]


@pytest.mark.variants(1)
def test_a_repeated_commit_changes_nothing(source: Source) -> None:
    source.stage("result", "one", 0, 0, [batch(1)])
    assert source.committed_rows("result", "one") is None
    assert source.commit("result", "one", 1) == 1
    source.stage("result", "two", 0, 0, [batch(2, 3)])
    assert source.commit("result", "two", 1) == 2
    assert [source.committed_rows("result", job) for job in ("one", "two")] == [1, 2]
    assert source.commit("result", "one", 1) == 1
    source.stage("result", "one", 0, 0, [batch(1)])
    assert source.commit("result", "one", 1) == 1
    assert rows(source, "result") == [2, 3]
    assert left_over(source) == []


def test_a_commit_of_missing_tasks_is_refused_and_changes_nothing(source: Source) -> None:
    source.stage("result", "old", 0, 0, [batch(1)])
    source.commit("result", "old", 1)
    source.stage("result", "job", 0, 0, [batch(2)])
    source.stage("result", "job", 2, 0, [batch(3)])
    with pytest.raises(
        SourceError, match="1 of the 3 tasks of job job have no staged rows, the first is task 1"
    ):
        source.commit("result", "job", 3)
    with pytest.raises(SourceError, match="tasks of job nothing"):
        source.commit("result", "nothing", 1)
    with pytest.raises(SourceError, match="0 tasks"):
        source.commit("result", "job", 0)
    assert rows(source, "result") == [1]


@pytest.mark.soak
def test_tasks_beyond_the_number_committed_are_left_out(source: Source) -> None:
    source.stage("result", "job", 0, 0, [batch(1)])
    source.stage("result", "job", 1, 0, [batch(2)])
    assert source.commit("result", "job", 1) == 1
    assert rows(source, "result") == [1]
    assert left_over(source) == []


def test_a_result_without_rows_is_an_empty_table_with_its_columns(source: Source) -> None:
    empty = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64()), ("p", pa.float64())]), [])
    source.stage("result", "job", 0, 0, empty)
    assert source.commit("result", "job", 1) == 0
    assert source.schema("SELECT * FROM result").names == ["a", "p"]
    with pytest.raises(SourceError, match="no columns"):
        source.stage("result", "job", 0, 0, [])


def test_a_users_table_is_never_replaced(source: Source) -> None:
    source.execute("CREATE TABLE mine AS SELECT 7 AS a")
    source.execute("CREATE VIEW seen AS SELECT 8 AS a")
    other_case = "mine" if source.dialect == "mysql" else "MINE"  # which is another table there
    for target, words in (
        ("mine", "not made by sqlflow-edl"),
        (other_case, "not made"),
        ("seen", "is a view"),
    ):
        for refused in (
            lambda target=target: source.check_target(target),
            lambda target=target: source.stage(target, "job", 0, 0, [batch(1)]),
        ):
            with pytest.raises(SourceError, match=words):
                refused()
    assert rows(source, "mine") == [7]


@pytest.mark.variants(1)
def test_a_sample_table_is_replaced_by_samples_alone(source: Source) -> None:
    for job, value in (("samples", 1), ("samples-2", 2)):
        source.stage("iris", job, 0, 0, [batch(value)])
        assert source.commit("iris", job, 1) == 1
    for refused in (
        lambda: source.check_target("iris"),
        lambda: source.stage("iris", "job", 0, 0, [batch(3)]),
    ):
        with pytest.raises(SourceError, match="iris is a sample table"):
            refused()
    assert rows(source, "iris") == [2]


def test_a_sample_table_written_during_the_job_is_not_replaced(source: Source) -> None:
    source.stage("iris", "job", 0, 0, [batch(3)])
    source.stage("iris", "samples", 0, 0, [batch(1)])
    source.commit("iris", "samples", 1)
    with pytest.raises(SourceError, match="iris is a sample table"):
        source.commit("iris", "job", 1)
    assert rows(source, "iris") == [1]


@pytest.mark.soak
def test_a_table_that_the_user_made_during_the_job_is_not_replaced(source: Source) -> None:
    source.stage("result", "job", 0, 0, [batch(1)])
    source.execute("CREATE TABLE result AS SELECT 7 AS a")
    with pytest.raises(SourceError, match="not made by sqlflow-edl"):
        source.commit("result", "job", 1)
    assert rows(source, "result") == [7]
    source.execute("DROP TABLE result")
    assert source.commit("result", "job", 1) == 1


def test_a_table_of_ours_that_the_user_dropped_and_made_again_is_the_users(source: Source) -> None:
    source.stage("result", "one", 0, 0, [batch(1)])
    source.commit("result", "one", 1)
    source.check_target("result")
    source.execute("DROP TABLE result")
    source.execute("CREATE TABLE result AS SELECT 7 AS a")
    with pytest.raises(SourceError, match="not made by sqlflow-edl"):
        source.check_target("result")


@pytest.mark.soak
def test_ownership_and_idempotence_outlive_the_connection(url: str) -> None:
    with connect(url) as first:
        first.stage("result", "job", 0, 0, [batch(1)])
    with connect(url) as second:
        assert second.commit("result", "job", 1) == 1
    with connect(url) as third:
        assert third.commit("result", "job", 1) == 1
        third.stage("result", "next", 0, 0, [batch(2)])
        assert third.commit("result", "next", 1) == 1
        assert rows(third, "result") == [2]


@pytest.mark.soak
@transactional
@pytest.mark.parametrize("names", [HOSTILE[:2], HOSTILE[2:4], HOSTILE[4:]], ids=["1", "2", "3"])
def test_any_text_can_name_table_and_column(source: Source, names: tuple[str, ...]) -> None:
    source.execute("CREATE TABLE t AS SELECT 1 AS a")
    for name in names:
        write_to(source, name[: LONGEST.get(source.dialect)])
    assert rows(source, "t") == [1]
    assert source.sweep(lambda job: True) == 0


def write_to(source: Source, name: str) -> None:
    """Make tables of this name, with a column of this name, and read one of them."""
    quoted = '"' + name.replace('"', '""') + '"'
    hostile = pa.record_batch({name: [1, 2], "sqlflow_edl_task": [3, 4]})
    schema = "" if source.dialect == "sqlite" else f"{quoted}."
    for target in (name, f"{schema}{quoted}"):
        source.stage(target, f"job's {name} */", 0, 0, [hostile])
        assert source.commit(target, f"job's {name} */", 1) == 2
    written = f"{schema}{quoted}" if source.dialect != "mysql" else f"`{name}`.`{name}`"
    found = source.stream(f"SELECT * FROM {written}").read_all()
    assert found.column_names == [name, "sqlflow_edl_task"]


def test_a_target_of_duckdb_goes_where_a_query_would_look_for_it() -> None:
    source = connect("duckdb:")
    for statement in ("CREATE SCHEMA iris", "ATTACH ':memory:' AS other", "CREATE SCHEMA other.deep"):
        source.execute(statement)
    for target, found in (
        ("iris.predict", "memory.iris.predict"),
        ("fresh.predict", "memory.fresh.predict"),
        ("other.predict", "other.main.predict"),
        ("other.deep.predict", "other.deep.predict"),
    ):
        source.stage(target, "job", 0, 0, [batch(1)])
        source.commit(target, "job", 1)
        assert rows(source, found) == [1]
    source.execute("USE iris")
    source.stage("plain", "job", 0, 0, [batch(2)])
    source.commit("plain", "job", 1)
    assert rows(source, "memory.iris.plain") == [2]
    with pytest.raises(SourceError, match="4 parts"):
        source.check_target("a.b.c.d")


@pytest.mark.variants(1)
def test_two_jobs_stage_for_one_target_without_meeting(source: Source) -> None:
    source.stage("result", "one", 0, 0, [batch(1)])
    source.stage("result", "two", 0, 0, [batch(2)])
    source.commit("result", "two", 1)
    assert rows(source, "result") == [2]
    source.commit("result", "one", 1)
    assert rows(source, "result") == [1]


def test_an_aborted_job_leaves_what_was_there(source: Source) -> None:
    source.stage("result", "old", 0, 0, [batch(1)])
    source.commit("result", "old", 1)
    source.stage("result", "job", 0, 0, [batch(2)])
    source.abort("result", "job")
    source.abort("result", "job")
    source.abort("never", "job")
    assert rows(source, "result") == [1]
    assert left_over(source) == []
    assert made(source) == ["result"]


@pytest.mark.variants(1)
def test_an_error_of_the_batches_is_passed_on_and_keeps_the_earlier_attempt(source: Source) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(2)
        raise ZeroDivisionError("in the model")

    source.stage("result", "job", 0, 0, [batch(1)])
    with pytest.raises(ZeroDivisionError, match="in the model"):
        source.stage("result", "job", 0, 1, failing())
    source.commit("result", "job", 1)
    assert rows(source, "result") == [1]


def test_tasks_with_other_columns_or_one_name_twice_are_refused(source: Source) -> None:
    source.stage("result", "job", 0, 0, [batch(1)])
    with pytest.raises(SourceError, match=r"task 1 has the columns \['b'\]"):
        source.stage("result", "job", 1, 0, [pa.record_batch({"b": [1]})])
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["a", "A"])
    with pytest.raises(SourceError, match="more than one column named A"):
        source.stage("result", "job", 1, 0, [twice])


@transactional
def test_rows_cannot_be_staged_inside_a_transaction(source: Source) -> None:
    with pytest.raises(RuntimeError, match="transaction"), source.transaction():
        source.stage("result", "job", 0, 0, [batch(1)])


@transactional
def test_rows_that_do_not_come_back_from_staging_are_never_dropped_in_silence(source: Source) -> None:
    source.stage("result", "job", 0, 0, [batch(1, 2)])
    (stage,) = left_over(source)
    source.execute(f"DELETE FROM {stage} WHERE a = 1")
    with pytest.raises(SourceError, match="2 rows of job job were staged, but 1 of them were found"):
        source.commit("result", "job", 1)
    assert made(source) == []


@transactional
def test_rows_staged_by_jobs_that_live_no_more_are_swept(source: Source) -> None:
    source.stage("result", "dead", 0, 0, [batch(1)])
    other = "second"
    if source.dialect == "postgres":
        other = "other.result"
    elif source.dialect != "mysql":  # there, only the database of the URL is swept
        source.execute("ATTACH ':memory:' AS other")
        other = "other.result"
    source.stage(other, "dead", 0, 0, [batch(1)])
    source.stage("result", "live", 0, 0, [batch(2)])
    assert source.sweep("dead".__eq__) == 2
    assert source.sweep("dead".__eq__) == 0
    assert len(left_over(source)) == 1
    assert source.commit("result", "live", 1) == 1
    with pytest.raises(SourceError, match="no staged rows"):
        source.commit("result", "dead", 1)
