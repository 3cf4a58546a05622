"""Statistics of categories in place of the categories: the mean label, or the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.errors import SpecError
from edl.features.arrays import Floats, Ints
from edl.features.folds import FOLD, Folds
from edl.spec import Encoding, LogCount, TargetMean, num_ids


class Encoder:
    """Values of one feature by id, float64; of the mean label also by the folds that are left out."""

    def __init__(self, feature: Encoding) -> None:
        self._feature = feature
        self._of: dict[int, Floats] = {}

    def values(self, ids: Ints, batch: pa.RecordBatch) -> Floats:
        """Return the values of rows with these ids, (n, width)."""
        feature = self._feature
        if not feature.counts:
            raise SpecError(
                "a feature has no statistics of its category: they come from the rows that a statement pins",
                hint="run the statement with sqlflow run; a program that is only compiled lacks them",
            )
        if isinstance(feature, LogCount):
            return self._table(0)[ids]
        if FOLD not in batch.schema.names:
            return self._table(feature.folds)[ids]
        codes = np.asarray(batch.column(FOLD))
        values = np.empty((len(ids), feature.outputs))
        for code in np.unique(codes).tolist():  # as many as there are folds
            rows = codes == code
            values[rows] = self._table(code)[ids[rows]]
        return values

    def _table(self, code: int) -> Floats:
        """Return the values of each id, (ids, width)."""
        if code not in self._of:
            feature = self._feature
            self._of[code] = _log_counts(feature) if isinstance(feature, LogCount) else _means(feature, code)
        return self._of[code]


def _means(feature: TargetMean, code: int) -> Floats:
    folds = Folds(feature.folds, feature.rows, feature.blocks)
    means, _ = _smooth_means(feature, folds.statistics_mask(code))
    if not feature.scaled:
        return means.T
    of_all, rows = _smooth_means(feature, folds.statistics_mask(feature.folds))
    return _scale_values(means, of_all[:, -1:], of_all, rows)


def _smooth_means(feature: TargetMean, kept: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return the mean labels of each id, (outputs, ids), and its rows; the last is the prior."""
    ids = num_ids(feature.category)
    counts = np.asarray(feature.counts).reshape(feature.folds, ids)[kept].sum(axis=0)
    sums = np.asarray(feature.sums).reshape(feature.folds, feature.outputs, ids)[kept].sum(axis=0)
    prior = sums.sum(axis=1, keepdims=True) / max(counts.sum(), 1e-300)
    with np.errstate(invalid="ignore"):  # without rows and smoothing
        means = (sums + feature.smoothing * prior) / (counts + feature.smoothing)
    means = np.where(counts > 0, means, prior)
    means[:, -1:] = prior
    return means, counts


def _log_counts(feature: LogCount) -> Floats:
    counts = np.asarray(feature.counts)
    values: Any = np.log1p(counts)[None]
    values[:, -1] = 0.0
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
