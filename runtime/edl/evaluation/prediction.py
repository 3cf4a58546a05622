"""Result of PREDICT: kept columns, the predicted value, the interval of a number, the probabilities of classes, and
extra outputs of the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.arrays import Array
from edl.data.names import fit_name, unique_names
from edl.errors import JobError
from edl.evaluation.widths import relative_widths
from edl.features import SeveralTarget, Target, target
from edl.metrics import decide_class
from edl.program import Program
from edl.spec import (
    Interval,
    JobSpec,
    Label,
    Output,
)
from edl.spec.extra_outputs import is_number

CONFIDENCE = "confidence"  # last word of the column with the probability of the predicted class
MOST_CLASSES = 20  # maximum with a probability column for each class, where nothing is written


@dataclass(frozen=True)
class Results:
    """Result batches of a prediction job.

    The columns are the columns in `keep`, then `column` in the label's own type. For classes there is also
    `<column>_confidence`, the probability of the predicted class, and for at most `MOST_CLASSES` classes, or if the
    JobSpec says so, a column `<column>_prob_<class>` each, provided that the source allows such a name. For a cluster
    there is `<column>_distance`, the distance to its centre, for an anomaly `<column>_score`. A reduction has its
    numbers in `<column>_1`, `<column>_2`, … and the mean squared error of what they restore in `<column>_error`. For a
    number with an interval there are `<column>_low` and `<column>_high`. Each of the `extra` outputs is a column
    `<column>_<name>`: a number, or a text of numbers separated by commas. The predicted column replaces a kept one of
    the same name; names differ in more than case.
    """

    target: Target
    keep: tuple[str, ...]
    names: tuple[str, ...]  # names of the added columns
    interval: Interval | None
    threshold: float | None  # of the second of two classes
    extra: tuple[str, ...]  # names of extra outputs

    @property
    def scores(self) -> int:
        """Number of scores per row: one per class, cluster or quantile, or 1 for a number."""
        return self.target.spec.scores

    def empty(self, rows: pa.Schema) -> pa.RecordBatch:
        """Return the result of no rows that have these columns."""
        extra = {name: np.empty((0, 1)) for name in self.extra}
        return self.batch(pa.RecordBatch.from_pylist([], schema=rows), np.empty((0, self.scores)), extra)

    def batch(
        self, rows: pa.RecordBatch, scores: Array, extra: Mapping[str, Array] | None = None
    ) -> pa.RecordBatch:
        """Return the result of some rows, their scores, (n, classes), and their extra outputs, (n, width) each."""
        kept = [rows.column(name) for name in self.keep]
        label, extra_values = self.target.spec, extra or {}
        more = [_join_numbers(extra_values[name], is_number(name, label)) for name in self.extra]
        return pa.RecordBatch.from_arrays(
            [*kept, *self._compute_columns(scores), *self._compute_interval(rows, scores), *more],
            names=[*self.keep, *self.names],
        )

    def _compute_columns(self, scores: Array) -> Iterator[pa.Array]:
        if isinstance(self.target, SeveralTarget):
            raise RuntimeError("several labels have a format each")
        label = self.target.spec
        if label.dimensions:
            yield from (_numbers(scores[:, place]) for place in range(label.dimensions + 1))
            return
        if not label.has_classes:
            yield self.target.decode(scores)
            if label.clusters:
                yield _numbers(scores.min(axis=1))
            if label.tells_anomalies:
                yield _numbers(scores[:, 0])
            yield from (_numbers(scores[:, place]) for place in range(1, 1 + len(label.quantiles)))
            return
        scores = probabilities(scores, label)
        chosen = scores if self.threshold is None else decide_class(scores, self.threshold)
        yield self.target.decode(chosen)
        yield _numbers(np.take_along_axis(scores, chosen.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0])
        yield from (
            _numbers(scores[:, position]) for position in range(len(self.names) - 2 - len(self.extra))
        )

    def _compute_interval(self, rows: pa.RecordBatch, scores: Array) -> Iterator[pa.Array]:
        """Yield the lower and the upper ends of the intervals."""
        if self.interval is None:
            return
        widths = self.interval.widths
        margins = self.interval.margin * (relative_widths(widths, rows, scores[:, 0]) if widths else 1.0)
        yield _numbers(scores[:, 0] - margins)
        yield _numbers(scores[:, 0] + margins)


@dataclass(frozen=True)
class SeveralResults(Results):
    """Result batches of a model of several labels: the columns of each, which are named by their labels.

    `parts` have the names of each; the column of the JobSpec's output is what precedes them all.
    """

    parts: tuple[Results, ...]

    @property
    def scores(self) -> int:
        return sum(part.scores for part in self.parts)

    def _compute_columns(self, scores: Array) -> Iterator[pa.Array]:
        first = 0
        for part in self.parts:
            yield from part._compute_columns(scores[:, first : first + part.scores])
            first += part.scores


def _several_format(target: SeveralTarget, output: Output, scheme: str) -> SeveralResults:
    """Return the format of several labels."""
    label = target.spec
    columns = predicted_columns(label, output.column)
    keep = tuple(name for name in output.keep if name.casefold() not in map(str.casefold, columns))
    alone = msgspec.structs.replace(output, extra=())
    of_each = [
        added_names(one_target, column, alone, (), scheme)
        for one_target, column in zip(label.labels, columns, strict=True)
    ]
    extra = [fit_name(f"{output.column}{name}", scheme) for name in output.extra]
    firsts = unique_names(columns, taken=keep)  # before the columns that belong to them
    more = (name for names_of_label in of_each for name in names_of_label[1:])
    others = iter(unique_names([*more, *extra], taken=(*keep, *firsts)))
    names = [
        name
        for first, names_of_label in zip(firsts, of_each, strict=True)
        for name in (first, *itertools.islice(others, len(names_of_label) - 1))
    ]
    parts = tuple(
        Results(one_target, (), names_of_label, None, None, ())
        for one_target, names_of_label in zip(target.targets, of_each, strict=True)
    )
    return SeveralResults(target, keep, (*names, *others), None, None, output.extra, parts)


def predicted_columns(label: Label, column: str) -> tuple[str, ...]:
    """Return the names of the predicted columns: `column`, or `column` before the name or the number of each."""
    if label.labels:
        return tuple(f"{column}{one_label.column}" for one_label in label.labels)
    if label.dimensions:
        return tuple(f"{column or label.column}_{number}" for number in range(1, label.dimensions + 1))
    return (column or label.column,)


def results(program: Program) -> Results:
    """Return the result format that the program's JobSpec requests."""
    return results_of(program.spec, program_target(program))


