"""Run of one trial at a time in a training process.

If its process dies, a trial is begun again from its first unfinished fold. A chosen model may be trained once more on
all rows.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edl.errors import JobError, SQLFlowError
from edl.files import make_folders
from edl.jobs.events import ignore
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.logs import log
from edl.program import SPEC_FILE
from edl.run.idle_processes import IdleProcesses
from edl.run.training_client import ProcessDiedError, TrainingProcess
from edl.run.training_protocol import TrialRun
from edl.spec import Rows, Search

ATTEMPTS = 5  # of a trial with processes that die
STARTING = 4.0  # seconds in which a process starts again, if its last trial was stopped
GRACE = 1.25  # factor of a trial's time after which it is cancelled
KILLED = 0.5  # seconds after which a cancelled trial is ended by ending its process
LATE = "stopped at the time limit"  # error of a trial


@dataclass(frozen=True, slots=True)
class TrialResult:
    """End of a trial. outcomes: of its trainings, one for each fold; none after an `error`."""

    outcomes: tuple[Outcome, ...]
    seconds: float
    error: str = ""


def folder_of(job: JobFolder, number: int, fold: int) -> JobFolder:
    """Return the job folder of a fold of a trial, both counted from 0."""
    return JobFolder(job.search / f"{number:03}" / f"{fold}")


def refit_folder_of(job: JobFolder, number: int) -> JobFolder:
    """Return the job folder for the training of a trial's model, counted from 0, on all rows."""
    return JobFolder(job.search / f"{number:03}" / "all")


def screening_folder_of(job: JobFolder, number: int) -> JobFolder:
    """Return the job folder for the training of a trial, counted from 0, on some of the rows."""
    return JobFolder(job.search / f"{number:03}" / "screening")


def list_folds(rows: Rows) -> list[Rows]:
    """Return the rows of each training of a trial."""
    return [rows.select_fold(fold) for fold in range(len(rows.blocks.sizes))] if rows.blocks else [rows]


