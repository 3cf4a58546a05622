"""Search for an ensemble of models: trials, the selection among them, and the archive of the ensemble.

The program of a search holds those of its candidates in `candidates/0`, `candidates/1`, …. The ensemble is a program
like any other, with those of its members in `members/0`, `members/1`, ….
"""

from __future__ import annotations

import functools
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from edl import metrics
from edl.arrays import Array
from edl.data import Reader
from edl.errors import JobError, SQLFlowError
from edl.features import target
from edl.features.weights import RowWeights
from edl.frameworks.ensemble import mean_loss
from edl.jobs.events import Figures, Observer, Progress, TrialEnd, finite
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.jobs.trials import Trial
from edl.models.archive import read_archive, write_archive
from edl.models.fitting import read_fitting
from edl.program import SPEC_FILE, Program, load, unload
from edl.program.folders import CANDIDATES, MEMBERS
from edl.run import job_runner
from edl.run.archive import save
from edl.run.search.selection import Measure, select
from edl.run.search.trial import SCORES
from edl.run.search.trial_pool import TrialPool, TrialResult, folder_of
from edl.spec import JobSpec, Member, Rows, Search, to_json

ROWS_OF_ONE_SLOT = 500_000  # training rows from which trials run one after another


def run(
    program: Program, job: JobFolder, threads: int, *, observer: Observer, cancelled: threading.Event
) -> Outcome:
    """Run the search of a program in its folder and write the archive of the ensemble.

    `cancelled` ends the search early with the trials that have ended. Raises JobCancelledError if there is none,
    JobError if no candidate could be trained.
    """
    search = program.spec.search
    if search is None:
        raise RuntimeError("the program has no search")
    return _SearchRun(program, search, job, threads, observer).run(cancelled)


