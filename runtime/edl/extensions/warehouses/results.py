"""Results in a warehouse: staged in files of this machine, uploaded into a new table, and swapped in by names.

A warehouse has no transactions here, so each step of a commit can be repeated. The new table has the job in its
comment. After the swap the target has it, which tells a repeated commit that all is done; the number of rows is also
recorded beside the staged files, for a target that another job has replaced since. The replaced table is dropped last.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from edl.data.arrow_types import columns_and_batches
from edl.data.results import ResultFolder
from edl.errors import SourceError
from edl.sources.appending import check_range, columns_for, is_added
from edl.sources.staging import MARK, columns_differ
from edl.sources.staging_tables import check_complete, few_rows

if TYPE_CHECKING:
    from edl.extensions.warehouses.source import WarehouseSource

_NEW, _OLD = "sqlflow_edl_new_", "sqlflow_edl_old_"
_RECORD = "result.json"
KEPT_SECS = 24 * 3600  # for the record of a commit, which may be repeated

Parts = tuple[str, ...]


class StageRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Target and job of a folder of staged rows. `rows` is their number once they are committed.

    `before` is the number of rows of the target to which they are being added.
    """

    target: Parts
    job: str
    rows: int | None = None
    before: int | None = None


class WarehouseResults:
    """Results of one warehouse, staged in subfolders of `folder`."""

    def __init__(self, source: WarehouseSource, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def check_target(self, target: str, appended: pa.Schema | None = None) -> None:
        self._check(self._source.place(target), target, "", appended)

    def stage(
        self,
        target: str,
        job: str,
        task: int,
        attempt: int,
        batches: Iterable[pa.RecordBatch],
        *,
        append: bool = False,
    ) -> int:
        record = StageRecord(self._source.place(target), job)
        schema, batches = columns_and_batches(batches)
        self._check(record.target, target, job, schema if append else None)
        folder = self._staged_folder(record)
        for other in folder.staged_files():
            if (names := folder.read_task(other).schema.names) != schema.names and other != task:
                raise columns_differ(task, schema.names, names)
        folder.stage(task, attempt, pa.RecordBatchReader.from_batches(schema, batches))
        if not self._read_record(record):
            self._write(record)
        return sum(batch.num_rows for batch in folder.read_task(task))

    def commit(self, target: str, job: str, tasks: int, *, append: bool = False) -> int:
        record = StageRecord(self._source.place(target), job)
        done = self._read_record(record)
        if done is not None and done.rows is not None:
            if self._staged_folder(record).staged_files():  # the commit died before its end
                self._end(record)
            return done.rows
        mark = f"{MARK}, job {job}"
        existing = self._source.existing(record.target)
        if existing and existing.mark == mark:
            rows = self._count(record.target)
        elif existing and append:
            rows = self._add_rows(done or record, target, tasks)
        else:
            rows = self._replace_target(record, target, tasks, append=append)
        self._write(msgspec.structs.replace(record, rows=rows))
        self._end(record)  # behind the record: without the new table nobody knows whether rows were added
        return rows

    def committed_rows(self, target: str, job: str) -> int | None:
        record = self._read_record(StageRecord(self._source.place(target), job))
        return record.rows if record is not None else None

    def abort(self, target: str, job: str) -> None:
        self._end(StageRecord(self._source.place(target), job))

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        swept = 0
        for path in self._folder.glob(f"*/{_RECORD}"):
            try:
                record = msgspec.json.decode(path.read_bytes(), type=StageRecord)
                is_old = record.rows is not None and time.time() - path.stat().st_mtime > KEPT_SECS
            except (OSError, msgspec.MsgspecError):  # another session has swept it, or it is damaged
                continue
            if not is_old and not is_over(record.job):
                continue
            # also if a commit died while it ended
            is_staged = bool(self._staged_folder(record).staged_files())
            if is_staged or record.rows is None:
                self._end(record)
                swept += is_staged
            shutil.rmtree(path.parent, ignore_errors=True)
        return swept

    # Steps -----------------------------------------------------------------------------------------------

    def _check(self, parts: Parts, target: str, job: str, appended: pa.Schema | None = None) -> bool:
        """Return True if the target exists. Raises SourceError if the job must not replace it, or add rows to it."""
        existing = self._source.existing(parts)
        if existing is not None:
            existing.check(target, job, append=appended is not None)
        if existing is not None and appended is not None:
            self._columns_for(parts, target, appended)
        return existing is not None

    def _columns_for(self, parts: Parts, target: str, appended: pa.Schema) -> pa.Schema:
        """Return the columns of the target in the order of those added. Raises SourceError if they do not fit."""
        present = self._source.schema(f"SELECT * FROM {self._source.texts.name(*parts)}")

        def described(names: list[str]) -> pa.Schema:
            return pa.schema(map(present.field, names))

        return described(columns_for(target, present.names, described, appended))

    def _replace_target(self, record: StageRecord, target: str, tasks: int, *, append: bool) -> int:
        """Upload the rows, and put them in the place of the target. Return their number.

        append: add them instead if another job has made the target during the upload.
        """
        self._check(record.target, target, record.job)
        new, old = _sibling_name(record, _NEW), _sibling_name(record, _OLD)
        uploaded = self._upload_rows(record, tasks).rows
        if append and self._source.existing(record.target):
            return self._add_rows(record, target, tasks)
        exists = self._check(record.target, target, record.job)  # a user may have made it meanwhile
        self._source.run(self._source.swap(new, record.target, old, exists=exists))
        return uploaded

    def _add_rows(self, record: StageRecord, target: str, tasks: int) -> int:
        """Upload the rows, and add them to the target unless a commit before did. Return their number."""
        name, new = self._source.texts.name, _sibling_name(record, _NEW)
        if record.before is not None and self._source.existing(new):
            rows = self._count(new)
            if is_added(target, record.before, self._count(record.target), rows):
                return rows
        staged = self._staged_folder(record).read(tasks)
        target_schema = self._columns_for(record.target, target, staged.schema)
        check_range(target, target_schema, staged)
        rows = self._upload_rows(record, tasks).rows
        self._write(msgspec.structs.replace(record, before=self._count(record.target)))
        into, names = (
            ", ".join(map(name, some_names)) for some_names in (target_schema.names, staged.schema.names)
        )
        self._source.run([f"INSERT INTO {name(*record.target)} ({into}) SELECT {names} FROM {name(*new)}"])
        return rows

    def _upload_rows(self, record: StageRecord, tasks: int) -> _Counted:
        """Upload the staged rows into a new table."""
        folder, new = self._staged_folder(record), _sibling_name(record, _NEW)
        check_complete(folder.staged_files(), tasks, record.job)
        counted = _Counted(folder.read(tasks))
        self._source.make(new, f"{MARK}, job {record.job}", counted.reader)
        if (count := self._count(new)) != counted.rows:
            self._source.drop(new)
            raise SourceError(f"{counted.rows:,} rows were uploaded, but {count:,} of them were found")
        return counted

    def _count(self, parts: Parts) -> int:
        return int(
            few_rows(self._source, f"SELECT count(*) AS n FROM {self._source.texts.name(*parts)}")[0][0]
        )

    def _end(self, record: StageRecord) -> None:
        """Remove the staged rows and tables that a commit has left, and put back a table after an unfinished swap."""
        if self._read_record(record):
            new, old = _sibling_name(record, _NEW), _sibling_name(record, _OLD)
            if self._source.existing(old) and not self._source.existing(record.target):
                self._source.run([self._source.rename(old, record.target)])
            self._source.drop(old)
            self._source.drop(new)
        self._staged_folder(record).clear()

    def _staged_folder(self, record: StageRecord) -> ResultFolder:
        return ResultFolder(self._folder / _digest(record))

    def _read_record(self, record: StageRecord) -> StageRecord | None:
        path = self._staged_folder(record).folder / _RECORD
        return msgspec.json.decode(path.read_bytes(), type=StageRecord) if path.is_file() else None

    def _write(self, record: StageRecord) -> None:
        path = self._staged_folder(record).folder / _RECORD
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(record))
        partial.replace(path)


class _Counted:
    """Reader that counts its rows."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.rows = 0
        self.reader = pa.RecordBatchReader.from_batches(reader.schema, map(self._count, reader))

    def _count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.rows += batch.num_rows
        return batch


def _digest(record: StageRecord) -> str:
    return hashlib.blake2b(f"{record.target}\0{record.job}".encode(), digest_size=12).hexdigest()


def _sibling_name(record: StageRecord, prefix: str) -> Parts:
    """Return the name of a table of this program in the schema of the target."""
    return (*record.target[:-1], prefix + _digest(record))
