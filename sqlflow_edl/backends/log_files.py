"""Logs in files of the job folder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from edl.jobs.job_folder import JobFolder

POLL = 0.1  # seconds between two polls of the logs
TAIL_BYTES = 1 << 17  # of a log, in which its last lines are looked for


class LogFiles:
    """Reader of a job's logs: whole lines, and an incomplete line only if no more will come.

    instance: None for all. follow: continue until the job has ended.
    """

    def __init__(self, job: JobFolder, instance: str | None, *, follow: bool) -> None:
        self._job = job
        self._instance = instance
        self._follow = follow
        self._files: dict[str, IO[bytes]] = {}
        self._open = contextlib.ExitStack()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._files)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        going = True
        while going:
            # Check before the last read, or lines written in between are missed.
            going = self._follow and self._job.status().is_alive
            self._refresh()
            for name, file in self._files.items():
                for line in _lines(file, last=not going):
                    yield name, line
            if going:
                time.sleep(POLL)

    def _refresh(self) -> None:
        """Open new logs."""
        for name in log_names(self._job):
            if name not in self._files and self._instance in (None, name):
                self._files[name] = self._open.enter_context((self._job.logs / f"{name}.log").open("rb"))

    def __enter__(self) -> LogFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def log_names(job: JobFolder) -> tuple[str, ...]:
    """Return the names of the job's logs: the names of its instances."""
    return tuple(sorted(path.stem for path in job.logs.glob("*.log")))


def tail(job: JobFolder, instance: str | None, lines: int) -> list[tuple[str, str]]:
    """Return the last lines of an instance's log; of all, so many together, one instance after another."""
    names = [name for name in log_names(job) if instance in (None, name)]
    share = max(lines // len(names), 1) if names else 0
    return [(name, line) for name in names for line in _read_last_lines(job.logs / f"{name}.log", share)]


def _read_last_lines(path: Path, lines: int) -> list[str]:
    """Return the last lines of a file, of its last `TAIL_BYTES`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = file.seek(max(size - TAIL_BYTES, 0))
            read_lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    return read_lines[1 if start else 0 :][-lines:]


def _lines(file: IO[bytes], *, last: bool) -> Iterator[str]:
    """Yield the whole lines from here on. last: also yield an incomplete last line."""
    while line := file.readline():
        if not line.endswith(b"\n"):
            if not last:
                file.seek(-len(line), os.SEEK_CUR)
                return
            line += b"\n"
        yield line.decode("utf-8", "replace")
