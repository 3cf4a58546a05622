"""Choice of the ensemble of a search among its trials, and its archive.

An ensemble of one model is stored as that model. Any other is a program with its members' programs in `members/0`,
`members/1`, ….
"""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import numpy as np

from edl.errors import JobError
from edl.evaluation.calibrating import calibration_notes
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import TIME_LIMIT, Outcome
from edl.jobs.trials import Trial
from edl.models.archive import Archive, read_archive, write_archive
from edl.models.fitting import read_fitting
from edl.program import SPEC_FILE, Program, load, unload
from edl.program.folders import CANDIDATES, MEMBERS
from edl.run.archive import save
from edl.run.background import background_rows
from edl.run.search.judge import Judge
from edl.run.search.selection import select
from edl.run.search.timing import SearchTime
from edl.run.search.trial_runner import folder_of, refit_folder_of
from edl.spec import FoldValues, Importances, JobSpec, Member, Rows, to_json


@dataclass(frozen=True)
class Ensembling:
    """Writer of the model of a search. began: second of its start, as of `time.time`. time: of the search."""

    program: Program
    job: JobFolder
    judge: Judge
    began: float
    time: SearchTime

    def choose(self) -> dict[int, float]:
        """Return the weights of the models of the best ensemble, by the number of the trial.

        Raises JobError if no trial has a model.
        """
        trials = self.judge.trials()
        part = self.judge.validation
        scores = {
            number: self.judge.scores(number)[part]
            for number, ended_trial in trials.items()
            if ended_trial.value is not None
        }
        if not scores:
            errors = [trial.error for trial in trials.values()]
            hint = f"the first one: {errors[0]}" if errors else None
            raise JobError("no candidate of the search could be trained", hint=hint)
        most = self.judge.search.max_members
        return select(
            scores, self.judge.measure, most, lambda: self.time.seconds_left < self.time.seconds_to_store / 2
        )

    def store(
        self,
        weights: Mapping[int, float],
        refitted: Mapping[int, int],
        ending: str = "",
        importances: Importances | None = None,
    ) -> Outcome:
        """Write the archive of the chosen models. Return the outcome of the search.

        refitted: the epochs of those that were trained on all rows. ending: the reason why the search ended early, if
        it was interrupted.
        """
        trials = self.judge.trials()
        part = self.judge.reported_rows
        weighted = [weight * self.judge.scores(number)[part] for number, weight in weights.items()]
        mean = functools.reduce(np.add, weighted)
        specs = [self.judge.search.candidates[number].spec for number in weights]
        columns = list(dict.fromkeys(name for spec in specs for name in spec.columns))
        certain = self.judge.uncertainty(mean, part, columns)
        outcome = Outcome(
            "train",
            self.program.spec.rows.training,
            time.time() - self.began,
            self.judge.figures(mean, part),
            "test" if self.judge.search.test else "validation",
            stopped=ending or self._reason(trials),
            archive=self.job.archive.name,
            trials=tuple(_weigh_trials(trials, weights, refitted if self.judge.search.refit else None)),
            notes=(
                *calibration_notes(self.program.spec, certain),
                *self.judge.advise_calibration(mean, part),
            ),
            uncertainty=certain,
            importances=msgspec.UNSET if importances is None else importances,
            fold_values=self._measure_folds(weights),
        )
        models = {number: self._models(number, refit=number in refitted) for number in weights}
        if sum(map(len, models.values())) == 1:
            self._store_alone(next(iter(weights)), outcome, models)
        else:
            self._store_ensemble(weights, outcome, models)
        return msgspec.structs.replace(outcome, uncertainty=None)  # they are in the archive

    def _measure_folds(self, weights: Mapping[int, float]) -> FoldValues | msgspec.UnsetType:
        """Return the metric of the ensemble in each fold; unset without folds."""
        part = self.judge.validation
        weighted = [weight * self.judge.scores(number)[part] for number, weight in weights.items()]
        values = self.judge.measure_folds(functools.reduce(np.add, weighted))
        return FoldValues(self.judge.search.metric, values) if values else msgspec.UNSET

    def _reason(self, trials: Mapping[int, Trial]) -> str:
        """Return why some candidates were not tried, or an empty text."""
        search = self.judge.search
        for trial in trials.values():
            if len(trials) < search.count and self.judge.is_perfect(trial):
                value = f"{search.metric} {trial.value:.4g}"
                return f"no candidate can improve on {value} of trial {trial.number}, too good to be true of most data"
        missing = (search.ordered or search.count) - len(trials)
        return f"{TIME_LIMIT} of {search.time_limit:g} s" if missing > 0 else ""

    @property
    def _started(self) -> datetime:
        return datetime.fromtimestamp(self.began, UTC)

    def _models(self, number: int, *, refit: bool) -> list[Archive]:
        """Return the archives of a trial's models: of each fold, or of its refit."""
        if refit:
            return [read_archive(refit_folder_of(self.job, number).archive)]
        folds = range(self.judge.models)
        return [read_archive(folder_of(self.job, number, fold).archive) for fold in folds]

    def _make_model_spec(self, number: int, model: Archive) -> JobSpec:
        """Return the JobSpec of a trial's model, without the time that the search gave it."""
        limit = self.judge.search.candidates[number].spec.training.time_limit
        training = msgspec.structs.replace(model.spec.training, time_limit=limit)
        return msgspec.structs.replace(model.spec, training=training)

    def _store_alone(self, number: int, outcome: Outcome, models: Mapping[int, list[Archive]]) -> None:
        """Store the model of a trial as it is, with the figures and the trials of the search.

        Of a refit it has the weights alone: the figures and the curve are of the trial's validation rows.
        """
        [model] = models[number]
        archive = read_archive(folder_of(self.job, number, 0).archive)
        spec = msgspec.structs.replace(
            self._make_model_spec(number, archive), output=self.program.spec.output
        )
        lineage = msgspec.structs.replace(
            archive.lineage,
            statement=self.program.spec.statement,
            started=self._started.isoformat(timespec="seconds"),
            seconds=outcome.seconds,
            ending=outcome.ending or archive.lineage.ending,
        )
        write_archive(
            self.job.archive,
            spec=spec,
            program=archive.program,
            weights=model.weights(),
            metrics=outcome.figures,
            curve=archive.curve,
            lineage=lineage,
            fitting=archive.fitting,
            background=archive.background(),
            trials=outcome.trials,
            uncertainty=outcome.uncertainty,
            importances=outcome.importances or None,
            fold_values=outcome.fold_values or None,
        )

    def _store_ensemble(
        self, weights: Mapping[int, float], outcome: Outcome, models: Mapping[int, list[Archive]]
    ) -> None:
        """Store the weighted mean of the models of several trials."""
        arrays = {
            f"{position}.{fold}.{name}": values
            for position, number in enumerate(weights)
            for fold, model in enumerate(models[number])
            for name, values in model.weights().items()
        }
        pinned = self.judge.pinned
        rows = msgspec.structs.replace(self.program.spec.rows, pinned=True, digest=pinned.digest)
        with self._ensemble(weights, rows, models) as ensemble:
            fitting = read_fitting(self.job.rows)
            background = background_rows(ensemble.spec, self.judge.reader, rows.training)
            save(
                self.job.archive, ensemble, pinned, rows, arrays, outcome, self._started, fitting, background
            )

    @contextmanager
    def _ensemble(
        self, weights: Mapping[int, float], rows: Rows, models: Mapping[int, list[Archive]]
    ) -> Iterator[Program]:
        """Write the program of the ensemble and load it."""
        source, folder = self.program.folder, self.job.search / "ensemble"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(CANDIDATES), dirs_exist_ok=True)
        members = []
        for position, (number, weight) in enumerate(weights.items()):
            trained = self._make_model_spec(number, models[number][0])
            members.append(Member(weight, trained, len(models[number])))
            copied = folder / MEMBERS / f"{position}"
            shutil.copytree(source / CANDIDATES / f"{number}", copied, dirs_exist_ok=True)
            (copied / SPEC_FILE).write_bytes(to_json(trained))
        spec = msgspec.structs.replace(self.program.spec, rows=rows, members=tuple(members), search=None)
        (folder / SPEC_FILE).write_bytes(to_json(spec))
        program = load(folder)
        try:
            yield program
        finally:
            unload(program.module)


def _weigh_trials(
    trials: Mapping[int, Trial], weights: Mapping[int, float], refitted: Mapping[int, int] | None
) -> Iterator[Trial]:
    """Yield the trials in their order, with their weights in the ensemble and the epochs of their refits."""
    for number, trial in sorted(trials.items(), key=lambda item: item[1].number):
        refit = None if refitted is None or number not in weights else refitted.get(number, 0)
        yield msgspec.structs.replace(trial, weight=weights.get(number, 0.0), refit=refit)
