"""Search in one process with its training processes: trials, the choice among them, refits, and the archive.

The program of a search holds its candidates' programs in `candidates/0`, `candidates/1`, ….
"""

from __future__ import annotations

import threading
import time

import msgspec

from edl.jobs.events import Observer, Progress, TrialEnd
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobInterruptedError, Outcome
from edl.jobs.trials import Trial
from edl.program import Program
from edl.program.folders import CANDIDATES
from edl.run.background import can_be_explained
from edl.run.one_process import keeping_search
from edl.run.search import explaining
from edl.run.search.ensembling import Ensembling
from edl.run.search.judge import Judge
from edl.run.search.refitting import RefitReserve, refits
from edl.run.search.timing import SearchTime
from edl.run.search.trial_pool import TrialPool
from edl.run.search.trial_runner import TrialResult
from edl.run.training_client import TrainingProcess
from edl.spec import JobSpec, Search

ROWS_OF_ONE_SLOT = 500_000  # training rows from which trials run one after another
ROWS_OF_FEW_SLOTS, FEW_SLOTS = 20_000, 4  # training rows from which at most so many run at once


def run(
    program: Program,
    job: JobFolder,
    threads: int,
    *,
    observer: Observer,
    cancelled: threading.Event,
    interrupted: threading.Event | None = None,
    prepared: TrainingProcess | None = None,
) -> Outcome:
    """Run the search of a program in its folder and write the archive of the model that it finds.

    `cancelled` ends the search early with the trials that have ended; if `interrupted` is set before, it ends without a
    model, and workers can continue it. prepared: a process for trials, which is ended with the search. Raises
    JobCancelledError if there is no trial, JobError if no candidate could be trained, JobInterruptedError.
    """
    with keeping_search(job, slots_of(program.spec, threads)):
        return _run(program, job, threads, observer, cancelled, interrupted or threading.Event(), prepared)


def _run(
    program: Program,
    job: JobFolder,
    threads: int,
    observer: Observer,
    cancelled: threading.Event,
    interrupted: threading.Event,
    prepared: TrainingProcess | None,
) -> Outcome:
    began, judge = job.begin_search(time.time()), Judge(program, job)
    search, slots = judge.search, slots_of(program.spec, threads)
    search_time = SearchTime(search.time_limit, time.time() - began)

    def left() -> float | None:
        return max(0.0, search_time.seconds_left) if search.time_limit else None

    def progress() -> None:
        done, limit = len(judge.trials()), search.time_limit
        passed = limit - search_time.seconds_left if limit else 0.0
        observer(Progress("search", min(search.count, done), search.count, 0.0, seconds=passed, limit=limit))

    def ended(turn: int, number: int, result: TrialResult) -> float | None:
        trial = judge.record(turn, number, result)
        others = [other for place, other in judge.trials().items() if place != number]
        observer(event(search, trial, best=is_best(judge, trial, others), left=left()))
        progress()
        return None if trial.value is None else judge.measure.error(trial.value)

    def screened(turn: int, number: int, result: TrialResult) -> float | None:
        trial = judge.record_screening(turn, number, result)
        observer(event_of_screening(search, trial, left=left()))
        return None if trial.screened is None else judge.measure.error(trial.screened)

    pool = TrialPool(
        search,
        judge.rows,
        program.folder / CANDIDATES,
        job,
        search_time,
        slots=slots,
        threads=max(1, threads // slots),
        ended=ended,
        screened=screened,
        least_error=judge.least_error,
        reserved=RefitReserve(judge, slots, search_time.given).estimate,
        tick=progress if search.time_limit else lambda: None,
        prepared=prepared,
    )
    ensembling = Ensembling(program, job, judge, began, search_time)
    progress()
    try:
        pool.run(cancelled)
        ends_early = cancelled.is_set()
        _check(interrupted)
        if ends_early and not any(trial_so_far.value is not None for trial_so_far in judge.trials().values()):
            raise JobCancelledError
        weights = ensembling.choose()
        refitted = {} if ends_early else pool.refit(refits(judge, weights), cancelled)
        _check(interrupted)
        explains = not ends_early and can_be_explained(search.candidates[0].spec)
        explained = pool.explain(list(weights), cancelled) if explains else {}
        _check(interrupted)
    finally:
        pool.close()
    important = explaining.importances(program.spec, weights, explained)
    return ensembling.store(weights, refitted, "interrupted" if ends_early else "", important)


def _check(interrupted: threading.Event) -> None:
    if interrupted.is_set():
        raise JobInterruptedError


def event(search: Search, trial: Trial, *, best: bool = False, left: float | None = None) -> TrialEnd:
    """Return the event of the end of a trial."""
    return TrialEnd(
        trial.number,
        search.count,
        trial.name,
        search.metric,
        trial.value,
        trial.seconds,
        best=best,
        error=trial.error,
        left=left,
    )


def event_of_screening(search: Search, trial: Trial, *, left: float | None = None) -> TrialEnd:
    """Return the event of the end of a training on some of the rows."""
    name = f"{trial.name}, on {search.screening:,} rows"
    return event(search, msgspec.structs.replace(trial, name=name, value=trial.screened), left=left)


def is_best(judge: Judge, trial: Trial, others: list[Trial]) -> bool:
    """Return True if no other trial is as good."""
    if trial.value is None:
        return False
    errors = [judge.measure.error(other.value) for other in others if other.value is not None]
    return all(judge.measure.error(trial.value) < error for error in errors)


def slots_of(spec: JobSpec, threads: int) -> int:
    """Return the number of trials at once: small trainings hardly gain by a second thread, large ones by memory."""
    rows, count = spec.rows.training, spec.search.count if spec.search is not None else 1
    if rows >= ROWS_OF_ONE_SLOT:
        return 1
    return min(count, threads, FEW_SLOTS if rows >= ROWS_OF_FEW_SLOTS else threads)