class _SearchRun:
    """Search in progress."""

    def __init__(
        self, program: Program, search: Search, job: JobFolder, threads: int, observer: Observer
    ) -> None:
        self._program = program
        self._search = search
        self._job = job
        self._observer = observer
        self._began, self._started = time.monotonic(), datetime.now(UTC)
        self._pinned, self._reader = job_runner.rows_of(program, job)
        self._rows = program.spec.rows
        known = self._rows.validation * search.folds  # rows that a model scores without having seen them
        first = self._rows.training + self._rows.validation - known
        self._labels, self._weights = _truth(program.spec, self._reader, first)
        self._trials: dict[int, Trial] = {}
        self._scores: dict[int, Array] = {}
        slots = 1 if self._rows.training >= ROWS_OF_ONE_SLOT else threads
        self._pool = TrialPool(
            search,
            program.folder / CANDIDATES,
            job,
            slots=slots,
            threads=max(1, threads // slots),
            ended=self._end_trial,
        )

    def run(self, cancelled: threading.Event) -> Outcome:
        self._show_progress()
        self._pool.run(cancelled)
        if not self._scores:
            if cancelled.is_set():
                raise JobCancelledError
            errors = [trial.error for trial in self._trials.values()]
            raise JobError(
                "no candidate of the search could be trained",
                hint=f"the first one: {errors[0]}" if errors else None,
            )
        scores = {number: found[self._validation] for number, found in self._scores.items()}
        weights = select(scores, self._measure, self._search.max_members)
        return self._stored(weights, "interrupted" if cancelled.is_set() else self._ending())

    def _ending(self) -> str:
        """Return the reason why not all candidates were tried, or an empty string."""
        missing = len(self._search.candidates) - len(self._trials)
        return f"the time limit of {self._search.time_limit:g} s" if missing else ""

    # Trials ------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _validation(self) -> slice:
        """Rows of the scores that choose the ensemble; those behind them are the test rows."""
        return slice(0, len(self._labels) - self._search.test)

    @functools.cached_property
    def _measure(self) -> Measure:
        metric = metrics.by_name(self._search.metric, metrics.kind_of(self._program.spec.label), exact=True)
        part = self._validation
        return Measure(metric, self._labels[part], None if self._weights is None else self._weights[part])

    def _end_trial(self, number: int, result: TrialResult) -> None:
        """Record a trial and report it."""
        candidate, value, error = self._search.candidates[number], None, result.error
        if result.outcomes:
            try:
                scores = self._scores_of(number)
                value = self._measure.value(scores[self._validation])
                self._scores[number] = scores
            except (SQLFlowError, OSError, ValueError) as caught:
                error = caught.message if isinstance(caught, SQLFlowError) else str(caught)
        earlier = [each.value for each in self._trials.values() if each.value is not None]
        errors = map(self._measure.error, earlier)
        self._trials[number] = Trial(
            number + 1,
            candidate.name,
            candidate.spec.statement,
            None if value is None else finite(value),
            {} if error else self._figures(scores[self._validation], self._validation),
            result.seconds,
            ending=result.outcomes[0].ending if len(result.outcomes) == 1 else "",
            error=error,
        )
        left = self._pool.left if self._search.time_limit else None
        self._observer(
            TrialEnd(
                number + 1,
                len(self._search.candidates),
                candidate.name,
                self._search.metric,
                value,
                result.seconds,
                best=value is not None and all(self._measure.error(value) < each for each in errors),
                error=error,
                left=left,
            )
        )
        self._show_progress()

    def _scores_of(self, number: int) -> Array:
        """Return the scores of a trial: of each fold's validation rows by its model, of the test rows their mean."""
        count, folds = self._rows.validation, self._search.folds
        found = [np.load(folder_of(self._job, number, fold).path / SCORES) for fold in range(folds)]
        validation = [each[:count] for each in reversed(found)]
        return np.concatenate(
            [*validation, functools.reduce(np.add, [each[count:] for each in found]) / folds]
        )

    def _show_progress(self) -> None:
        self._observer(Progress("search", len(self._trials), len(self._search.candidates), 0.0))

    # The ensemble ------------------------------------------------------------------------------------------------

    def _stored(self, weights: Mapping[int, float], ending: str) -> Outcome:
        """Write the archive of the ensemble and return the outcome of the search."""
        part = self._validation
        if self._search.test:
            part = slice(part.stop, None)
        weighed = [weight * self._scores[number][part] for number, weight in weights.items()]
        figures = self._figures(functools.reduce(np.add, weighed), part)
        trials = tuple(
            msgspec.structs.replace(trial, weight=weights.get(number, 0.0))
            for number, trial in sorted(self._trials.items())
        )
        outcome = Outcome(
            "train",
            self._rows.training,
            time.monotonic() - self._began,
            figures,
            "test" if self._search.test else "validation",
            stopped=ending,
            archive=self._job.archive.name,
            trials=trials,
        )
        arrays = {
            f"{position}.{fold}.{name}": values
            for position, number in enumerate(weights)
            for fold in range(self._search.folds)
            for name, values in read_archive(folder_of(self._job, number, fold).archive).weights().items()
        }
        if len(weights) * self._search.folds == 1:
            self._store_alone(next(iter(weights)), outcome)
            return outcome
        rows = msgspec.structs.replace(self._rows, pinned=True, digest=self._pinned.digest)
        with self._ensemble(weights, rows) as ensemble:
            fitting = read_fitting(self._job.rows)
            save(self._job.archive, ensemble, self._pinned, rows, arrays, outcome, self._started, fitting)
        return outcome

    def _trained(self, number: int) -> JobSpec:
        """Return the JobSpec of a trial's model, without the time that the search gave it."""
        spec = read_archive(folder_of(self._job, number, 0).archive).spec
        training = self._search.candidates[number].spec.training
        return msgspec.structs.replace(spec, training=training)

    def _store_alone(self, number: int, outcome: Outcome) -> None:
        """Store the model of a trial as it is, with the figures and the trials of the search."""
        found = read_archive(folder_of(self._job, number, 0).archive)
        spec = msgspec.structs.replace(self._trained(number), output=self._program.spec.output)
        lineage = msgspec.structs.replace(
            found.lineage,
            statement=self._program.spec.statement,
            started=self._started.isoformat(timespec="seconds"),
            seconds=outcome.seconds,
            ending=outcome.ending or found.lineage.ending,
        )
        write_archive(
            self._job.archive,
            spec=spec,
            program=found.program,
            weights=found.weights(),
            metrics=outcome.figures,
            curve=found.curve,
            lineage=lineage,
            fitting=found.fitting,
            trials=outcome.trials,
        )

    def _figures(self, scores: Array, part: slice) -> Figures:
        """Return the metrics of scores of some of the labelled rows."""
        spec, labels = self._program.spec, self._labels[part]
        weights = None if self._weights is None else self._weights[part]
        kind = metrics.kind_of(spec.label)
        found: Figures = {"loss": finite(mean_loss(spec.label, labels, scores, weights))}
        for name in spec.metrics:
            metric = metrics.by_name(name, kind)
            found[name] = finite(metric.result(metric.update((), labels, scores, weights)))
        return found

    @contextmanager
    def _ensemble(self, weights: Mapping[int, float], rows: Rows) -> Iterator[Program]:
        """Write the program of the ensemble and load it."""
        source, folder = self._program.folder, self._job.path / "ensemble"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(CANDIDATES), dirs_exist_ok=True)
        members = []
        for position, (number, weight) in enumerate(weights.items()):
            trained = self._trained(number)
            members.append(Member(weight, trained, self._search.folds))
            copied = folder / MEMBERS / f"{position}"
            shutil.copytree(source / CANDIDATES / f"{number}", copied, dirs_exist_ok=True)
            (copied / SPEC_FILE).write_bytes(to_json(trained))
        spec = msgspec.structs.replace(self._program.spec, rows=rows, members=tuple(members), search=None)
        (folder / SPEC_FILE).write_bytes(to_json(spec))
        program = load(folder)
        try:
            yield program
        finally:
            unload(program.module)


def _truth(spec: JobSpec, reader: Reader, first: int) -> tuple[Array, Array | None]:
    """Return labels and weights of the rows from `first` to the last."""
    labels, weights = target(spec.label), RowWeights(spec.weights) if spec.weights else None
    columns = [spec.label.column, *([spec.weights.column] if spec.weights else [])]
    found: list[Any] = []
    weighed: list[Any] = []
    for batch in reader.read(first, reader.rows, list(dict.fromkeys(columns))):
        found.append(labels.transform(batch, "evaluate"))
        if weights is not None:
            weighed.append(weights.transform(batch, "evaluate"))
    if not found:
        raise JobError("a search needs validation rows", hint="write VALIDATE 0.2, or select more rows")
    return np.concatenate(found), np.concatenate(weighed) if weighed else None
