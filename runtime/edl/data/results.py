"""Results of a job before their commit: one Arrow IPC file per task in the job folder.

An instance writes a file under a temporary name and renames it, so a file under its final name is complete; a later
attempt of a task replaces the earlier ones. The client reads the files in the order of the tasks and commits them. If
client and instances share no folder, an instance stages each file in the data source.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from edl.data.arrow_types import columns_and_batches, rechunk_rows
from edl.data.pinned import disk_full
from edl.data.retry import insisting
from edl.data.source import Source
from edl.errors import SourceError

RESULT = re.compile(r"(\d{8,})\.(\d+)\.arrow")


class ResultSink(Protocol):
    """Destination of the results of tasks."""

    def stage(self, task: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> int:
        """Stage a task's rows. Return their number. A later attempt that is already staged takes precedence."""
        ...


class ResultFolder:
    """Folder with the results of one job; instances stage into it, the client reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stage(self, task: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> int:
        """Stage a task's rows. Return their number. A later attempt that is already staged takes precedence.

        `batches` is a reader, or has at least one batch (possibly empty), which determines the columns. Raises
        SourceError if there is none, or if the disk is full.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{task:08d}.{attempt}.arrow"
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        try:
            rows = _write(partial, batches)
            partial.replace(path)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise disk_full(self.folder) from None
        finally:
            partial.unlink(missing_ok=True)
        for earlier, file in self._files().get(task, []):
            if earlier < attempt:
                file.unlink(missing_ok=True)
        return rows

    def staged_files(self) -> dict[int, Path]:
        """Return the complete file of each task's latest attempt."""
        return {task: max(attempts)[1] for task, attempts in sorted(self._files().items())}

    def read(self, tasks: int, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
        """Read all rows of tasks 0 … tasks-1, in that order.

        `schema` is the result's schema if there are no tasks. Raises SourceError if a task has no file or other
        columns.
        """
        staged = self.staged_files()
        if missing := [task for task in range(tasks) if task not in staged]:
            raise SourceError(
                f"{len(missing)} of {tasks} tasks have no results, the first is task {missing[0]}"
            )
        files = [staged[task] for task in range(tasks)]
        if files:
            schema = _open(files[0]).schema
        if schema is None:
            raise SourceError("a result without tasks has no columns")
        return pa.RecordBatchReader.from_batches(schema, _batches(files, schema))

    def read_task(self, task: int) -> pa.RecordBatchReader:
        """Read the rows of a staged task."""
        path = self.staged_files()[task]
        schema = _open(path).schema
        return pa.RecordBatchReader.from_batches(schema, _batches([path], schema))

    def clear(self) -> None:
        """Remove every result, complete or not."""
        for path in self.folder.glob("*.arrow*"):
            path.unlink(missing_ok=True)

    def _files(self) -> dict[int, list[tuple[int, Path]]]:
        by_task: dict[int, list[tuple[int, Path]]] = {}
        for path in self.folder.glob("*.arrow"):
            if match := RESULT.fullmatch(path.name):
                by_task.setdefault(int(match[1]), []).append((int(match[2]), path))
        return by_task


class ResultTable:
    """Results of one job in its data source.

    A task is first written to `folder`: so no transaction waits for a model, and rows that a lost connection rolled
    back are staged again without running it. `source` opens a connection of this job, on first use. `append`: the rows
    are to be added to the target.
    """

    def __init__(
        self,
        folder: ResultFolder,
        source: Callable[[], Source],
        target: str,
        job: str,
        *,
        append: bool = False,
    ) -> None:
        self._folder = folder
        self._source = source
        self._target = target
        self._job = job
        self._append = append

    def stage(self, task: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> int:
        self._folder.stage(task, attempt, batches)
        try:
            return insisting(lambda _: self._stage(task, attempt))
        finally:
            self._folder.clear()

    def _stage(self, task: int, attempt: int) -> int:
        rows = self._folder.read_task(task)
        return self._source().stage(self._target, self._job, task, attempt, rows, append=self._append)


def _write(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    schema, batches = columns_and_batches(batches)
    rows = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in rechunk_rows(batches, schema):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _open(path: Path) -> pa.ipc.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except pa.ArrowInvalid as error:
        raise SourceError(f"{path} is damaged: {str(error).splitlines()[0]}") from None


def _batches(files: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for path in files:
        file = _open(path)
        if file.schema != schema:
            raise SourceError(f"{path} has other columns than the results before it")
        for index in range(file.num_record_batches):
            yield file.get_batch(index)
