"""Checkpoints that outlive the pods of a job, in a table of its data source.

A checkpoint is kept when all holders of the weights end: when the job is paused, has failed, or its pods are asked to
leave together. It has the files of the checkpoint, and as its last one the state of the master, which completes it. A
job has one; the next takes its place. It is removed when the job is done, and with a job that is not resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from edl.checkpoints import DAMAGED, STATE, GoneError
from edl.data import connect
from edl.data.retry import insisting
from edl.data.source import Source
from edl.errors import SpecError
from edl.files import make_folders
from edl.jobs import job_folder
from edl.models.registry.own_tables import Layout, OwnTables, read_pieces

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)

CHECKPOINTS = "sqlflow_edl_checkpoints"
SCHEMES = ("mysql", "postgresql")  # of data sources of pods with tables that transactions can change

_LAYOUTS: dict[str, Layout] = {
    CHECKPOINTS: (
        {
            "job": "VARCHAR(64) NOT NULL",
            "name": "VARCHAR(128) NOT NULL",
            "file": "VARCHAR(64) NOT NULL",
            "position": "INTEGER NOT NULL",
            "data": "{blob} NOT NULL",
        },
        "job, name, file, position",
    )
}


def keeps_checkpoints(url: str) -> bool:
    """Return True if the data source of this URL can keep checkpoints."""
    return url.partition(":")[0] in SCHEMES


class KeptCheckpoints:
    """Kept checkpoints of all jobs of a data source, by the id of the job. Raises SourceError."""

    def __init__(self, source: Source) -> None:
        self._own = OwnTables(source, _LAYOUTS, "checkpoints")
        self._table = source.home + CHECKPOINTS

    def put(self, job: str, folder: Path, state: bytes, *, files: bool = True) -> None:
        """Keep the checkpoint in this folder, with the state, in place of the job's earlier one; idempotent.

        `files`: with its files, which are lost otherwise.
        """
        name = folder.name
        self._own.retry(lambda: self._own.create(CHECKPOINTS))
        if name not in self.names(job):  # else its files are there
            self._own.retry(lambda: self._delete(job, name))
            for path in sorted(folder.iterdir()) if files else ():
                if path.name not in (STATE, DAMAGED):
                    with path.open("rb") as file:
                        chunks = chain(read_pieces(file), [b""] if not path.stat().st_size else [])
                        self._own.insert_chunks(CHECKPOINTS, [job, name, path.name], chunks)

        def complete() -> None:
            self._own.run(
                f"DELETE FROM {self._table} WHERE job = ? AND (name <> ? OR file = ?)", job, name, STATE
            )
            self._own.run(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?)", job, name, STATE, 0, state)

        self._own.retry(complete)

    def names(self, job: str) -> list[str]:
        """Return the names of the job's complete checkpoints."""
        if not self._own.exists(CHECKPOINTS):
            return []
        query = f"SELECT name FROM {self._table} WHERE job = ? AND file = ?"
        return [row["name"] for row in self._own.rows(query, job, STATE)]

    def state(self, job: str) -> bytes | None:
        """Return the state in the job's checkpoint, or None if it has none."""
        if not self._own.exists(CHECKPOINTS):
            return None
        return b"".join(self._own.read_chunks(CHECKPOINTS, {"job": job, "file": STATE})) or None

    def fetch(self, job: str, name: str, folder: Path) -> None:
        """Write the files of a checkpoint into a new folder. Raises GoneError if it is not there, SpecError if a name
        could lead out of the folder: others may write into the table.
        """
        if name not in self.names(job):
            raise GoneError(f"the checkpoint {name} is gone")
        rows = self._own.rows(
            f"SELECT DISTINCT file FROM {self._table} WHERE job = ? AND name = ? ORDER BY file", job, name
        )
        for text in (name, *(row["file"] for row in rows)):
            if not _NAME.fullmatch(text):
                raise SpecError(f"{text!r} is no name of a checkpoint or of its files")
        partial = folder.with_name(f"{name}.partial")
        make_folders(partial)
        for row in rows:
            key = {"job": job, "name": name, "file": row["file"]}
            with (partial / row["file"]).open("wb") as opened:
                opened.writelines(self._own.read_chunks(CHECKPOINTS, key))
        partial.replace(folder)

    def remove(self, job: str) -> None:
        if self._own.exists(CHECKPOINTS):
            self._own.retry(lambda: self._own.run(f"DELETE FROM {self._table} WHERE job = ?", job))

    def sweep(self, is_over: Callable[[str], bool]) -> int:
        """Remove the checkpoints of jobs that are over; return the number of these jobs."""
        if not self._own.exists(CHECKPOINTS):
            return 0
        jobs = [row["job"] for row in self._own.rows(f"SELECT DISTINCT job FROM {self._table}")]
        over = [job for job in jobs if is_over(job)]
        for job in over:
            self.remove(job)
        return len(over)

    def sweep_given_up(self) -> int:
        """Remove the checkpoints of jobs that have ended and are not kept to be resumed; return their number."""
        return self.sweep(job_folder.is_given_up)

    def _delete(self, job: str, name: str) -> None:
        self._own.run(f"DELETE FROM {self._table} WHERE job = ? AND name = ?", job, name)


@dataclass(frozen=True, slots=True)
class KeptCheckpoint:
    """Kept checkpoint of one job, in the data source of this URL. Each call has its own connections. One that `insists`
    waits for an absent source, as long as the storage of a result does.
    """

    url: str
    job: str
    insists: bool = True

    def put(self, folder: Path, state: bytes, *, files: bool = True) -> None:
        """Keep the checkpoint in this folder; see `KeptCheckpoints.put`."""
        self._call(lambda kept: kept.put(self.job, folder, state, files=files))

    def fetch(self, name: str, folder: Path) -> None:
        """Write the files of the checkpoint into a new folder. Raises GoneError if it is not there."""
        self._call(lambda kept: kept.fetch(self.job, name, folder))

    def state(self) -> bytes | None:
        """Return the state in the checkpoint, or None if there is none."""
        return self._call(lambda kept: kept.state(self.job))

    def remove(self) -> None:
        self._call(lambda kept: kept.remove(self.job))

    def _call(self, work: Callable[[KeptCheckpoints], T]) -> T:
        def attempt(number: int) -> T:
            with closing(connect(self.url)) as source:
                return work(KeptCheckpoints(source))

        return insisting(attempt, keeps=True) if self.insists else attempt(0)
