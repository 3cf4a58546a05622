"""Checks of the training rows: warnings about data that makes the metrics of a model misleading.

They run during the one pass over the training rows that fits the features, and keep a bounded state. A warning never
stops a training and drops no column; `derive` decides which derived features are left out. The rules are in
docs/data-checks.md, their thresholds in `thresholds`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from edl import spec
from edl.features.arrays import Floats
from edl.spec.column import source_columns
from edl.spec.computed import TO_NUMBER, table_columns
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks import labels
from sqlflow_edl.analysis.checks.duplicates import Duplicates
from sqlflow_edl.analysis.checks.entities import repeated_entities
from sqlflow_edl.analysis.checks.predictors import LabelledRows, Score
from sqlflow_edl.analysis.checks.text_expressions import describe_doubt, read_column
from sqlflow_edl.analysis.checks.text_readings import NumberReading, TextReading, read_texts
from sqlflow_edl.analysis.checks.totals import Totals
from sqlflow_edl.analysis.checks.warning import (
    BY_CHANCE,
    COINCIDENCES,
    DUPLICATES,
    FEWEST_ROWS,
    ID_NAMES,
    MERGED,
    NEAR_PERFECT,
    UNUSUAL,
    DataWarning,
    format_share,
)
from sqlflow_edl.analysis.columns.drafts import Statistics
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics import precision
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want, collect

_OTHERS_SHOWN = 3  # texts that a warning names
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def is_id(name: str, column_statistics: ColumnStatistics) -> bool:
    """Return True if the column only identifies rows: a text or whole number that is different in every row.

    Distinct whole numbers may be chance: prices drawn from a wide range differ in each row, too. So their range must
    also be too narrow for chance, like the range of a row number (n values of a range s coincide n²/2s times by chance,
    more often if some are likelier), or the column must be named as an id.
    """
    count = column_statistics.rows - column_statistics.nulls
    if not column_statistics.unique or count < FEWEST_ROWS:
        return False
    if not column_statistics.span:
        return not column_statistics.delimiter
    return count * count / (2 * column_statistics.span) >= COINCIDENCES or is_named_as_id(name)


def is_named_as_id(name: str) -> bool:
    """Return True if the first or last word of a column's name means an id: movieId, id_of_user."""
    words = [word.casefold() for word in _WORDS.findall(name)]
    return bool(words) and (words[-1] in ID_NAMES or words[0] in ID_NAMES)


