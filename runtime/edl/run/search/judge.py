"""Judgement of the trials of a search on the rows that their models did not learn from.

The record of each trial is written beside its models, so that another process can choose among all of them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edl import metrics
from edl.arrays import Array
from edl.checkpoints.integrity import Part, check_file, read_back
from edl.data import Pinned, Reader
from edl.errors import DamagedError, JobError, SpecError, SQLFlowError
from edl.evaluation import calibrating
from edl.features import target
from edl.features.weights import RowWeights
from edl.files import make_folders, replace_file, sync
from edl.frameworks.ensemble import mean_loss
from edl.jobs.events import Figures, finite
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import TIME_LIMIT, Outcome
from edl.jobs.trials import RECORD, SCREENING_RECORD, Trial
from edl.logs import log
from edl.program import Program
from edl.run import job_runner
from edl.run.intervals import measure_widths_of_scores
from edl.run.search.selection import Measure
from edl.run.search.trial import SCORES
from edl.run.search.trial_runner import TrialResult, folder_of, screening_folder_of
from edl.spec import JobSpec, Rows, Search, Uncertainty, ValidationBlocks

FILES = "files.json"  # checksums of a trial's models and scores, beside its record
SKIPPED = "skipped"  # folder with a file for each turn that had no time


class _Checksums(msgspec.Struct, frozen=True):
    files: tuple[Part, ...]


class Judge:
    """Judge of the trials of a program's search in a job folder."""

    def __init__(self, program: Program, job: JobFolder) -> None:
        if program.spec.search is None:
            raise RuntimeError("the program has no search")
        self.search: Search = program.spec.search
        self._spec = program.spec
        self._job = job
        self.pinned, self.reader = job_runner.rows_of(program, job)
        self.rows = find_rows(program.spec, self.pinned, self.reader.rows)
        blocks = self.rows.blocks
        last = blocks.rows if blocks else self.rows.training + self.rows.validation
        if self.reader.rows < last:
            raise JobError(
                f"the search was compiled for {last:,} rows, and its query has {self.reader.rows:,}",
                hint="compile the program again: sqlflow compile",
            )
        # rows that a model scores without having seen them
        self._first = last - self.rows.scored_rows
        self._labels, self._weights = _truth(program.spec, self.reader, self._first)

    @functools.cached_property
    def validation(self) -> slice:
        """Rows of the scores that choose the ensemble; those behind them are the test rows."""
        return slice(0, len(self._labels) - self.search.test)

    @property
    def reported_rows(self) -> slice:
        """Rows of the scores that the figures of the ensemble are of."""
        return slice(self.validation.stop, None) if self.search.test else self.validation

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of rows that validate the trainings of a trial, one for each."""
        return self.rows.blocks.sizes if self.rows.blocks else (self.rows.validation,)

    @property
    def models(self) -> int:
        """Number of trainings of a trial whose models predict: of a forward chain only the one with the most rows."""
        return 1 if self.rows.blocks and self.rows.blocks.is_forward else len(self.sizes)

    @functools.cached_property
    def measure(self) -> Measure:
        """Metric of the search, on the validation rows."""
        metric = metrics.by_name(self.search.metric, metrics.kind_of(self._spec.label), exact=True)
        part = self.validation
        return Measure(metric, self._labels[part], None if self._weights is None else self._weights[part])

    @functools.cached_property
    def least_error(self) -> float:
        """Error on which no other candidate can improve: a trial that has it ends the search."""
        return self.measure.least_error

    def is_perfect(self, trial: Trial) -> bool:
        """Return True if no other candidate can improve on a trial on all training rows."""
        return trial.value is not None and self.measure.error(trial.value) <= self.least_error

    def scores(self, number: int) -> Array:
        """Return the scores of a trial: of each fold's validation rows by its model, of the test rows their mean."""
        of_folds = [
            np.load(folder_of(self._job, number, fold).path / SCORES) for fold in range(len(self.sizes))
        ]
        validation = [scores[:size] for scores, size in zip(of_folds, self.sizes, strict=True)]
        tests = [scores[size:] for scores, size in zip(of_folds[: self.models], self.sizes, strict=False)]
        return np.concatenate([*reversed(validation), functools.reduce(np.add, tests) / len(tests)])

    def figures(self, scores: Array, part: slice) -> Figures:
        """Return the metrics of scores of some of the rows, or their loss if there are none.

        The candidates minimise losses of several units, so that a loss of all has no unit beside metrics.
        """
        spec, labels = self._spec, self._labels[part]
        weights = None if self._weights is None else self._weights[part]
        kind = metrics.kind_of(spec.label)
        by_metric: Figures = {}
        if not spec.metrics:
            by_metric["loss"] = finite(mean_loss(spec.label, labels, scores, weights))
        for name in spec.metrics:
            metric = metrics.by_name(name, kind)
            by_metric[name] = finite(metric.result(metric.update((), labels, scores, weights)))
        return by_metric

    def uncertainty(self, scores: Array, part: slice, columns: Sequence[str]) -> Uncertainty | None:
        """Return how sure scores of some of the rows are. columns: those that the models of the scores read."""
        weights = None if self._weights is None else self._weights[part]
        calibration_metrics = calibrating.of_label(self._spec.label, self._spec.training.calibration)
        states = {
            name: metric.update((), self._labels[part], scores, weights)
            for name, metric in calibration_metrics.items()
        }
        measured = calibrating.uncertainty(calibration_metrics, states)
        first, labels = self._first + (part.start or 0), self._labels[part]
        return measure_widths_of_scores(self.reader, first, columns, scores, labels, weights, measured)

    def advise_calibration(self, scores: Array, part: slice) -> tuple[str, ...]:
        """Return a note if the probabilities in scores of some of the rows should be calibrated."""
        if not self._spec.metrics:  # the scores need not be probabilities
            return ()
        weights = None if self._weights is None else self._weights[part]
        calibration = self._spec.training.calibration
        return calibrating.calibration_advice(
            self._spec.label, calibration, self._labels[part], scores, weights
        )

    def record(self, turn: int, number: int, result: TrialResult) -> Trial:
        """Measure a trial, and write and return its record. turn: its place among the trials, from 0."""
        value: float | None = None
        figures: Figures = {}
        of_folds: tuple[float | None, ...] = ()
        error = result.error
        if result.outcomes:
            try:
                scores = self.scores(number)[self.validation]
                value = finite(self.measure.value(scores))
                figures = self.figures(scores, self.validation)
                of_folds = self.measure_folds(scores)
            except (SQLFlowError, OSError, ValueError) as caught:
                error = caught.message if isinstance(caught, SQLFlowError) else str(caught)
        trial = msgspec.structs.replace(
            self._begin_trial(turn, number, result),
            value=value,
            figures=figures,
            epochs=_mean(
                [outcome.kept_epoch or outcome.epochs for outcome in result.outcomes[: self.models]]
            ),
            epoch_seconds=result.seconds / max(1, sum(outcome.epochs for outcome in result.outcomes)),
            ending=_describe_end(result.outcomes),
            error=error,
            fold_values=of_folds or msgspec.UNSET,
            rows_per_second=min((outcome.rows_per_second for outcome in result.outcomes), default=0.0),
        )
        if (screened := self.screened_trials().get(number)) is not None:
            trial = msgspec.structs.replace(trial, screened=screened.screened)
        self._write_checksums(number, len(result.outcomes))
        return _write(self._record(number, RECORD), trial)

    def drop_damaged(self) -> None:
        """Record trials that ended with a model as failed if a file of theirs is not as it was written, and log it.

        A search that goes on after its processes died has them from a disk.
        """
        for number, trial in self.trained_trials().items():
            path = self._record(number, FILES)
            try:
                data = path.read_bytes()
                for part in msgspec.json.decode(data, type=_Checksums).files:
                    check_file(path.parent / part.file, part)
            except FileNotFoundError:  # an earlier version, or another machine, has recorded it
                continue
            except (DamagedError, msgspec.MsgspecError) as error:
                log(f"trial {trial.number} counts as failed: {error}")
                failed = msgspec.structs.replace(
                    trial, value=None, figures={}, error=f"it is damaged: {error}"
                )
                path.unlink(missing_ok=True)
                _write(self._record(number, RECORD), failed)

    def measure_folds(self, scores: Array) -> tuple[float | None, ...]:
        """Return the metric of scores of the validation rows in each fold; none without several folds.

        None stands for a fold without a value, as of the AUC of rows of one class.
        """
        if len(self.sizes) == 1:
            return ()
        ends = np.cumsum((0, *self.sizes)).tolist()
        total = ends[-1]
        blocks = (slice(total - end, total - start) for start, end in itertools.pairwise(ends))
        return tuple(finite(self.measure.value(scores, block)) for block in blocks)

    def _write_checksums(self, number: int, folds: int) -> None:
        """Flush the files of a trial to disk, and write their checksums beside its record."""
        path = self._record(number, FILES)
        make_folders(path.parent)
        parts = [
            Part(f"{fold}/{file.name}", file.stat().st_size, read_back(file))
            for fold in range(folds)
            for file in self._files_of(number, fold)
            if file.exists()
        ]
        for folder in {path.parent / Path(part.file).parent for part in parts}:
            sync(folder)
        replace_file(path, msgspec.json.encode(_Checksums(tuple(parts))), durable=True)

    def _files_of(self, number: int, fold: int) -> tuple[Path, Path]:
        folder = folder_of(self._job, number, fold)
        return folder.archive, folder.path / SCORES

    def record_screening(self, turn: int, number: int, result: TrialResult) -> Trial:
        """Measure a training on some of the training rows, and write and return its record."""
        value, ending = None, ""
        if result.outcomes:
            scores = np.load(screening_folder_of(self._job, number).path / SCORES)[self.validation]
            value = finite(self.measure.value(scores))
            ending = f"{self.search.metric} {value:.4g} when trained on {self.search.screening:,} rows only"
        trial = msgspec.structs.replace(
            self._begin_trial(turn, number, result), ending=ending, screened=value
        )
        return _write(self._record(number, SCREENING_RECORD), trial)

    def skip(self, turn: int) -> None:
        """Record that the time is too short for a turn."""
        path = self._job.search / SKIPPED / f"{turn:03}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def trials(self) -> dict[int, Trial]:
        """Return the records of all ended trials by number, from 0; of those that were screened only, these.

        Raises SpecError for a damaged one.
        """
        return self.screened_trials() | self.trained_trials()

    def screened_trials(self) -> dict[int, Trial]:
        """Return the records of the trainings on some of the rows, by number."""
        return self._read(SCREENING_RECORD)

    def trained_trials(self) -> dict[int, Trial]:
        """Return the records of the trainings on all training rows, by number."""
        return self._read(RECORD)

    def errors(self) -> dict[int, float]:
        """Return the errors of the trials that ended with a model, by number."""
        trial_values = {number: trial.value for number, trial in self.trained_trials().items()}
        return {
            number: self.measure.error(value) for number, value in trial_values.items() if value is not None
        }

    def screening_errors(self) -> dict[int, float]:
        """Return the errors of the models that were trained on some of the rows, by number."""
        trial_values = {number: trial.screened for number, trial in self.screened_trials().items()}
        return {
            number: self.measure.error(value) for number, value in trial_values.items() if value is not None
        }

    def ended_turns(self) -> set[int]:
        """Return the turns with ended trials, in a screening or on all rows, and the turns without time."""
        skipped = {int(path.name) for path in self._job.search.glob(f"{SKIPPED}/*")}
        return skipped | {trial.number - 1 for trial in self.trials().values()}

    def _begin_trial(self, turn: int, number: int, result: TrialResult) -> Trial:
        candidate = self.search.candidates[number]
        statement = candidate.spec.statement
        return Trial(turn + 1, candidate.name, statement, seconds=result.seconds, error=result.error)

    def _record(self, number: int, name: str) -> Path:
        return self._job.search / f"{number:03}" / name

    def _read(self, name: str) -> dict[int, Trial]:
        trials = {}
        for path in sorted(self._job.search.glob(f"*/{name}")):
            try:
                trials[int(path.parent.name)] = msgspec.json.decode(path.read_bytes(), type=Trial)
            except (msgspec.MsgspecError, ValueError) as error:
                raise SpecError(f"{path} is damaged: {error}") from None
        return trials


