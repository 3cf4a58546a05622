"""Statistics of categories in their place: the mean label, the mean of a number, the number of rows.

Constructors, checks and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SemanticError, SpecError
from edl.features.arrays import Floats, Ints, numbers
from edl.features.computed import column
from edl.features.folds import FOLD, keep_folds
from edl.features.kinds import (
    RowsOfBatch,
    check,
    check_category,
    check_count,
    check_fields,
    check_finite,
    compute_values,
)
from edl.spec import Encoding, GroupMean, LogCount, Source, TargetMean, num_ids
from edl.spec.categories import Plain

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def target_mean(
    category: Plain,
    smoothing: float,
    outputs: int = 1,
    counts: Iterable[float] = (),
    sums: Iterable[float] = (),
    folds: int = 0,
    rows: int = 0,
    blocks: int = 1,
    scaled: bool = True,
    nulls: bool | msgspec.UnsetType = msgspec.UNSET,
) -> TargetMean:
    """Return the smoothed mean label of the row's category, of a training row without the labels of its fold.

    `counts` are rows of (fold, id), `sums` of labels of (fold, output, id), each as one list. `nulls`: NULL is a
    category.
    """
    feature = TargetMean(
        category, smoothing, outputs, tuple(counts), tuple(sums), folds, rows, blocks, scaled, nulls
    )
    return check(feature)


def log_count(
    category: Plain,
    counts: Iterable[float] = (),
    scaled: bool = True,
    nulls: bool | msgspec.UnsetType = msgspec.UNSET,
) -> LogCount:
    """Return log(1 + n) of the number n of training rows with the row's category.

    `counts` holds n for each id. `nulls`: NULL is a category.
    """
    return check(LogCount(category, tuple(counts), scaled, nulls))


def group_mean(
    category: Plain,
    number: Source,
    difference: bool = False,
    counts: Iterable[float] = (),
    means: Iterable[float] = (),
    deviation: float = 0.0,
    scaled: bool = True,
    nulls: bool | msgspec.UnsetType = msgspec.UNSET,
) -> GroupMean:
    """Return the mean of `number` over the training rows with the row's category, or the difference to it.

    `counts` and `means` hold the rows with a number and their mean for each id, `deviation` the one of the values.
    `nulls`: NULL is a category.
    """
    feature = GroupMean(category, number, difference, tuple(counts), tuple(means), deviation, scaled, nulls)
    return check(feature)


@check_fields.register
def _check_target_mean(column: TargetMean) -> None:
    check_category(column.category, "encoding", "target_mean")
    check_finite(column.smoothing, "smoothing of target_mean")
    check_count(column.outputs, "outputs of target_mean")
    check_count(column.blocks, "blocks of target_mean")
    if column.smoothing < 0:
        raise SemanticError(f"smoothing of target_mean must not be negative, it is {column.smoothing}")
    if column.counts or column.sums:
        check_count(column.folds, "folds of target_mean")
        check_count(column.rows, "rows of target_mean")
        if column.folds % column.blocks:
            raise SemanticError(
                f"target_mean has {column.folds} folds, and {column.blocks} blocks of them are not equal"
            )
        count = column.folds * num_ids(column.category)
        _check_statistics("counts", column.counts, count)
        _check_statistics("sums", column.sums, count * column.outputs)


@check_fields.register
def _check_log_count(column: LogCount) -> None:
    check_category(column.category, "encoding", "log_count")
    if column.counts:
        _check_statistics("counts", column.counts, num_ids(column.category))


@check_fields.register
def _check_group_mean(column: GroupMean) -> None:
    check_category(column.category, "encoding", "group_mean")
    check_finite(column.deviation, "deviation of group_mean")
    if not column.number:
        raise SemanticError("group_mean needs a column of numbers")
    if column.counts or column.means:
        _check_statistics("counts", column.counts, num_ids(column.category))
        _check_statistics("means", column.means, num_ids(column.category))


def _check_statistics(name: str, values: tuple[float, ...], count: int) -> None:
    for value in values:
        check_finite(value, f"a number of {name}")
    if len(values) != count:
        raise SemanticError(f"{name} has {len(values):,} numbers; the category has {count:,} in its folds")
    if name == "counts" and (min(values) < 0 or not sum(values)):
        raise SemanticError("counts must not be negative, and not all 0")


class Encoder:
    """Values of one feature by id, float64; of the mean label also by the folds that are left out."""

    def __init__(self, feature: Encoding) -> None:
        self._feature = feature
        self._tables: dict[int, Floats] = {}

    def values(self, ids: Ints, batch: pa.RecordBatch) -> Floats:
        """Return the values of rows with these ids, (n, width)."""
        feature = self._feature
        if is_difference(feature):
            number = numbers(column(batch, feature.number), str(feature.number))[:, None]
            differences = (np.where(np.isfinite(number), number, np.nan) - self.table()[ids]) * scale_of(
                feature
            )
            return np.nan_to_num(differences) if feature.scaled else differences
        if not feature.needs_label or FOLD not in batch.schema.names:
            return self.table()[ids]
        of_rows = np.asarray(batch.column(FOLD))
        values = np.empty((len(ids), feature.width))
        for left_out in np.unique(of_rows).tolist():  # as many as there are folds
            rows = of_rows == left_out
            values[rows] = self.table(left_out)[ids[rows]]
        return values

    def table(self, left_out: int = 0) -> Floats:
        """Return the values of each id, (ids, width); of a difference, what is subtracted from the row's number.

        left_out: the folds without which they are, as bits.
        """
        if not self._feature.counts:
            raise SpecError(
                "a feature has no statistics of its category: they come from the rows that a statement pins",
                hint="run the statement with sqlflow run; a program that is only compiled lacks them",
            )
        if left_out not in self._tables:
            self._tables[left_out] = TABLES[type(self._feature)](self._feature, left_out)
        return self._tables[left_out]


def is_difference(feature: Encoding) -> TypeIs[GroupMean]:
    """Return True if the values are the row's number less the values of the table, times `scale_of`."""
    return bool(feature.number) and feature.difference  # type: ignore[union-attr]  # of features with a number