class DataChecks:
    """Checks of one training while its rows are read. label, columns: those read, without the row weight.

    Of clusters, which have no label, it is empty; then nothing is compared with it. more_labels: behind the first, of
    which only the validation rows are checked.
    """

    def __init__(
        self, label: str, columns: Sequence[str], schema: Schema, seed: int, more_labels: Iterable[str] = ()
    ) -> None:
        self._labels = [label, *more_labels] if label else []
        self._columns = [column for column in columns if column not in self._labels]
        self._schema = schema
        self._sample = LabelledRows(label, self._columns, seed) if label else None
        is_flat = label and self._columns and not any(schema.items(column) for column in self._columns)
        self._duplicates = Duplicates(self._columns) if is_flat else None
        self._totals = Totals([*self._labels, *self._columns], schema)
        self.held_out: Statistics = {}  # of the labels of the validation rows

    def hold_out(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Read the validation rows. Their columns may be in another order and case.
        Call it before `watch` to compare them with the training rows, after it for their labels alone.
        """
        counted = self._labels or self._columns[:1]
        want = Want.COUNTS | Want.MOMENTS if self._labels else Want.COUNTS
        self.held_out = collect(self._held_out(batches), dict.fromkeys(counted, want), seed=0)

    def _held_out(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with columns named as in the training query; check each batch on the way."""
        names = [*self._labels, *self._columns]
        for batch in batches:
            schema = Schema(batch.schema)
            named = batch.select([schema.find(column) or column for column in names]).rename_columns(names)
            if self._duplicates is not None:
                self._duplicates.hold_out(named)
            self._totals.add(named)
            yield named

    def watch(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the training rows unchanged; check each batch on the way."""
        for batch in batches:
            if self._sample is not None:
                self._sample.add(batch)
            if self._duplicates is not None:
                self._duplicates.add(batch)
            self._totals.add(batch)
            yield batch

    def disorders(self, columns: Collection[str], *, classes: bool) -> dict[str, float]:
        """Return of whole numbers the share of the label's variance between them that is in no order.

        classes: the label has classes. Call it after `watch`.
        """
        if self._sample is None:
            return {}
        return self._sample.disorders(
            [column for column in columns if column in self._columns], classes=classes
        )

    def warnings(
        self,
        statistics: Statistics,
        job: spec.JobSpec,
        named: Collection[str],
        default_split: spec.Split | None = None,
    ) -> list[DataWarning]:
        """Return all findings of the checks.

        job: the training, fitted to the statistics. named: columns that COLUMN names. default_split: None if it is
        written.
        """
        every_label, features = spec.each_label(job.label), job.features
        readings = [
            *self._readings(statistics, {*named, *_read_as_numbers(features)}),
            *self._totals.warnings(),
        ]
        used = dict.fromkeys(column for feature in features for column in source_columns(feature))
        if self._sample is None or not every_label:
            return [*_ids_and_constants(statistics, used, named), *readings]
        label = every_label[0]
        scores = {score.column: score for score in self._sample.scores(classes=label.has_classes)}
        return [
            *_ids_and_constants(statistics, used, named),
            *readings,
            *_predictors(label.column, [scores[column] for column in used if column in scores]),
            *_unused_predictors(label.column, [score for name, score in scores.items() if name not in used]),
            *self._check_copied_rows(statistics, scores, used),
            *repeated_entities(label.column, statistics[label.column].rows, scores.values(), default_split),
            *(labels.fractional_classes(label) if self._is_number(label) else ()),
            *labels.frequent_class(label, statistics[label.column], self.held_out.get(label.column), job),
            *labels.skew(label, self._sample.labels(), job),
            *(
                warning
                for one_label in every_label
                for warning in rounded_label(one_label, statistics[one_label.column], job)
            ),
            *self._check_merged_numbers(job),
            *(
                warning
                for one_label in every_label
                if one_label.column in self.held_out
                for warning in (
                    *labels.held_out(
                        one_label, statistics[one_label.column], self.held_out[one_label.column]
                    ),
                    *labels.shift_warnings(
                        one_label, statistics[one_label.column], self.held_out[one_label.column], job.split
                    ),
                )
            ),
        ]

    def _is_number(self, label: spec.Label) -> bool:
        return self._schema.type(label.column) is ColumnType.NUMBER

    def _readings(self, statistics: Statistics, named: Collection[str]) -> Iterator[DataWarning]:
        """Warn of texts that are almost all numbers or dates, and become categories or classes."""
        for column in [*self._labels, *self._columns]:
            if (
                column in named
                or column not in statistics
                or self._schema.type(column) is not ColumnType.TEXT
            ):
                continue
            if reading := read_texts(statistics[column].counts):
                yield _reading_warning(column, reading, self._schema.dialect, column in self._labels)

    def _check_merged_numbers(self, job: spec.JobSpec) -> Iterator[DataWarning]:
        """Warn of numbers that the model takes in float32, where that makes values equal."""
        for feature in dict.fromkeys(job.features):
            if self._sample is not None and is_in_float32(feature, job.framework):
                [column] = source_columns(feature)
                values, temporal = self._sample.numbers(column)
                yield from merged_numbers(feature, values, temporal=temporal)

    def _check_copied_rows(
        self, statistics: Statistics, scores: Mapping[str, Score], used: Collection[str]
    ) -> Iterator[DataWarning]:
        """Warn of validation rows that are also training rows, if there are more than chance explains."""
        looked = self._duplicates
        if looked is None or not set(used) <= set(self._columns) or not (count := looked.found(used)):
            return
        share = count / looked.rows
        chance = float(statistics[self._labels[0]].rows)
        for column in used:
            chance *= scores[column].repeats if column in scores else 1.0
        if share >= DUPLICATES and chance <= BY_CHANCE * share:
            yield DataWarning(
                "validation rows",
                f"{count:,} of {looked.rows:,} validation rows ({format_share(share)}) have the same features as a "
                "training row, so the model is validated on rows that it was trained on",
                "SELECT DISTINCT, or select the validation rows by a query of their own: VALIDATE ON "
                "(SELECT …)",
            )


def _read_as_numbers(features: Iterable[spec.Feature]) -> Iterator[str]:
    """Yield the columns of texts from which features read numbers."""
    for source in (source for feature in features for source in spec.sources(feature)):
        if isinstance(source, spec.Computed) and source.operator == TO_NUMBER:
            yield from table_columns(source)


def _reading_warning(column: str, reading: TextReading, dialect: str, is_label: bool) -> DataWarning:
    what = "numbers" if isinstance(reading, NumberReading) else "dates"
    others = ", ".join(map(repr, reading.others[:_OTHERS_SHOWN]))
    more = ", …" if len(reading.others) > _OTHERS_SHOWN else ""
    message = f"{format_share(reading.share)} of the texts of {column} are {what}"
    message += f", the others {others}{more}" if others else ""
    message += (
        ", and each different text is a class of its own"
        if is_label
        else ", and the column becomes a category"
    )
    expression = read_column(column, reading, dialect)
    if expression is None:
        return DataWarning(column, message, "convert them in the table")
    advice = f"select {expression} AS {expressions.name(column, dialect)}"
    if what == "numbers" and not (is_label or reading.ambiguous):
        advice += ", or write train.text_numbers = convert"
    advice += describe_doubt(reading)
    return DataWarning(column, message, advice)


def _ids_and_constants(
    statistics: Statistics, used: Iterable[str], named: Collection[str]
) -> Iterator[DataWarning]:
    for column in used:
        column_statistics = statistics.get(column)
        if column_statistics is None:
            continue
        if is_id(column, column_statistics):
            why = "COLUMN names it" if column in named else "no other feature is left"
            yield DataWarning(
                column,
                f"{column} is different in every row, as an id is, and is a feature because {why}",
                "a model memorises rows by it; leave it out unless it is a quantity",
            )
        elif column in named and column_statistics.constant:
            yield DataWarning(
                column,
                f"{column} is the same in every training row",
                "remove it from COLUMN: it carries no information",
            )


def _predictors(label: str, scores: Iterable[Score]) -> Iterator[DataWarning]:
    advice = f"if it is known only when {label} is, leave it out of the SELECT"
    for score in scores:
        if not score.score >= UNUSUAL:  # NaN, of numbers with squares that overflow, is no finding
            continue
        if score.kind == "copy":
            message = f"{score.column} is a copy of the label {label}"
        elif score.kind == "names":
            message = f"{score.column} is the label {label} under other names: one value for each class"
        else:
            what = score.column if score.kind == "predictor" else f"whether {score.column} is NULL"
            message = _predicts(what, label, score.score)
        yield DataWarning(score.column, message, advice)


def _unused_predictors(label: str, scores: Iterable[Score]) -> Iterator[DataWarning]:
    """Warn of columns that are left out, as texts that are all different, and of which NULL alone gives the label away.

    The reason why they are left out says how to use them anyway.
    """
    for score in scores:
        if score.kind == "presence" and score.score >= UNUSUAL:
            predicts = _predicts(f"whether {score.column} is NULL", label, score.score)
            advice = f"leave it out of the SELECT, too, if it is known only when {label} is"
            yield DataWarning(score.column, f"{predicts}; the model does not use it", advice)


def _predicts(what: str, label: str, score: float) -> str:
    how = "almost perfectly" if score >= NEAR_PERFECT else "unusually well"
    return f"{what} alone predicts {label} {how} (score {score:.4f} of 1)"


def rounded_label(label: spec.Label, training: ColumnStatistics, job: spec.JobSpec) -> Iterator[DataWarning]:
    """Yield a warning if the model learns a label that float32, or even float64, rounds by too much."""
    if not label.is_number:
        return
    largest = max(abs(training.min), abs(training.max))
    advice = f"select it less a number near its mean: {label.column} - {training.mean:.0f} AS …"
    moments = training.min, training.max, training.std
    if precision.is_coarse(*moments, precision.FLOAT64):
        kind, step = "float64", float(np.spacing(largest))
    elif not spec.label_offset(label) and precision.is_coarse(*moments):
        kind, step = "float32", float(np.spacing(np.float32(largest)))
        if job.loss.name in precision.LOGARITHMIC:
            advice = f"name another loss than {job.loss.name}: mean_squared_error learns it less its mean"
    else:
        return
    yield DataWarning(
        label.column,
        f"the model learns {label.column} in {kind}, whose numbers near {largest:.0f} are {step:g} apart, and the "
        f"standard deviation of {label.column} is {training.std:.4g}",
        advice,
    )


def is_in_float32(feature: spec.Feature, framework: str) -> bool:
    """Return True if the model takes the numbers of a table's column themselves, in float32."""
    if not feature.is_unchanged or feature.part or (feature.is_for_trees and framework != "xgboost"):
        return False
    return all(isinstance(source, str) for source in spec.sources(feature))


def merged_numbers(feature: spec.Feature, values: Floats, *, temporal: bool) -> Iterator[DataWarning]:
    """Yield a warning if float32 makes values of a feature equal, see `is_in_float32`.

    values: of a sample of the training rows, (n,), NaN for NULL. temporal: they are dates or times, in seconds.
    """
    distinct = np.unique(values[np.isfinite(values)])
    with np.errstate(over="ignore"):
        merged = len(distinct) - len(np.unique(distinct.astype(np.float32)))
    if not merged or merged < MERGED * len(distinct):
        return
    [column] = spec.source_columns(feature)
    if feature.is_for_trees:
        taken_by, advice = "XGBoost", "model.framework = lightgbm compares float64"
    else:
        taken_by, advice = "the network", f"write COLUMN STANDARDIZE({column})"
    if not temporal:
        advice += f", or select it less a number near its mean: {column} - {distinct.mean():.0f} AS {column}"
    yield DataWarning(
        column,
        f"{taken_by} takes {column} in float32, in which {merged:,} of its {len(distinct):,} different values are "
        "equal to others",
        advice,
    )