def find_rows(spec: JobSpec, pinned: Pinned, total: int) -> Rows:
    """Return the rows of a search as they are pinned. total: number of rows of the reader.

    A program that was compiled knows only the numbers that its query had then.
    """
    rows, folds = spec.rows, spec.folds
    if folds == 1:
        return rows
    blocks = pinned.blocks or rows.blocks
    if not blocks:  # of an earlier version
        blocks = ValidationBlocks.make_equal(rows.training + rows.validation, folds)
    return msgspec.structs.replace(rows, pinned=True, total=total, blocks=blocks)


def _write(path: Path, trial: Trial) -> Trial:
    make_folders(path.parent)
    replace_file(path, msgspec.json.encode(trial), durable=True)
    return trial


def _describe_end(folds: Sequence[Outcome]) -> str:
    """Tell how a training ended; of folds, whether the time ended some of them."""
    if len(folds) == 1:
        return folds[0].ending
    cut = sum(TIME_LIMIT in outcome.stopped for outcome in folds)
    return f"the time limit ended {cut} of {len(folds)} folds" if cut else ""


def _mean(epochs: list[int]) -> int:
    return round(sum(epochs) / len(epochs)) if epochs else 0


def _truth(spec: JobSpec, reader: Reader, first: int) -> tuple[Array, Array | None]:
    """Return labels and weights of the rows from `first` to the last."""
    labels, weights = target(spec.label), RowWeights(spec.weights) if spec.weights else None
    columns = [spec.label.column, *([spec.weights.column] if spec.weights else [])]
    batches_of_labels: list[Any] = []
    weighed: list[Any] = []
    for batch in reader.read(first, reader.rows, list(dict.fromkeys(columns))):
        batches_of_labels.append(labels.transform(batch, "evaluate"))
        if weights is not None:
            weighed.append(weights.transform(batch, "evaluate"))
    if not batches_of_labels:
        raise JobError("a search needs validation rows")
    return np.concatenate(batches_of_labels), np.concatenate(weighed) if weighed else None
