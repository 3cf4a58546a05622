"""Trials in training processes on this machine, several at once, within the time of the search.

A slot runs one trial after another in a training process of the trial's framework. A trial whose process dies is begun
again; one that fails is recorded with its error, and the search continues.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from edl.errors import JobError, SQLFlowError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.logs import log
from edl.program import SPEC_FILE
from edl.run.training_client import ProcessDiedError, TrainingProcess
from edl.spec import Rows, Search

ATTEMPTS = 5  # of a trial whose processes die
LEAST_SECONDS = 1.0  # that are left when a trial begins
SHARE = 0.5  # of the remaining time that a trial may take while others wait
GRACE = 1.25  # factor of a trial's time after which it is cancelled: a step or an epoch may be long
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class TrialResult:
    """End of a trial. outcomes: of the training, of each fold; none after an `error`."""

    outcomes: tuple[Outcome, ...]
    seconds: float
    error: str = ""


def folder_of(job: JobFolder, number: int, fold: int) -> JobFolder:
    """Return the job folder of a fold of a trial, both counted from 0."""
    return JobFolder(job.path / "trials" / f"{number:03}" / f"{fold}")


def rotation_of(rows: Rows, fold: int) -> int:
    """Return the rotation in which the validation rows of a fold are the last ones.

    Fold 0 are the last rows, fold 1 those before them, and so on.
    """
    size = rows.training + rows.validation
    return (size - fold * rows.validation) % size


class TrialPool:
    """Pool of `slots` training processes with `threads` threads each.

    programs: folder with the candidates' programs. ended: called with the number and the result of each trial, by one
    thread at a time.
    """

    def __init__(
        self,
        search: Search,
        programs: Path,
        job: JobFolder,
        *,
        slots: int,
        threads: int,
        ended: Callable[[int, TrialResult], None],
    ) -> None:
        self._search = search
        self._programs = programs
        self._job = job
        self._threads = threads
        self._slots = min(slots, len(search.candidates))
        self._ended = ended
        self._began = time.monotonic()
        self._lock = threading.RLock()
        self._next = 0
        self._running: dict[int, tuple[TrainingProcess, float]] = {}  # by trial, with its end at the latest
        self._stopped = False
        self.results: dict[int, TrialResult] = {}

    @property
    def left(self) -> float:
        """Remaining seconds of the search; infinite without a limit."""
        limit = self._search.time_limit
        return limit - (time.monotonic() - self._began) if limit else math.inf

    def run(self, cancelled: threading.Event) -> Mapping[int, TrialResult]:
        """Run trials until all have ended, the time is up, or `cancelled` is set. Return their results."""
        workers = [
            threading.Thread(target=self._work, name=f"edl-slot-{slot}") for slot in range(self._slots)
        ]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            if cancelled.wait(_POLL_SECONDS):
                self._stop()
            self._cancel_late()
            for worker in workers:
                worker.join(_POLL_SECONDS)
        return self.results

    def _stop(self) -> None:
        """Begin no other trial, and cancel those that run."""
        with self._lock:
            self._stopped = True
            for process, _ in self._running.values():
                process.cancel()

    def _cancel_late(self) -> None:
        """Cancel trials that do not end in their time, once there is a result: a search waits for its first one."""
        with self._lock:
            if not any(each.outcomes for each in self.results.values()):
                return
            for process, latest in self._running.values():
                if time.monotonic() > latest:
                    process.cancel()

    # In the thread of a slot -----------------------------------------------------------------------------------

    def _work(self) -> None:
        process: TrainingProcess | None = None
        try:
            while (number := self._take()) is not None:
                framework = self._search.candidates[number].spec.framework
                if process is not None and not (process.alive and process.framework == framework):
                    process.close()
                    process = None
                process = process or TrainingProcess.start(framework, self._threads)
                process = self._do(number, process)
        finally:
            if process is not None:
                process.close()

    def _take(self) -> int | None:
        """Return the next candidate, or None if no other trial is to begin."""
        with self._lock:
            out_of_time = self.left < LEAST_SECONDS and any(each.outcomes for each in self.results.values())
            if self._stopped or out_of_time or self._next == len(self._search.candidates):
                return None
            self._next += 1
            return self._next - 1

    def _do(self, number: int, process: TrainingProcess) -> TrainingProcess:
        """Run a trial, again after the death of its process. Return the process that ran it last."""
        candidate, began = self._search.candidates[number], time.monotonic()
        attempts = 0
        outcomes: list[Outcome] = []
        while True:
            attempts += 1
            try:
                while len(outcomes) < self._search.folds:
                    outcomes.append(self._attempt(number, len(outcomes), process))
            except ProcessDiedError as error:
                process.close()
                process = TrainingProcess.start(candidate.spec.framework, self._threads)
                if attempts < ATTEMPTS and not self._stopped:
                    log(f"trial {number + 1} is begun again: {error.message}")
                    continue
                self._end(number, TrialResult((), time.monotonic() - began, error.message))
            except JobCancelledError:
                self._end(number, TrialResult((), time.monotonic() - began, "its time was up"))
            except SQLFlowError as error:
                self._end(number, TrialResult((), time.monotonic() - began, error.message))
            else:
                self._end(number, TrialResult(tuple(outcomes), time.monotonic() - began))
            return process

    def _attempt(self, number: int, fold: int, process: TrainingProcess) -> Outcome:
        """Train one fold of a candidate."""
        candidate, limit = self._search.candidates[number], self._limit(number, fold)
        with self._lock:
            if self._stopped:
                raise JobCancelledError
            self._running[number] = process, time.monotonic() + limit * GRACE
        try:
            job = _prepared(folder_of(self._job, number, fold), self._job)
            program = self._programs / f"{number}"
            if not (program / SPEC_FILE).exists():
                raise JobError(f"there is no program of {candidate.name}")
            seconds = limit if math.isfinite(limit) else 0.0
            return process.run(
                program,
                job.path,
                lambda event: None,
                trial=True,
                time_limit=seconds,
                rotation=rotation_of(candidate.spec.rows, fold),
            )
        finally:
            with self._lock:
                del self._running[number]

    def _limit(self, number: int, fold: int) -> float:
        """Return the seconds that a fold of a trial may take."""
        left = max(self.left, LEAST_SECONDS)
        waiting = len(self._search.candidates) - number - 1
        return (left * SHARE if waiting >= self._slots else left) / (self._search.folds - fold)

    def _end(self, number: int, result: TrialResult) -> None:
        with self._lock:
            if result.error and self._stopped:
                return  # it was interrupted, which tells nothing of the candidate
            self.results[number] = result
            self._ended(number, result)


def _prepared(trial: JobFolder, job: JobFolder) -> JobFolder:
    """Create a trial's folder, in which the rows are those of the search."""
    trial.logs.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        trial.rows.symlink_to(job.rows, target_is_directory=True)
    return trial