def scale_of(feature: GroupMean) -> float:
    """Return the factor of differences."""
    if not feature.scaled:
        return 1.0
    return 1 / feature.deviation if feature.deviation else 0.0


def _means(feature: TargetMean, left_out: int) -> Floats:
    means, _, _ = _smooth_means(feature, keep_folds(feature.folds, left_out))
    if not feature.scaled:
        return means.T
    of_all, rows, prior = _smooth_means(feature, keep_folds(feature.folds, 0))
    return _scale_values(means, prior, of_all, rows)


def _smooth_means(feature: TargetMean, kept: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Return the mean labels of each id, (outputs, ids), its rows, and the mean of all, (outputs, 1)."""
    ids = num_ids(feature.category)
    counts = np.asarray(feature.counts).reshape(feature.folds, ids)[kept].sum(axis=0)
    sums = np.asarray(feature.sums).reshape(feature.folds, feature.outputs, ids)[kept].sum(axis=0)
    prior = sums.sum(axis=1, keepdims=True) / max(counts.sum(), 1e-300)
    with np.errstate(invalid="ignore"):  # without rows and smoothing
        means = (sums + feature.smoothing * prior) / (counts + feature.smoothing)
    means = np.where(counts > 0, means, prior)
    size = feature.category.size
    if not feature.nulls:
        means[:, size:] = prior
    elif feature.category.has_other and not counts[size + 1] and counts[:size].any():
        means[:, size + 1] = np.average(means[:, :size], axis=1, weights=counts[:size])
    return means, counts, prior


def _log_counts(feature: LogCount, left_out: int) -> Floats:
    counts, size = np.asarray(feature.counts), feature.category.size
    values: Any = np.log1p(counts)[None]
    if not feature.nulls:
        values[:, size:] = 0.0
    elif feature.category.has_other:  # rare values and unseen ones alike
        rows = counts[:size]
        values[:, size + 1 :] = np.log1p(rows[rows > 0].min(initial=rows.max(initial=0.0)))
    return (
        _scale_values(values, np.average(values, axis=1, weights=counts), values, counts)
        if feature.scaled
        else values.T
    )


def _scale_values(values: Floats, centre: Any, of_all: Floats, rows: Floats) -> Floats:
    """Return (values - centre) / deviation of `of_all` over the training rows, transposed; 0 without deviation."""
    mean = np.average(of_all, axis=1, weights=rows)[:, None]
    deviation = np.sqrt(np.average(np.square(of_all - mean), axis=1, weights=rows))[:, None]
    shifted = values - np.reshape(centre, (-1, 1))
    scaled: Floats = np.divide(shifted, deviation, out=np.zeros_like(shifted), where=deviation > 0)
    return scaled.T


def _group_means(feature: GroupMean, left_out: int) -> Floats:
    counts, means, size = np.asarray(feature.counts), np.array(feature.means), feature.category.size
    of_all = float(np.average(means, weights=counts))
    has_value = counts > 0
    if not feature.nulls:
        has_value[size:] = False
    means = np.where(has_value, means, of_all)
    if feature.scaled and not feature.difference:
        means = (means - of_all) / feature.deviation if feature.deviation else np.zeros_like(means)
    return means[:, None]


@compute_values.register
def _encoding(feature: Encoding, rows: RowsOfBatch) -> Floats:
    values: Floats = rows.statistics[feature].values(rows.ids[feature.category], rows.batch)
    return values


TABLES: Mapping[type, Callable[[Any, int], Floats]] = {
    TargetMean: _means,
    LogCount: _log_counts,
    GroupMean: _group_means,
}
