"""Curves of a job for TensorBoard: event files in the job's folder, one for each master.

    train/loss, train/learning_rate         of rows trained since the previous point
    job/rows_per_second, job/workers        at present
    epoch/loss, validation/NAME             at the ends of epochs and rounds

Their axis is the step; for a job that does not train, its rows. When the job is rolled back to a checkpoint, or a
master to its stored state, later points are void, and the points of that step itself remain. (A new master does not
know if its predecessor wrote the point of an epoch that ended there, and writes it again: the same point twice.) A full
disk affects the curves, never the job.

A job with a folder that ends with its pod keeps copies of the files next to its checkpoints, on a volume or in a bucket
(`TensorBoardCopies`).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from edl import schedules
from edl.checkpoints.object_store import open_file_system
from edl.jobs.events import EpochEnd
from edl.jobs.snapshot import Snapshot
from edl.master.reporting.event_files import EventFile
from edl.master.tasks import progress
from edl.master.tasks.task_manager import TaskManager
from edl.spec import JobSpec
from edl.tasks.task import Summary


class Curves:
    """TensorBoard curves of a job, written to `folder`."""

    def __init__(self, spec: JobSpec, folder: Path, tasks: TaskManager) -> None:
        self._spec = spec
        self._tasks = tasks
        self._file: EventFile | None = None
        self._trained = progress.sum_epochs(tasks)  # at the last point
        self._step = self._trained.steps or progress.rows(tasks)
        self._last_steps: dict[str, int] = {}  # last step of each curve
        with self._stop_on_disk_error():
            name = f"{tasks.state.epoch:010d}.{os.getpid()}"
            self._file = EventFile(folder, name, self._step + 1)
        self._repeat()

    def point(self, snapshot: Snapshot) -> None:
        """Write the job's position, if it has made progress."""
        if (before := self._tasks.take_went_back()) is not None:
            self._go_back(before)
        step = snapshot.step or snapshot.rows
        if step <= self._step:
            return
        now = progress.sum_epochs(self._tasks)
        loss, weight = now.loss - self._trained.loss, now.weight - self._trained.weight
        self._step, self._trained = step, now
        workers = sum(row.role == "worker" and row.state == "running" for row in snapshot.instances)
        values = {
            "train/loss": loss / weight if weight > 0 else None,
            "train/learning_rate": learning_rate(self._spec, self._tasks, now.steps),
            "job/rows_per_second": snapshot.rate,
            "job/workers": workers,
        }
        self._write(step, values)

    def epoch_end(self, row: EpochEnd) -> None:
        """Write a row of the learning curve: the end of an epoch, or an evaluation within one."""
        values = {f"validation/{name}": value for name, value in row.metrics.items()}
        self._write(row.step, {"epoch/loss": row.loss, **values} if row.final else values)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _go_back(self, before: Summary) -> None:
        """Restart the curves at a checkpoint that the job has gone back to; later points become void."""
        if before.steps < self._step:
            self._trained, self._step = before, before.steps
        self._last_steps = {name: min(step, before.steps) for name, step in self._last_steps.items()}
        with self._stop_on_disk_error():
            if self._file is not None:
                self._file.restart(before.steps + 1)
        self._repeat()

    def _repeat(self) -> None:
        """Write again the points that were voided, or perhaps never written, and are still valid."""
        for row in self._tasks.job.state.curve.rows:
            if row.step >= self._step:
                self.epoch_end(row)

    def _write(self, step: int, values: Mapping[str, float | None]) -> None:
        new = {name: value for name, value in values.items() if step > self._last_steps.get(name, -1)}
        defined = {name: value for name, value in new.items() if value is not None}
        with self._stop_on_disk_error():
            if self._file is not None and defined:
                self._file.write(step, defined)
                self._last_steps |= dict.fromkeys(defined, step)

    @contextlib.contextmanager
    def _stop_on_disk_error(self) -> Iterator[None]:
        """Stop writing curves when the disk does not accept them."""
        try:
            yield
        except OSError as error:
            self.close()
            why = error.strerror or error
            self._tasks.log(f"the curves of the job are no longer written: {why}")


def learning_rate(spec: JobSpec, tasks: TaskManager, steps: int) -> float | None:
    """Return the learning rate of the next step, or None if user code sets it or the job does not train."""
    if tasks.job.state.rate is not None:  # set by a callback
        return tasks.job.state.rate[1]
    is_of_user = spec.edited or spec.zoo or (spec.own is not None and "optimizer" in spec.own.functions)
    rate = spec.optimizer.params.get("learning_rate")
    if spec.kind != "train" or is_of_user or not isinstance(rate, float | int):
        return None
    if spec.schedule is None:
        return float(rate)
    taken = steps // max(1, spec.cluster.grads_to_wait)  # optimizer steps
    scheduled = schedules.get_schedule(spec.schedule.name, spec.schedule.params, float(rate))
    return float(scheduled(np.array([taken]))[0])


COPY_SECS = 30.0  # seconds between two copies
LAST_COPY_SECS = 10.0  # timeout of the last copy


class CurveCopies:
    """Background copier of the event files in `folder` to `place`, a folder or a URL. `log` logs the first failure."""

    def __init__(self, folder: Path, place: str, log: Callable[[str], None]) -> None:
        self._folder = folder
        self._place = place
        self._log = log
        self._sent: dict[str, int] = {}  # copied bytes of each file
        self._failed = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="edl-curves", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Copy the remaining files and stop. Blocks for `LAST_COPY_SECS` at most."""
        self._closed.set()
        self._thread.join(LAST_COPY_SECS)

    def _run(self) -> None:
        while not self._closed.wait(COPY_SECS):
            self._send()
        self._send()

    def _send(self) -> None:
        try:
            system, root = open_file_system(self._place)
            for path in sorted(self._folder.glob("*")):
                size = path.stat().st_size
                if self._sent.get(path.name) != size:
                    system.makedirs(root, exist_ok=True)
                    system.put_file(str(path), f"{root}/{path.name}")
                    self._sent[path.name] = size
        except Exception as error:  # libraries of stores raise any type
            if not self._failed:
                self._log(f"the curves of the job cannot be copied to {self._place}: {error}")
            self._failed = True