def results_of(spec: JobSpec, own_target: Target) -> Results:
    """Return the result format that a JobSpec requests of predictions of that target."""
    output, scheme = spec.output, spec.query.source.partition(":")[0]
    if isinstance(own_target, SeveralTarget):
        return _several_format(own_target, output, scheme)
    column = output.column or own_target.spec.column
    predicted = set(map(str.casefold, predicted_columns(own_target.spec, column)))
    keep = tuple(name for name in output.keep if name.casefold() not in predicted)
    interval = spec.interval if own_target.spec.is_number else None
    names = added_names(own_target.spec, column, output, keep, scheme, has_interval=interval is not None)
    threshold = spec.threshold if own_target.spec.is_binary else None
    return Results(own_target, keep, names, interval, threshold, output.extra)


def added_names(
    label: Label, column: str, output: Output, keep: Sequence[str], scheme: str, *, has_interval: bool = False
) -> tuple[str, ...]:
    """Return the names of the columns that PREDICT adds in a database of that scheme, the predicted ones first."""
    others = (f"{column}_low", f"{column}_high") if has_interval else _class_columns(column, label, output)
    others = (*others, *(f"{column}_{name}" for name in output.extra))
    first = (
        [fit_name(name, scheme) for name in predicted_columns(label, column)]
        if label.dimensions
        else [column]
    )
    return unique_names([*first, *(fit_name(name, scheme) for name in others)], taken=keep)


def program_target(program: Program) -> Target:
    """Return the target that the program defines, or its JobSpec's target."""
    label = program.module.__dict__.get("LABEL")
    return label if isinstance(label, Target) else target(program.spec.label)


def _class_columns(column: str, label: Label, output: Output) -> Iterator[str]:
    if label.clusters:
        yield f"{column}_distance"
    if label.tells_anomalies:
        yield f"{column}_score"
    if label.dimensions:
        yield f"{column}_error"
    yield from (f"{column}_q{100 * quantile:g}".replace(".", "_") for quantile in label.quantiles)
    if not label.has_classes:
        return
    yield f"{column}_{output.confidence or CONFIDENCE}"
    few = len(label.classes) <= MOST_CLASSES
    if few if output.probabilities is None else output.probabilities:
        yield from (f"{column}_prob_{_text(value)}" for value in label.classes)


def _text(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def probabilities(scores: Array, label: Label) -> Array:
    """Return the scores as (n, classes). A program may give only the probability of the second of two classes."""
    if scores.ndim == 2 and scores.shape[1] == 1 and label.is_binary:
        scores = np.concatenate([1 - scores, scores], axis=1)
    if scores.ndim != 2 or scores.shape[1] != len(label.classes):
        raise JobError(
            f"the program's scores have the shape {scores.shape} for {len(label.classes)} classes",
            hint="scores(outputs) gives each class's probability, (n, classes)",
        )
    return scores


def _join_numbers(values: Array, number: bool) -> pa.Array:
    """Return a number or a text of numbers for each row, (n, width); NULL where one is not finite."""
    if number:
        return _numbers(values[:, 0])
    width = values.shape[1]
    texts = pa.array(np.ascontiguousarray(values).reshape(-1)).cast(pa.string())
    offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32) * width)
    unknown = pa.array(~np.isfinite(values).all(axis=1))
    return pc.if_else(
        unknown, pa.scalar(None, pa.string()), pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    )


def _numbers(values: Array) -> pa.Array:
    return pa.array(values.astype(np.float64), mask=~np.isfinite(values))
