"""Choice of the ensemble of a search among its trials, and its archive.

An ensemble of one model is stored as that model. Any other is a program with those of its members in `members/0`,
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
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.trials import Trial
from edl.models.archive import read_archive, write_archive
from edl.models.fitting import read_fitting
from edl.program import SPEC_FILE, Program, load, unload
from edl.program.folders import CANDIDATES, MEMBERS
from edl.run.archive import save
from edl.run.search.judge import Judge
from edl.run.search.selection import select
from edl.run.search.trial_runner import folder_of
from edl.spec import JobSpec, Member, Rows, to_json


@dataclass(frozen=True)
class Ensembling:
    """Writer of the model of a search. began: second of its start, as of `time.time`."""

    program: Program
    job: JobFolder
    judge: Judge
    began: float

    def store(self, ending: str = "") -> Outcome:
        """Choose among the ended trials and write the archive. Return the outcome of the search.

        ending: the reason why the search ended early, if it was interrupted. Raises JobError if no trial has a model.
        """
        trials = self.judge.trials()
        scores = {
            number: self.judge.scores(number) for number, each in trials.items() if each.value is not None
        }
        if not scores:
            errors = [trial.error for trial in trials.values()]
            hint = f"the first one: {errors[0]}" if errors else None
            raise JobError("no candidate of the search could be trained", hint=hint)
        validation = {number: found[self.judge.validation] for number, found in scores.items()}
        weights = select(validation, self.judge.measure, self.judge.search.max_members)
        missing = len(self.judge.search.candidates) - len(trials)
        limit = f"the time limit of {self.judge.search.time_limit:g} s" if missing else ""
        part = self.judge.reported
        mean = functools.reduce(np.add, [weight * scores[number][part] for number, weight in weights.items()])
        outcome = Outcome(
            "train",
            self.program.spec.rows.training,
            time.time() - self.began,
            self.judge.figures(mean, part),
            "test" if self.judge.search.test else "validation",
            stopped=ending or limit,
            archive=self.job.archive.name,
            trials=tuple(_weighed(trials, weights)),
            residuals=self.judge.residuals(mean, part),
        )
        if len(weights) * self.judge.search.folds == 1:
            self._store_alone(next(iter(weights)), outcome)
        else:
            self._store_ensemble(weights, outcome)
        return msgspec.structs.replace(outcome, residuals=None)  # they are in the archive

    @property
    def _started(self) -> datetime:
        return datetime.fromtimestamp(self.began, UTC)

    def _trained(self, number: int) -> JobSpec:
        """Return the JobSpec of a trial's model, without the time that the search gave it."""
        spec = read_archive(folder_of(self.job, number, 0).archive).spec
        training = self.judge.search.candidates[number].spec.training
        return msgspec.structs.replace(spec, training=training)

    def _store_alone(self, number: int, outcome: Outcome) -> None:
        """Store the model of a trial as it is, with the figures and the trials of the search."""
        found = read_archive(folder_of(self.job, number, 0).archive)
        spec = msgspec.structs.replace(self._trained(number), output=self.program.spec.output)
        lineage = msgspec.structs.replace(
            found.lineage,
            statement=self.program.spec.statement,
            started=self._started.isoformat(timespec="seconds"),
            seconds=outcome.seconds,
            ending=outcome.ending or found.lineage.ending,
        )
        write_archive(
            self.job.archive,
            spec=spec,
            program=found.program,
            weights=found.weights(),
            metrics=outcome.figures,
            curve=found.curve,
            lineage=lineage,
            fitting=found.fitting,
            trials=outcome.trials,
            residuals=outcome.residuals,
        )

    def _store_ensemble(self, weights: Mapping[int, float], outcome: Outcome) -> None:
        """Store the weighted mean of the models of several trials."""
        arrays = {
            f"{position}.{fold}.{name}": values
            for position, number in enumerate(weights)
            for fold in range(self.judge.search.folds)
            for name, values in read_archive(folder_of(self.job, number, fold).archive).weights().items()
        }
        pinned = self.judge.pinned
        rows = msgspec.structs.replace(self.program.spec.rows, pinned=True, digest=pinned.digest)
        with self._ensemble(weights, rows) as ensemble:
            fitting = read_fitting(self.job.rows)
            save(self.job.archive, ensemble, pinned, rows, arrays, outcome, self._started, fitting)

    @contextmanager
    def _ensemble(self, weights: Mapping[int, float], rows: Rows) -> Iterator[Program]:
        """Write the program of the ensemble and load it."""
        source, folder = self.program.folder, self.job.search / "ensemble"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns(CANDIDATES), dirs_exist_ok=True)
        members = []
        for position, (number, weight) in enumerate(weights.items()):
            trained = self._trained(number)
            members.append(Member(weight, trained, self.judge.search.folds))
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


def _weighed(trials: Mapping[int, Trial], weights: Mapping[int, float]) -> Iterator[Trial]:
    """Yield the trials in their order, with their weights in the ensemble."""
    for number, trial in sorted(trials.items()):
        yield msgspec.structs.replace(trial, weight=weights.get(number, 0.0))
