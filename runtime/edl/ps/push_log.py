"""Log of a server beside its parameters: the last push of each worker, and the progress of each lease.

It is part of a checkpoint, so that a push repeated after a restore is recognized, and gradients and progress agree.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec
import numpy as np

from edl.embeddings.table import Floats
from edl.ps.checkpoint.content import Progress
from edl.ps.messages import Push


class WorkerPushes(msgspec.Struct):
    """Last applied push of one instance, the number of all its rows, and its private data.

    `pushes` and `pushed_rows` count the pushes of this incarnation in this generation.
    """

    incarnation: int = -1
    sequence: int = 0
    rows: int = 0
    private: bytes = b""
    pushes: int = 0
    pushed_rows: int = 0


class PushLogState(msgspec.Struct, frozen=True):
    """Push log as plain data, except for the states of workers."""

    workers: dict[str, WorkerPushes] = {}
    progress: tuple[Progress, ...] = ()
    void: tuple[int, ...] = ()


class PushLog:
    """Log of applied pushes. `first` is the initial state, before any worker pushed one. Thread-safe.

    `lost` and `lost_rows` count the pushes, and their rows, that a restored log lacks: the first push of each worker
    says how many there were before it.
    """

    def __init__(self, first: Floats) -> None:
        self._lock = threading.Lock()
        self.first = first
        self._workers: dict[str, WorkerPushes] = {}
        self._states: dict[str, Floats] = {}
        self._progress: dict[int, Progress] = {}
        self._finished: set[int] = set()  # leases reported as finished by a checkpoint
        self._void: set[int] = set()
        self._continues = False  # True if it was restored, and the same workers go on
        self._compared: set[str] = set()  # workers that have pushed since
        self.lost = self.lost_rows = 0

    def knows(self, push: Push) -> bool:
        """Return True if the push was applied already, or is of an earlier incarnation."""
        with self._lock:
            worker = self._workers.get(push.instance, WorkerPushes())
            return (push.incarnation, push.sequence) <= (worker.incarnation, worker.sequence)

    def last_pushes(self) -> dict[str, tuple[int, int]]:
        """Return incarnation and sequence of the last push of each instance."""
        with self._lock:
            return {name: (worker.incarnation, worker.sequence) for name, worker in self._workers.items()}

    def pushed_by(self) -> tuple[str, ...] | None:
        """Return the instances that have pushed since this log followed another one, or None if it is the first."""
        with self._lock:
            return tuple(self._compared) if self._continues else None

    def is_void(self, lease: int) -> bool:
        """Return True if the lease was revoked."""
        with self._lock:
            return lease in self._void

    def record(self, push: Push, state: Floats | None) -> None:
        """Record a push that was applied to the parameters."""
        with self._lock:
            worker = self._workers.setdefault(push.instance, WorkerPushes())
            if worker.incarnation != push.incarnation:
                worker.pushes = worker.pushed_rows = 0
            if self._continues and push.instance not in self._compared:
                self._compared.add(push.instance)
                self.lost += max(0, push.earlier - worker.pushes)
                self.lost_rows += max(0, push.earlier_rows - worker.pushed_rows)
            worker.pushes, worker.pushed_rows = push.earlier + 1, push.earlier_rows + push.rows
            worker.incarnation, worker.sequence = push.incarnation, push.sequence
            worker.rows += push.rows
            worker.private = push.private or worker.private
            if state is not None:
                self._states[push.instance] = state
            if push.progress is not None:
                self._progress[push.progress.task.attempt] = push.progress

    def resume(self) -> None:
        """Record that this log was brought up to date: the next push of each worker says what it lacks."""
        with self._lock:
            self._continues = True
            self._compared.clear()

    def state(self) -> Floats:
        """Return the mean over workers of the state that each pushed last, weighted by the rows that each pushed."""
        with self._lock:
            if len(self._states) <= 1:
                return next(iter(self._states.values()), self.first)
            rows = np.array([self._workers[name].rows for name in self._states], np.float64)
            states = np.stack(list(self._states.values()))
        return np.average(states, axis=0, weights=rows if rows.any() else None).astype(np.float32)

    def private(self, instance: str) -> bytes:
        with self._lock:
            return self._workers.get(instance, WorkerPushes()).private

    def revoke(self, leases: Iterable[int]) -> tuple[Progress, ...]:
        """Void the leases; return their progress in the parameters."""
        with self._lock:
            self._void.update(leases)
            return tuple(self._progress[lease] for lease in leases if lease in self._progress)

    # Checkpoints -------------------------------------------------------------------------------------------

    def snapshot(self, *, reported: bool) -> tuple[PushLogState, dict[str, Floats]]:
        """Return everything for a checkpoint; the states are not modified any more.

        `reported` is True if the master receives the progress. Leases that are finished then are reported once more, in
        case the checkpoint fails, and then dropped.
        """
        with self._lock:
            workers = {name: msgspec.structs.replace(worker) for name, worker in self._workers.items()}
            push_log = PushLogState(workers, tuple(self._progress.values()), tuple(sorted(self._void)))
            if reported:
                for lease in self._finished:
                    del self._progress[lease]
                self._finished = {
                    lease for lease, progress in self._progress.items() if progress.rows >= progress.task.rows
                }
            return push_log, dict(self._states)

    def restore(self, push_log: PushLogState, states: dict[str, Floats], *, same_leases: bool) -> None:
        """Restore a result of `snapshot`. `same_leases` is True if the same workers continue with their leases."""
        with self._lock:
            self._workers = dict(push_log.workers)
            self._states = dict(states)
            self._continues = same_leases
            if same_leases:
                self._progress = {progress.task.attempt: progress for progress in push_log.progress}
                self._void = set(push_log.void)
            else:
                for worker in self._workers.values():
                    worker.incarnation, worker.sequence = -1, 0
                    worker.pushes = worker.pushed_rows = 0
