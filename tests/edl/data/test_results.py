"""Results on their way home: complete files only, in the order of the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl.data import ConflictError, Source
from edl.data.results import ResultFolder, ResultTable
from edl.errors import SourceError

SCHEMA = pa.schema([("a", pa.int64())])


def batch(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(values, pa.int64())})


def values(reader: pa.RecordBatchReader) -> list[int | None]:
    return reader.read_all().column("a").to_pylist()


@pytest.fixture
def results(tmp_path: Path) -> ResultFolder:
    return ResultFolder(tmp_path / "results")


def test_rows_are_read_in_the_order_of_the_tasks(results: ResultFolder) -> None:
    assert results.stage(10, 0, [batch(4)]) == 1
    assert results.stage(2, 0, [batch(3)]) == 1
    assert results.stage(1, 0, [batch()]) == 0
    assert results.stage(0, 0, [batch(1, None), batch(), batch(2)]) == 3
    assert values(results.read(3)) == [1, None, 2, 3]


def test_a_later_attempt_counts_whenever_it_arrives(results: ResultFolder) -> None:
    results.stage(0, 2, [batch(2)])
    results.stage(0, 1, [batch(1)])
    assert values(results.read(1)) == [2]
    results.stage(0, 10, [batch(10)])
    assert values(results.read(1)) == [10]
    assert len(list(results.folder.iterdir())) == 1


def test_missing_tasks_are_named(results: ResultFolder) -> None:
    results.stage(0, 0, [batch(1)])
    with pytest.raises(SourceError, match="2 of 3 tasks have no results, the first is task 1"):
        results.read(3)


def test_a_file_that_a_killed_process_left_does_not_count(results: ResultFolder) -> None:
    results.stage(0, 0, [batch(1)])
    (results.folder / "00000001.0.arrow.4711.partial").write_bytes(b"ARROW1\0\0 half")
    assert list(results.staged_files()) == [0]
    with pytest.raises(SourceError, match="task 1"):
        results.read(2)
    results.clear()
    assert list(results.folder.iterdir()) == []


def test_a_damaged_file_is_a_named_error(results: ResultFolder) -> None:
    results.stage(0, 0, [batch(1)])
    path = results.staged_files()[0]
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(SourceError, match=r"00000000\.0\.arrow is damaged"):
        results.read(1)


def test_an_error_of_the_batches_leaves_nothing(results: ResultFolder) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        results.stage(0, 0, failing())
    assert list(results.folder.iterdir()) == []


def test_columns_that_differ_between_tasks_are_a_named_error(results: ResultFolder) -> None:
    results.stage(0, 0, [batch(1)])
    results.stage(1, 0, [pa.record_batch({"b": [1]})])
    with pytest.raises(SourceError, match="other columns"):
        results.read(2).read_all()


def test_a_result_without_rows_has_its_columns(results: ResultFolder) -> None:
    assert results.stage(0, 0, pa.RecordBatchReader.from_batches(SCHEMA, [])) == 0
    assert results.read(1).read_all().equals(SCHEMA.empty_table())
    assert results.read(0, SCHEMA).schema == SCHEMA
    with pytest.raises(SourceError, match="no columns"):
        results.read(0)
    with pytest.raises(SourceError, match="no columns"):
        results.stage(0, 0, [])


def test_nothing_staged_is_an_empty_folder_or_none(results: ResultFolder) -> None:
    assert results.staged_files() == {}
    results.clear()


def test_results_go_into_the_table_they_are_for(results: ResultFolder, source: Source) -> None:
    for task in range(3):
        results.stage(task, 0, [batch(*range(task * 100_000, (task + 1) * 100_000))])
    source.stage("out", "job", 0, 0, results.read(3))
    assert source.commit("out", "job", 1) == 300_000
    assert values(source.stream("FROM out")) == list(range(300_000))


@pytest.mark.soak
def test_a_task_is_staged_in_the_source_again_when_the_connection_was_lost(
    results: ResultFolder, source: Source
) -> None:
    class Losing:
        times = 0

        def stage(self, *arguments: Any, append: bool) -> int:
            self.times += 1
            *first, batches = arguments
            if self.times == 1:
                batches.read_next_batch()
                raise ConflictError("the connection was lost")
            return source.stage(*first, batches, append=append)

    losing = Losing()
    table = ResultTable(results, lambda: losing, "scores", "job-1")  # type: ignore[arg-type, return-value]
    made: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        made.append(1)
        yield batch(1, 2)

    assert table.stage(0, 3, batches()) == 2
    assert table.stage(1, 4, [batch(3)]) == 1
    assert (losing.times, made) == (3, [1])
    assert source.commit("scores", "job-1", 2) == 3
    assert not results.staged_files()
