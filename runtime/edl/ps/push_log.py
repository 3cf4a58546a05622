"""What a server remembers beside parameters: of each worker what it pushed, and what of each lease is in.

All of it is part of a cut, so that a push that is repeated after a restore is known, and gradients and progress agree.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec
import numpy as np

from edl.embeddings.table import Floats
from edl.ps.messages import Progress, Push


class Worker(msgspec.Struct):
    """Of one instance: the last push that was applied, the rows of all, and what the last left."""

    incarnation: int = -1
    sequence: int = 0
    rows: int = 0
    private: bytes = b""


class PushLogState(msgspec.Struct, frozen=True):
    """A book as plain data, but for the states of workers."""

    workers: dict[str, Worker] = {}
    progress: tuple[Progress, ...] = ()
    void: tuple[int, ...] = ()


class PushLog:
    """states: flat, by instance. first: before any worker pushed one."""

    def __init__(self, first: Floats) -> None:
        self._lock = threading.Lock()
        self.first = first
        self._workers: dict[str, Worker] = {}
        self._states: dict[str, Floats] = {}
        self._progress: dict[int, Progress] = {}
        self._finished: set[int] = set()  # leases that a cut told as finished
        self._void: set[int] = set()

    def knows(self, push: Push) -> bool:
        """Whether it was applied already, or is of a start of the instance that has ended."""
        with self._lock:
            worker = self._workers.get(push.instance, Worker())
            return (push.incarnation, push.sequence) <= (worker.incarnation, worker.sequence)

    def is_void(self, lease: int) -> bool:
        """Whether it was revoked."""
        with self._lock:
            return lease in self._void

    def note(self, push: Push, state: Floats | None) -> None:
        """The push is in the parameters now."""
        with self._lock:
            worker = self._workers.setdefault(push.instance, Worker())
            worker.incarnation, worker.sequence = push.incarnation, push.sequence
            worker.rows += push.rows
            worker.private = push.private or worker.private
            if state is not None:
                self._states[push.instance] = state
            if push.progress is not None:
                self._progress[push.progress.task.attempt] = push.progress

    def state(self) -> Floats:
        """The mean over workers of what each pushed last, weighted by the rows that each pushed."""
        with self._lock:
            if len(self._states) <= 1:
                return next(iter(self._states.values()), self.first)
            rows = np.array([self._workers[name].rows for name in self._states], np.float64)
            states = np.stack(list(self._states.values()))
        return np.average(states, axis=0, weights=rows if rows.any() else None).astype(np.float32)

    def private(self, instance: str) -> bytes:
        with self._lock:
            return self._workers.get(instance, Worker()).private

    def revoke(self, leases: Iterable[int]) -> tuple[Progress, ...]:
        """The leases are void from now on; what of them is in."""
        with self._lock:
            self._void.update(leases)
            return tuple(self._progress[lease] for lease in leases if lease in self._progress)

    # Cuts --------------------------------------------------------------------------------------------------

    def snapshot(self, *, told: bool) -> tuple[PushLogState, dict[str, Floats]]:
        """Everything for a cut; the states are not written to any more.

        told: the master hears of its progress. Leases that are finished then are told once more, in case that the cut
        comes to nothing, and forgotten.
        """
        with self._lock:
            workers = {name: msgspec.structs.replace(worker) for name, worker in self._workers.items()}
            push_log = PushLogState(workers, tuple(self._progress.values()), tuple(sorted(self._void)))
            if told:
                for lease in self._finished:
                    del self._progress[lease]
                self._finished = {
                    lease for lease, progress in self._progress.items() if progress.rows >= progress.task.rows
                }
            return push_log, dict(self._states)

    def restore(self, push_log: PushLogState, states: dict[str, Floats], *, same_leases: bool) -> None:
        """Take over what `cut` gave. same_leases: workers and their leases are those of then, and go on."""
        with self._lock:
            self._workers = dict(push_log.workers)
            self._states = dict(states)
            if same_leases:
                self._progress = {progress.task.attempt: progress for progress in push_log.progress}
                self._void = set(push_log.void)
            else:
                for worker in self._workers.values():
                    worker.incarnation, worker.sequence = -1, 0
