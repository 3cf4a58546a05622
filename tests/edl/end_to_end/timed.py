"""Jobs with instances that write down their moments: what a death costs, for `make soak` and the benchmarks.

The clock is the monotonic one, which all processes of a machine share. `make test` asserts no figure of these.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from edl.data.results import ResultFolder
from edl.jobs.cluster_folder import TESTING, ClusterFolder
from edl.jobs.events import Progress
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import read_snapshot
from edl.spec import Checkpoints, Output
from edl.testing import Moment, read_moments
from tests.edl.end_to_end.distributed import ENTRIES, Event, Job, kill, table

NARROW = 16  # units of a model that costs next to nothing
WIDE = 256  # units of one that computes for some milliseconds a batch
PREDICT = {"output": Output(column="y", keep=("x",))}
FIRST = 2  # batches of a start that warm it up


@dataclass(frozen=True)
class Seen:
    """A job that has ended, and the moments of each start of its instances, by names such as `worker-0.1`."""

    job: Job
    outcome: Outcome
    moments: dict[str, list[Moment]]

    def of(self, start: str, what: str) -> list[float]:
        """The seconds of such moments."""
        return [moment.second for moment in self.moments.get(start, ()) if moment.what == what]

    @property
    def workers(self) -> list[str]:
        return [start for start in self.moments if start.startswith("worker-")]

    def result(self) -> pa.Table:
        return ResultFolder(self.job.folder.results).read(self.outcome.tasks).read_all()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """A state folder of their own for the jobs, which may name the entries of `edl.testing`."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_STATE_HOME": folder, TESTING: ENTRIES}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def trained(units: int, **more: Any) -> Path:
    """The archive of a small model. more: see `Job`."""
    job = Job(table(2000), epochs=1, units=units, **{"batch_size": 256, **more})
    job.run_here()
    return job.archive


def seen(
    data: pa.Table, *orders: str, heard: Callable[[Job, Event], None] = lambda job, event: None, **job: Any
) -> Seen:
    """Run the job with instances that die as ordered. heard: told of its events; job: see `Job`."""
    with tempfile.TemporaryDirectory() as folder:
        run = Job(data, how=kill(*orders, moments=Path(folder)), **job)
        outcome = run.run(partial(heard, run))
        found = {path.name: read_moments(path) for path in sorted(Path(folder).iterdir())}
    return Seen(run, outcome, found)


def predicted(
    archive: Path, rows: int, *orders: str, units: int = WIDE, workers: int = 2, **how: Any
) -> Seen:
    """Rows that are predicted by some workers. how: see `seen`."""
    return seen(
        table(rows, seed=1),
        *orders,
        kind="predict",
        workers=workers,
        weights=archive,
        units=units,
        spec=PREDICT,
        **how,
    )


class MasterKiller:
    """Kills a job's master when `rows` are done; `killed`: the second."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.killed = 0.0

    def __call__(self, job: Job, event: Event) -> None:
        if not self.killed and isinstance(event, Progress) and event.rows >= self._rows:
            master = job.cluster.process("master")
            assert master is not None
            self.killed = time.monotonic()
            os.kill(master.pid, signal.SIGKILL)


def after_master(archive: Path, rows: int) -> float:
    """Seconds from SIGKILL of the master to the next task that is acknowledged, by the next master."""
    killer = MasterKiller(rows // 4)
    run = predicted(archive, rows, heard=killer)
    later = (moment for start in run.workers for moment in run.moments[start])
    return min(one.second for one in later if one.what == "acknowledged" and one.epoch > 1) - killer.killed


def after_worker(archive: Path, rows: int) -> float:
    """Seconds from SIGKILL of one of two workers to the first batch of the one that takes its place."""
    return _replaced(predicted(archive, rows, "worker-0/0 in a task 40"))


def after_trainer(rows: int) -> float:
    """Seconds from SIGKILL of the only worker of a training to the first steps after its last checkpoint."""
    cuts = {"checkpoints": Checkpoints(steps=100, secs=0)}
    return _replaced(seen(table(rows), "worker-0/0 in a task 40", batch_size=64, spec=cuts))


class Signaller:
    """Sends a signal to a worker when `rows` are done; `second`: when."""

    def __init__(self, name: str, number: signal.Signals, rows: int) -> None:
        self._name = name
        self._number = number
        self._rows = rows
        self.second = 0.0

    def __call__(self, cluster: ClusterFolder, event: Event) -> None:
        if not self.second and isinstance(event, Progress) and event.rows >= self._rows:
            snapshot = read_snapshot(cluster.snapshot)
            assert snapshot is not None
            [place] = [row.place for row in snapshot.instances if row.name == self._name]
            self.second = time.monotonic()
            os.kill(int(place.removeprefix("pid ")), self._number)


def gaps(archive: Path, rows: int) -> tuple[list[float], list[float]]:
    """Seconds between two batches of one worker, before and after the other one is killed."""
    run = predicted(archive, rows, f"worker-0/0 in a task {rows // 32_768}")
    [killed] = run.of("worker-0.0", "killed")
    batches = run.of("worker-1.0", "batch")[FIRST:]
    pairs = list(itertools.pairwise(batches))
    return (
        [end - begin for begin, end in pairs if end <= killed],
        [end - begin for begin, end in pairs if end > killed],
    )


def rows_per_second(run: Seen) -> float:
    """Of a prediction, from its first batch to its last: starting processes is not counted."""
    seconds = sorted(second for start in run.workers for second in run.of(start, "batch"))
    batches = len(seconds)
    return run.outcome.rows * (batches - 1) / batches / (seconds[-1] - seconds[0])


def _replaced(run: Seen) -> float:
    [killed] = run.of("worker-0.0", "killed")
    return run.of("worker-0.1", "batch")[0] - killed
