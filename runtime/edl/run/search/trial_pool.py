"""Trials in training processes on this machine, several at once, within the time of the search.

Afterwards the same processes train the chosen models on all rows.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.logs import log
from edl.run.idle_processes import MOST_IDLE, IdleProcesses
from edl.run.search.explaining import seconds_of_each
from edl.run.search.refitting import Refit
from edl.run.search.schedule import LAG, Schedule, choose_promoted
from edl.run.search.timing import SearchTime
from edl.run.search.trial_runner import GRACE, TrialResult, TrialRunner
from edl.run.training_client import TrainingProcess
from edl.spec import Rows, Search

LEAST_SECONDS = 1.0  # that are left when a trial begins
SCREENING = 1 / 3  # share of the time in which candidates are trained on some of the rows
UNKNOWN_SECONDS = 3.0  # that suffice for a trial of a model that no trial has had
NOT_BEGUN = "there was no time for it"
SHARE = 0.5  # of the remaining time that a trial may take while others wait
_POLL_SECONDS = 0.1
TICK_SECONDS = 1.0

Ended = Callable[[int, int, TrialResult], float | None]
Train = Callable[[TrialRunner, int, float, float], TrialResult]


def trial_seconds(left: float, needed: float, *, last: bool) -> float:
    """Return the seconds that a trial may take of the remaining time; it is late after GRACE times as many.

    last: no other trial waits. needed: see `needed_seconds`.
    """
    left = max(left, LEAST_SECONDS)
    return left / GRACE if last else max(left * SHARE, min(left / GRACE, needed * GRACE))


def until_screened(seconds: float) -> float:
    """Return the seconds that a screening leaves to the trainings on all rows. seconds: of the search."""
    return (1 - SCREENING) * seconds if math.isfinite(seconds) else 0.0


def needed_seconds(search: Search, ended: Mapping[int, float], number: int) -> float:
    """Return the seconds that a trial probably needs: as many as the slowest one of its model.

    Of a model without an ended trial it needs as many as the fastest one, at most UNKNOWN_SECONDS; 0 if none has ended.
    ended: the seconds of the trials that ended with a model, by number.
    """
    model = search.candidates[number].spec.model.name, search.candidates[number].spec.framework
    alike = (
        seconds
        for other, seconds in ended.items()
        if (search.candidates[other].spec.model.name, search.candidates[other].spec.framework) == model
    )
    return max(alike, default=min([UNKNOWN_SECONDS, *ended.values()]) if ended else 0.0)


class TrialPool:
    """Pool of `slots` training processes with `threads` threads each.

    programs: folder with the candidates' programs. ended: called with the turn, the number and the result of each
    trial, by one thread at a time; it returns the error of the model, None without one. screened: the same, of
    trainings on some of the rows. least_error: of a trial after which no other one matters. reserved: returns the
    seconds that trials leave to the refits. search_time: of the search.
    tick: called about once a second, by one thread at a time with `ended`. prepared: a process that is used if it has
    as many threads, and ended in any case.
    """

    def __init__(
        self,
        search: Search,
        rows: Rows,
        programs: Path,
        job: JobFolder,
        search_time: SearchTime,
        *,
        slots: int,
        threads: int,
        ended: Ended,
        screened: Ended,
        least_error: float = -math.inf,
        reserved: Callable[[], float] = lambda: 0.0,
        tick: Callable[[], None] = lambda: None,
        prepared: TrainingProcess | None = None,
    ) -> None:
        self._search = search
        self._ended = ended
        self._screened = screened
        self._least_error = least_error
        self._reserved = reserved
        self._tick = tick
        self._time = search_time
        self._ticked_at = time.monotonic()
        self._lock = threading.Condition()
        slots = min(slots, search.count)
        self._schedule = Schedule(search, lag=LAG * slots)
        self._errors: dict[int, float] = {}
        self._turns: dict[int, int] = {}  # of each candidate that has begun
        self._until = 0.0  # seconds of the search that remain for what comes after the trials
        self._idle = IdleProcesses(MOST_IDLE, threads)
        if prepared is not None:
            self._idle.put(prepared) if prepared.threads == threads else prepared.close()
        self._runners = [TrialRunner(search, rows, programs, job, self._idle) for _ in range(slots)]
        self._stopped = False
        self._error: Exception | None = None
        self._refits: list[Refit] = []
        self._refitted: dict[int, int] = {}
        self.results: dict[int, TrialResult] = {}

    @property
    def remaining_seconds(self) -> float:
        """Seconds that are left to trials and refits; infinite without a limit."""
        return self._time.seconds_before_end

    def run(self, cancelled: threading.Event) -> Mapping[int, TrialResult]:
        """Run trials until all have ended, one is perfect, the time is up, or `cancelled` is set.

        Return their results.
        """
        if self._search.screening:
            self._screen(cancelled)
        self._run(partial(self._run_trials, TrialRunner.run, self._ended), cancelled)
        self._errors = {}  # so that refits are not skipped
        return self.results

    def _screen(self, cancelled: threading.Event) -> None:
        """Train candidates on some of the rows, and only the best third on all."""
        self._until = until_screened(self._time.given)
        self._run(partial(self._run_trials, TrialRunner.screen, self._screened), cancelled)
        self._schedule = Schedule(self._search, lag=0, numbers=choose_promoted(self._errors))
        self._until, self._errors, self.results = 0.0, {}, {}

    def refit(self, refits: Sequence[Refit], cancelled: threading.Event) -> Mapping[int, int]:
        """Train models on all rows until all have ended, the time is up, or `cancelled` is set.

        Return the epochs of ended trials, by number.
        """
        self._refits = list(refits)
        self._run(self._run_refits, cancelled)
        return self._refitted

    def explain(self, numbers: Sequence[int], cancelled: threading.Event) -> Mapping[int, Outcome]:
        """Measure the importances of columns for the models of trials, as far as the time allows.

        Return the outcomes of ended trials, by number.
        """
        seconds_each = seconds_of_each(self._time.left_to_explain, numbers, len(self._runners))
        waiting, explained = list(numbers), dict[int, Outcome]()

        def work(runner: TrialRunner) -> None:
            while waiting and not self._stopped and self._time.left_to_explain:
                number = waiting.pop(0)
                result = runner.explain(
                    number, seconds_each, self._time.seconds_left - self._time.seconds_to_store
                )
                if result.outcomes:
                    explained[number] = result.outcomes[0]
                else:
                    log(f"trial {number + 1} is not explained: {result.error}")

        self._run(work, cancelled)
        return explained

    def close(self) -> None:
        """End the training processes."""
        self._idle.close()

    def _run(self, work: Callable[[TrialRunner], None], cancelled: threading.Event) -> None:
        slots = [
            threading.Thread(target=self._work, args=(work, runner), name=f"edl-slot-{number}")
            for number, runner in enumerate(self._runners)
        ]
        for slot in slots:
            slot.start()
        try:
            self._wait(slots, cancelled)
        except BaseException:  # an interrupt of this process, which the slots would outlive
            self._stop()
            for slot in slots:
                slot.join()
            raise
        if self._error is not None:
            raise self._error

    def _wait(self, slots: list[threading.Thread], cancelled: threading.Event) -> None:
        """Wait for the slots, and meanwhile for `cancelled` and for trials that exceed their time."""
        while any(slot.is_alive() for slot in slots):
            if cancelled.wait(_POLL_SECONDS):
                self._stop()
            elif self._has_result:  # a search waits for its first one
                for runner in self._runners:
                    if self._is_over:
                        runner.skip()
                    else:
                        runner.hurry()
            for slot in slots:
                slot.join(_POLL_SECONDS)
            if time.monotonic() - self._ticked_at >= TICK_SECONDS:
                self._ticked_at = time.monotonic()
                with self._lock:
                    self._tick()

    def _stop(self) -> None:
        """Begin no other trial, and cancel the running ones."""
        with self._lock:
            self._stopped = True
            self._lock.notify_all()
        for runner in self._runners:
            runner.stop()

    @property
    def _has_result(self) -> bool:
        with self._lock:
            return any(result.outcomes for result in self.results.values())

    @property
    def _is_over(self) -> bool:
        """True if no other trial can improve on one that has ended, of those that run now: screened, or on all rows."""
        with self._lock:
            return min(self._errors.values(), default=math.inf) <= self._least_error

    # In the thread of a slot -----------------------------------------------------------------------------------

    def _work(self, work: Callable[[TrialRunner], None], runner: TrialRunner) -> None:
        try:
            work(runner)
        except JobCancelledError:
            return
        except Exception as error:  # not of a trial: a full disk, or an error of the caller's
            self._error = self._error or error
            self._stop()

    def _run_trials(self, train: Train, ended: Ended, runner: TrialRunner) -> None:
        while (number := self._take()) is not None:
            needed = needed_seconds(self._search, self._ended_seconds, number)
            last = self._schedule.waiting < len(self._runners)
            left = self._left_to_trials
            result = train(runner, number, trial_seconds(left, needed, last=last), max(left, LEAST_SECONDS))
            with self._lock:
                if self._is_over and not result.outcomes:  # skipped, which tells nothing of the candidate
                    return
                self.results[number] = result
                began = time.monotonic()
                error = ended(self._turns[number], number, result)
                self._time.recording = max(self._time.recording, time.monotonic() - began)
                if error is not None:
                    self._errors[number] = error
                self._lock.notify_all()

    def _run_refits(self, runner: TrialRunner) -> None:
        while (refit := self._take_refit()) is not None:
            result = runner.refit(refit.number, refit.epochs, self.remaining_seconds)
            with self._lock:
                if result.outcomes:
                    self._refitted[refit.number] = refit.epochs
                else:
                    log(f"trial {refit.number + 1} is not trained on all rows: {result.error}")

    @property
    def _ended_seconds(self) -> dict[int, float]:
        with self._lock:
            return {number: result.seconds for number, result in self.results.items() if result.outcomes}

    def _take(self) -> int | None:
        """Return the next candidate that has the time it needs, or None if no other trial is to begin."""
        with self._lock:
            while not (
                self._stopped or self._is_over or (self._left_to_trials < LEAST_SECONDS and self._has_result)
            ):
                if not self._schedule.is_ready(self.results):
                    self._lock.wait(_POLL_SECONDS)
                    continue
                number = self._schedule.take(self._errors)
                if number is None:
                    return None
                self._turns.setdefault(number, len(self._turns))
                needed = needed_seconds(self._search, self._ended_seconds, number)
                if needed <= max(0.0, self._left_to_trials):  # a search waits for its first result
                    return number
                self.results[number] = TrialResult((), 0.0, NOT_BEGUN)
            return None

    @property
    def _left_to_trials(self) -> float:
        return self.remaining_seconds - max(self._reserved(), self._until)

    def _take_refit(self) -> Refit | None:
        """Return the next model that has the time it needs, or None."""
        with self._lock:
            while self._refits and not self._stopped:
                refit = self._refits.pop(0)
                if refit.seconds <= self.remaining_seconds:
                    return refit
            return None
