"""Worker of a search with a master: it runs the trials that it is assigned, and one worker makes the ensemble.

A trial is a task under a lease: a lost worker's trial is assigned to another worker. A task is a turn, and the
candidate of a turn follows from the trials before it, so that it does not matter which worker has it. Workers on one
machine have all trials in the folder of the job; others exchange them through a store.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from edl.errors import JobError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.jobs.trials import Trial
from edl.program import Program
from edl.program.folders import CANDIDATES
from edl.run.background import can_be_explained
from edl.run.idle_processes import MOST_IDLE, IdleProcesses
from edl.run.search import explaining
from edl.run.search.choices import Choices, TrialChoice
from edl.run.search.driver import event, event_of_screening, is_best
from edl.run.search.ensembling import Ensembling
from edl.run.search.judge import Judge
from edl.run.search.refitting import RefitReserve, refits
from edl.run.search.schedule import LAG
from edl.run.search.timing import SearchTime
from edl.run.search.trial_pool import LEAST_SECONDS, needed_seconds, trial_seconds, until_screened
from edl.run.search.trial_runner import TrialRunner, refit_folder_of
from edl.run.search.trial_store import TrialStore
from edl.tasks.task import CONTROL, Conclusion, Report, Task, TaskSource

_WATCH_SECONDS = 0.2
_WAIT_SECONDS = 5.0  # for trials of other workers, before the queue is asked again


class SearchWorker:
    """Worker of the search of a program. draining: set when the worker has to leave.

    workers: number of workers of the job. keep: stores the archive and returns the outcome with its place. store: of
    the trials, if the workers share no folder.
    """

    def __init__(
        self,
        program: Program,
        job: JobFolder,
        tasks: TaskSource,
        draining: threading.Event,
        *,
        threads: int,
        workers: int,
        keep: Callable[[Outcome], Outcome],
        store: TrialStore | None = None,
    ) -> None:
        self._judge = Judge(program, job)
        self._judge.drop_damaged()
        self._program = program
        self._job = job
        self._tasks = tasks
        self._draining = draining
        self._workers = workers
        self._keep = keep
        self._store = store
        self._began = job.begin_search(time.time()) if store is None else store.began()
        self._time = SearchTime(self._judge.search.time_limit, time.time() - self._began)
        self._reserve = RefitReserve(self._judge, 1, self._time.given)
        self._idle = IdleProcesses(MOST_IDLE, threads)
        self._runner = TrialRunner(
            self._judge.search, self._judge.rows, program.folder / CANDIDATES, job, self._idle
        )
        self._choices = Choices(self._judge, lag=LAG * workers)

    def run(self) -> None:
        """Run trials, and export the model at the end, until there are no tasks."""
        try:
            while not (self._tasks.is_over("predict") or self._draining.is_set()):
                if task := self._tasks.next("predict"):
                    self._run_trial(task)
            while not (self._tasks.is_over("export") or self._draining.is_set()):
                if task := self._tasks.next(*CONTROL):
                    self._export(task)
        finally:
            self._idle.close()

    def _trials(self) -> dict[int, Trial]:
        """Return the trials of all workers that have ended."""
        if self._store is not None:
            self._store.fetch()
        return self._judge.trials()

    def _run_trial(self, task: Task) -> None:
        """Run the trial of a turn, when the results that it is chosen by are there."""
        if not self._ready(task):
            self._tasks.give_back(Report(task))
            return
        ready = self._choices.is_ready(task.start)
        choice = self._choices.find(task.start) if ready else None  # not ready: the time is up
        left, needed = self._left_to(task.start), 0.0
        if choice is not None:
            trials = self._judge.screened_trials() if choice.screening else self._judge.trained_trials()
            ended = {
                number: ended_trial.seconds
                for number, ended_trial in trials.items()
                if _has_model(ended_trial)
            }
            needed = needed_seconds(self._judge.search, ended, choice.number)
        late = self._has_model and left < max(LEAST_SECONDS, needed)
        if choice is None or late or self._is_over(screening=choice.screening):
            self._skip(task.start)
            self._tasks.report(Report(task, task.rows))
            return
        last = self._judge.search.turns - task.start <= self._workers
        try:
            trial = self._train_candidate(task, choice, trial_seconds(left, needed, last=last), left)
        except JobCancelledError:
            self._tasks.give_back(Report(task))
            return
        if trial is None:
            return
        search, left_or_none = self._judge.search, self._left_or_none
        if choice.screening:
            news = event_of_screening(search, trial, left=left_or_none)
        else:
            others = [other for number, other in self._judge.trials().items() if number != choice.number]
            news = event(search, trial, best=is_best(self._judge, trial, others), left=left_or_none)
        self._tasks.report(Report(task, task.rows, conclusion=Conclusion(trial=news)))

    def _train_candidate(self, task: Task, choice: TrialChoice, seconds: float, left: float) -> Trial | None:
        """Train a candidate and publish its record. Return None if another worker has the task by now.

        Raises JobCancelledError if this worker has to leave.
        """
        turn, number = self._choices.turn(task.start, choice.number), choice.number
        earlier = self._choices.record(choice)
        if earlier is not None:  # of a worker that was lost before it could report
            return earlier
        with self._watch(self._has_model):
            train = self._runner.screen if choice.screening else self._runner.run
            result = train(number, seconds, max(left, LEAST_SECONDS))
        if not self._tasks.holds_lease(task):
            return None
        record = self._judge.record_screening if choice.screening else self._judge.record
        began = time.monotonic()
        trial = record(turn, number, result)
        self._time.recording = max(self._time.recording, time.monotonic() - began)
        if self._store is not None:
            publish = self._store.publish_screening if choice.screening else self._store.publish
            publish(number)
        return trial

    def _ready(self, task: Task) -> bool:
        """Wait for the trials that decide the choice of the task's trial. Return False if the task must be given back.

        An earlier task may have been returned by a worker that was lost: the queue assigns it first.
        """
        until = time.monotonic() + _WAIT_SECONDS
        self._trials()
        while not self._choices.is_ready(task.start):
            if self._has_model and self._left_to(task.start) < LEAST_SECONDS:
                return True
            if self._draining.wait(_WATCH_SECONDS) or time.monotonic() > until:
                return False
            self._trials()
        return True

    def _skip(self, turn: int) -> None:
        self._judge.skip(turn)
        if self._store is not None:
            self._store.publish_skipped(turn)

    def _left_to(self, turn: int) -> float:
        """Return the seconds that are left to the trials of a turn's kind."""
        search = self._judge.search
        screens = search.screening and turn < search.count
        return self._remaining_seconds - max(
            self._reserve.estimate(),
            until_screened(self._time.given) if screens else 0.0,
        )

    def _is_over(self, *, screening: bool) -> bool:
        """Return True if no other trial can improve on an ended one, screened or on all rows."""
        errors = self._judge.screening_errors() if screening else self._judge.errors()
        return min(errors.values(), default=math.inf) <= self._judge.least_error

    @property
    def _has_model(self) -> bool:
        return any(map(_has_model, self._judge.trials().values()))

    def _export(self, task: Task) -> None:
        ensembling = Ensembling(self._program, self._job, self._judge, self._began, self._time)
        try:
            self._trials()
            weights = ensembling.choose()
            with self._watch(has_model=True):
                refitted = self._refit(weights)
                explained = self._explain(weights)
            ending = "interrupted" if self._ends_early else ""
            important = explaining.importances(self._program.spec, weights, explained)
            outcome = self._keep(ensembling.store(weights, refitted, ending, important))
        except JobCancelledError:
            self._tasks.give_back(Report(task))
            return
        except JobError as error:
            if not self._tasks.report_failure(task, error):
                raise
            return
        self._tasks.report(Report(task, conclusion=Conclusion(outcome.figures, outcome=outcome)))

    def _refit(self, weights: Mapping[int, float]) -> dict[int, int]:
        """Train the chosen models on all rows while there is time; return the epochs of ended trials."""
        epochs = {}
        for refit in refits(self._judge, weights):
            ended = refit_folder_of(self._job, refit.number).archive.exists()  # by a worker that was lost
            if not ended and refit.seconds <= self._remaining_seconds:
                ended = bool(self._runner.refit(refit.number, refit.epochs, self._remaining_seconds).outcomes)
            if ended:
                epochs[refit.number] = refit.epochs
        return epochs

    def _explain(self, weights: Mapping[int, float]) -> dict[int, Outcome]:
        """Measure the importances of the columns for the chosen models; return their outcomes."""
        search, explained = self._judge.search, dict[int, Outcome]()
        if self._ends_early or not can_be_explained(search.candidates[0].spec):
            return explained
        seconds = explaining.seconds_of_each(self._time.left_to_explain, list(weights), 1)
        for number in weights:
            most = self._time.seconds_left - self._time.seconds_to_store
            if most > 0 and (outcomes := self._runner.explain(number, seconds, most).outcomes):
                explained[number] = outcomes[0]
        return explained

    @contextmanager
    def _watch(self, has_model: bool) -> Iterator[None]:
        """Stop the trial when the worker has to leave, and hurry one that exceeds its time."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_WATCH_SECONDS):
                if self._draining.is_set():
                    self._runner.stop()
                    return
                if self._ends_early:  # which nobody asks for before there is a model
                    self._runner.skip()
                elif has_model:
                    self._runner.hurry()

        thread = threading.Thread(target=watch, name="edl-trial-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @property
    def _remaining_seconds(self) -> float:
        return 0.0 if self._ends_early else self._time.seconds_before_end

    @property
    def _ends_early(self) -> bool:
        """True if the client asked for the end; pods have no folder in which it could."""
        return self._store is None and self._job.ends_early

    @property
    def _left_or_none(self) -> float | None:
        return max(0.0, self._time.seconds_left) if self._judge.search.time_limit else None


def _has_model(trial: Trial) -> bool:
    return trial.value is not None or trial.screened is not None
