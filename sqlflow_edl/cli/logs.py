"""`sqlflow logs ID [INSTANCE]`: what the instances of a job have printed, and print."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import IO

from edl.data import jobs
from edl.data.jobs import JobFolder
from edl.errors import SemanticError, did_you_mean
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.reports.jobs import logs as names_of

POLL = 0.1  # seconds between two looks at the logs


@reported
def logs(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    job = jobs.find(options.id)
    _check(job, options.instance)
    with Tail(job, options.instance, sys.stdout) as tail:
        going = True
        while going:
            going = (
                options.follow and job.status().alive
            )  # before the last look, or what comes between is missed
            tail.show(last=not going)
            if going:
                time.sleep(POLL)
    return exit_codes.OK


class Tail:
    """Shows what is new in a job's logs: whole lines, each with the name of its instance where there are several."""

    def __init__(self, job: JobFolder, instance: str | None, out: IO[str]) -> None:
        self._job = job
        self._instance = instance
        self._out = out
        self._files: dict[str, IO[bytes]] = {}
        self._open = contextlib.ExitStack()

    def show(self, *, last: bool = True) -> None:
        """What was written since the last call; half a line only when no more will come."""
        self._look()
        named = self._instance is None and len(self._files) > 1
        width = max(map(len, self._files), default=0)
        for name, file in self._files.items():
            before = f"{name:{width}} | " if named else ""
            for line in _lines(file, last):
                self._out.write(before + line)
        self._out.flush()

    def _look(self) -> None:
        """Open the logs that there are by now."""
        for name in names_of(self._job):
            if name not in self._files and self._instance in (None, name):
                self._files[name] = self._open.enter_context((self._job.logs / f"{name}.log").open("rb"))

    def __enter__(self) -> Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _lines(file: IO[bytes], last: bool) -> Iterator[str]:
    """The whole lines from here on; the last one also when nobody has ended it, if it is the last."""
    while line := file.readline():
        if not line.endswith(b"\n"):
            if not last:
                file.seek(-len(line), os.SEEK_CUR)
                return
            line += b"\n"
        yield line.decode("utf-8", "replace")


def _check(job: JobFolder, instance: str | None) -> None:
    known = names_of(job)
    if instance is not None and instance not in known:
        raise SemanticError(f"job {job.id} has no log of {instance}", hint=did_you_mean(instance, known))