class TrialRunner:
    """Runner of the trials of a search, from one thread; `stop` and `hurry` may be called from others.

    rows: of the search. programs: folder with the candidates' programs. idle: the training processes between
    trials.
    """

    def __init__(
        self, search: Search, rows: Rows, programs: Path, job: JobFolder, idle: IdleProcesses
    ) -> None:
        self._search = search
        self._folds = list_folds(rows)
        self._programs = programs
        self._job = job
        self._idle = idle
        self._lock = threading.RLock()
        self._process: TrainingProcess | None = None  # in which a fold is being trained
        self._late_at = math.inf  # time from which the present trial is late, as of `time.monotonic`
        self._cancelled_at = math.inf  # as of the same, of the present trial
        self._stopped = False

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def run(self, number: int, seconds: float, most: float = math.inf) -> TrialResult:
        """Train the folds of a candidate. They may take `seconds` together; after `most` they are late in any case.

        A failure is the error of the result. Raises JobCancelledError after `stop`.
        """
        trainings = [
            (folder_of(self._job, number, fold), TrialRun(rows=rows)) for fold, rows in enumerate(self._folds)
        ]
        return self._run(number, trainings, seconds, min(GRACE * seconds, most), limited=True)

    def screen(self, number: int, seconds: float, most: float = math.inf) -> TrialResult:
        """Train a candidate on the first of the training rows. For errors see `run`."""
        rows = self._search.candidates[number].spec.rows
        run = TrialRun(left_out=rows.training - self._search.screening)
        training = screening_folder_of(self._job, number), run
        return self._run(number, [training], seconds, min(GRACE * seconds, most), limited=True)

    def refit(self, number: int, epochs: int, seconds: float) -> TrialResult:
        """Train a candidate on all rows for so many epochs. It is cancelled if it takes longer than `seconds`.

        For errors see `run`.
        """
        training = refit_folder_of(self._job, number), TrialRun(epochs=epochs)
        return self._run(number, [training], seconds, seconds, limited=False)

    def explain(self, number: int, seconds: float, most: float = math.inf) -> TrialResult:
        """Measure the importances of the columns for the model of a trial, in about so many seconds, `most` at most.

        They are the figures of the outcome. For errors see `run`.
        """
        training = folder_of(self._job, number, 0), TrialRun(rows=self._folds[0], explained=seconds)
        late = min(GRACE * (seconds + max(seconds, STARTING)), most)
        return self._run(number, [training], seconds, late, limited=False)

    def _run(
        self,
        number: int,
        trainings: Sequence[tuple[JobFolder, TrialRun]],
        seconds: float,
        late: float,
        *,
        limited: bool,
    ) -> TrialResult:
        """Run the trainings of a trial one after another. limited: each ends early within its share of `seconds`.

        late: seconds after which they are late, and ended.
        """
        began = time.monotonic()
        with self._lock:
            self._late_at, self._cancelled_at = began + late, math.inf
        outcomes: list[Outcome] = []
        attempts = 0
        error = ""
        while not error and len(outcomes) < len(trainings):
            left = max(seconds - (time.monotonic() - began), seconds / 10)
            share = left / (len(trainings) - len(outcomes)) if limited and math.isfinite(left) else 0.0
            folder, run = trainings[len(outcomes)]
            try:
                run = msgspec.structs.replace(run, time_limit=share, began=time.time())
                outcomes.append(self._train(number, folder, run))
            except ProcessDiedError as died:
                attempts += 1
                error = died.message if attempts == ATTEMPTS or self._stopped else ""
                error = LATE if math.isfinite(self._cancelled_at) else error
                if not error:
                    log(f"trial {number + 1} is begun again: {died.message}")
            except JobCancelledError:
                error = LATE
            except SQLFlowError as failed:
                error = failed.message
        if error and self._stopped:  # which tells nothing of the candidate
            raise JobCancelledError
        return TrialResult(() if error else tuple(outcomes), time.monotonic() - began, error)

    def stop(self) -> None:
        """Cancel the present trial, and begin no other."""
        with self._lock:
            self._stopped = True
            self._cancel()

    def hurry(self) -> None:
        """Cancel a trial that is late: a step or an epoch may be long."""
        with self._lock:
            if time.monotonic() > self._late_at:
                self._cancel()

    def skip(self) -> None:
        """Cancel the present trial. It is recorded as stopped at the time limit."""
        with self._lock:
            self._cancel()

    def _cancel(self) -> None:
        """Ask the trial to end; if that did not help, or its process is not ready to be asked, end the process."""
        process = self._process
        if process is None:
            return
        now = time.monotonic()
        if not process.is_ready or now > self._cancelled_at + KILLED:
            self._cancelled_at = min(self._cancelled_at, now)
            process.kill()
        elif math.isinf(self._cancelled_at):
            self._cancelled_at = now
            process.cancel()

    def _train(self, number: int, folder: JobFolder, run: TrialRun) -> Outcome:
        candidate = self._search.candidates[number]
        job = _prepare_folder(folder, self._job)
        program = self._programs / f"{number}"
        if not (program / SPEC_FILE).exists():
            raise JobError(f"there is no program of {candidate.name}")
        with self._lock:
            if self._stopped:
                raise JobCancelledError
            process = self._process = self._idle.take(candidate.spec.framework)
        try:
            return process.run(program, job.path, ignore, trial=run)
        finally:
            with self._lock:
                self._process = None
            if process.is_alive:
                self._idle.put(process)
            else:
                process.close()


def _prepare_folder(trial: JobFolder, job: JobFolder) -> JobFolder:
    """Create a trial's folder. It has the rows of the search, and its log stays with the job."""
    logs = job.logs / f"trial-{int(trial.path.parent.name) + 1}-{trial.path.name}"
    logs.mkdir(parents=True, exist_ok=True)
    make_folders(trial.path)
    for link, place in ((trial.rows, job.rows), (trial.logs, logs)):
        with contextlib.suppress(FileExistsError):
            link.symlink_to(place, target_is_directory=True)
    return trial
