"""Standby: a supervisor without a job yet. Its forkserver has imported the framework, and its master is loaded.

To import a framework takes seconds. After a job with workers, a session starts what the next one needs, and hands its
job over: two lines to the supervisor's input, `Warm` at its start and the folder of the job later. A standby serves one
job at most, ends with its session, and after STANDBY_SECS by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, cast

import msgspec

from edl.cluster.local.messages import Warm
from edl.cluster.local.prepared import Prepared
from edl.cluster.local.waiting_master import read_line
from edl.cluster.logs import log_to
from edl.jobs.cluster_folder import ClusterFolder, RunSpec, with_surroundings

STANDBY_SECS = 600.0  # it holds 0.3 GB (PyTorch) to 0.6 GB (Keras) of memory
MARGIN_SECS = 30.0  # before its end, in which it is not used: a job handed over in that moment would be lost
VARIABLE = "EDL_STANDBY"  # variable; 0: no process waits for the next job


class Standby:
    """Client of a supervisor that waits for a job. Close it if no job takes it."""

    def __init__(self, warm: Warm, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        self._warm = warm
        self._environment = dict(os.environ)
        self._began = time.monotonic()
        self._process = process
        self._output = output

    @classmethod
    def start(cls, spec: RunSpec, *, collectives: bool) -> Standby | None:
        """Start a supervisor for a job that runs like this one, and return at once; None if that is impossible."""
        if os.environ.get(VARIABLE) == "0":
            return None
        warm = Warm(_without_job(with_surroundings(spec)), collectives)
        output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "edl.cluster.local.supervisor"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=warm.spec.folder,
            )
            cast(IO[bytes], process.stdin).write(msgspec.json.encode(warm) + b"\n")
            cast(IO[bytes], process.stdin).flush()
        except OSError:  # memory or processes are short: the next job starts its own
            output.close()
            return None
        return cls(warm, process, output)

    def fits(self, spec: RunSpec, *, collectives: bool) -> bool:
        """Return True if it waits, and its processes are as those that such a job would start."""
        return (
            self._warm == Warm(_without_job(with_surroundings(spec)), collectives)
            and self._environment == os.environ
            and time.monotonic() - self._began < STANDBY_SECS - MARGIN_SECS
            and self._process.poll() is None
        )

    def hand_over(self, job: Path) -> subprocess.Popen[bytes] | None:
        """Let it run the job in the folder; return its process, or None if it has ended."""
        try:
            cast(IO[bytes], self._process.stdin).write(os.fsencode(job) + b"\n")
            cast(IO[bytes], self._process.stdin).flush()
        except OSError:
            self.close()
            return None
        self._output.close()
        return self._process

    def close(self) -> None:
        """End it, with its processes."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):  # what an ended one has not read
            cast(IO[bytes], self._process.stdin).close()
        self._output.close()


def wait_for_job() -> tuple[Path, Prepared] | None:
    """Start processes in advance, and wait for the folder of their job; return None if none comes.

    Called in the standby itself. Its output up to then becomes the beginning of the job's log.
    """
    line = read_line(0)
    if not line:
        return None
    prepared = Prepared.start(msgspec.json.decode(line, type=Warm))
    if not select.select([0], [], [], STANDBY_SECS)[0] or not (line := read_line(0)):
        return None
    job = Path(os.fsdecode(line[:-1]))
    earlier = os.pread(1, 1 << 20, 0)
    log_to(ClusterFolder(job).log("supervisor"))
    os.write(1, earlier)
    return job, prepared


def _without_job(spec: RunSpec) -> RunSpec:
    """Return the spec without what only its supervisor, or a later master, needs to know."""
    return msgspec.structs.replace(
        spec,
        slots=0,
        quota=None,
        master_arguments=(),
        detached=False,
        master_timeout=RunSpec(spec.framework).master_timeout,
    )
