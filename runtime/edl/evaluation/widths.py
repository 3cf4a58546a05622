"""Relative widths of the intervals of rows: fitted to the errors of validation rows, applied to predicted rows.

The size of an error is modelled as the exponential of a sum: one term of the prediction, and one of each column of the
rows, a broken line of a number and a constant of each frequent text. The terms maximise the likelihood of errors with
an exponential distribution, less a ridge penalty. The errors over the modelled sizes are calibrated as other errors
are. A row's own error has no part in its modelled size there: the rows are divided into folds, and the terms for a fold
come from the other folds. The penalty is the one of a few that predicts the errors of the folds best. If it does not
predict them better than one size does, all rows have the same width. See docs/design/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from edl.arrays import Array
from edl.errors import SemanticError
from edl.features.arrays import is_text, numbers, plain_array, texts
from edl.metrics import AbsoluteErrors
from edl.spec.residuals import ColumnWidths, ScaledErrors, Widths

MOST_ROWS, LEAST_ROWS = 2000, 100  # to which widths are fitted

_Floats = npt.NDArray[np.float64]
_FOLDS = 4
_PENALTIES = (3.0, 30.0, 300.0)
_PLACES = (0.02, 0.15, 0.3, 0.5, 0.7, 0.85, 0.98)  # quantiles between which a line is straight
_LEAST_COUNT, _MOST_VALUES = 10, 12  # rows of a text that has a constant; texts that have one
_MOST_COLUMNS = 12  # that have a term, beside the prediction
_MOST_STEPS, _TOLERANCE = 15, 1e-4  # of an iteration; mean gain in likelihood below which it ends
_LARGEST = 0.99  # quantile to which larger errors are reduced while widths are fitted
_DIGITS = 6  # of a log that are kept
_SURE = 2.0  # standard errors by which different widths must be better than one


class _Basis(NamedTuple):
    """Columns of the design matrix that belong to one term, and the term with logs of 0."""

    term: ColumnWidths
    values: _Floats


class _Fit(NamedTuple):
    """Logs of each basis column, by basis; None for a column without a term."""

    base: float
    logs: dict[int, _Floats]

    def sizes(self, bases: Sequence[_Basis], rows: npt.NDArray[np.bool_]) -> _Floats:
        """Return the logarithms of the modelled sizes of the errors of these rows."""
        total: _Floats = np.full(int(rows.sum()), self.base)
        for place, logs in self.logs.items():
            total += bases[place].values[rows] @ logs
        return total


def fit_widths(
    rows: pa.RecordBatch,
    columns: Sequence[str],
    predictions: Array,
    labels: Array,
    weights: Array | None = None,
) -> ScaledErrors | None:
    """Return the scaled errors of predictions of rows, (n, 1) as their labels; None if one width fits all of them.

    columns: those of the rows that the model reads. The order of the rows is random, or their folds are of one kind.
    """
    errors = np.abs(predictions[:, 0].astype(np.float64) - labels[:, 0].astype(np.float64))
    counts = np.ones(len(errors)) if weights is None else weights.reshape(-1).astype(np.float64)
    if (counts > 0).sum() < LEAST_ROWS or not np.isfinite(errors).all() or not _quantiles(errors, [0.5])[0]:
        return None
    counts = counts / counts.mean()
    sizes = np.minimum(errors, _quantiles(errors, [_LARGEST])) + 1e-9 * errors.mean()
    bases = list(_bases(rows, columns, predictions[:, 0].astype(np.float64)))
    every, folds = np.ones(len(errors), dtype=np.bool_), np.arange(len(errors)) % _FOLDS
    by_penalty, constant = np.empty((len(_PENALTIES), len(errors))), np.empty(len(errors))
    for fold in range(_FOLDS):
        inside = folds == fold
        fits = _fit_terms(bases, ~inside, sizes, counts, _PENALTIES)
        by_penalty[:, inside] = [fit.sizes(bases, inside) for fit in fits]
        constant[inside] = math.log(np.average(sizes[~inside], weights=counts[~inside]))
    best = int(np.argmin([counts @ _losses(sizes, logs) for logs in by_penalty]))
    logs = by_penalty[best]
    gains = counts * (_losses(sizes, constant) - _losses(sizes, logs))
    if gains.mean() <= _SURE * gains.std() / math.sqrt(len(gains)):
        return None
    [fit] = _fit_terms(bases, every, sizes, counts, _PENALTIES[best : best + 1])
    fitted = fit.sizes(bases, every)
    middle, least, most = float(_quantiles(fitted, [0.5])[0]), float(fitted.min()), float(fitted.max())
    scaled = errors / np.exp(np.clip(logs, least, most) - middle)
    metric = AbsoluteErrors()
    quantiles = metric.quantiles(
        metric.update(
            (), np.zeros((len(scaled), 1)), scaled[:, np.newaxis], None if weights is None else counts
        )
    )
    if quantiles is None:
        return None
    terms = tuple(_with_logs(bases[place].term, fitted_logs) for place, fitted_logs in fit.logs.items())
    widths = Widths(terms, float(fit.base) - middle, least - middle, most - middle)
    return ScaledErrors(rows=quantiles.rows, quantiles=quantiles.quantiles, widths=widths)


def relative_widths(widths: Widths, rows: pa.RecordBatch, predictions: Array) -> _Floats:
    """Return the widths of the intervals of rows with these predictions, (n,), relative to the median row."""
    total: _Floats = np.full(rows.num_rows, widths.base)
    for term in widths.columns:
        if term.values:
            places = _find_texts(rows.column(term.column), term)
            total += np.array([*term.logs, term.otherwise])[places]
            continue
        values = predictions.astype(np.float64) if not term.column else _numbers(rows.column(term.column))
        is_known = np.isfinite(values)
        total += np.where(
            is_known, np.interp(np.where(is_known, values, 0.0), term.places, term.logs), term.otherwise
        )
    return np.exp(np.clip(total, widths.least, widths.most))


# Design matrix ------------------------------------------------------------------------------------------------


def _bases(rows: pa.RecordBatch, columns: Sequence[str], predictions: _Floats) -> Iterator[_Basis]:
    """Yield the basis of the prediction and of each column that has one: no lists, and no single value."""
    yield from _basis_of_number("", predictions)
    for name in columns:
        column = plain_array(rows.column(name))
        if is_text(column.type):
            yield from _basis_of_text(name, column)
        elif not pa.types.is_nested(column.type):
            yield from _basis_of_number(name, _numbers(column))


def _basis_of_number(name: str, values: _Floats) -> Iterator[_Basis]:
    is_known = np.isfinite(values)
    places = np.unique(_quantiles(values[is_known], _PLACES)) if is_known.any() else np.empty(0)
    if len(places) == 1:  # nearly all rows have one value: compare the others with it
        places = np.unique([values[is_known].min(), places[0], values[is_known].max()])
    if len(places) < 2:
        return
    position = np.interp(np.where(is_known, values, places[0]), places, np.arange(len(places)))
    left = np.minimum(position.astype(np.int64), len(places) - 2)
    matrix, every = np.zeros((len(values), len(places) + 1)), np.arange(len(values))
    matrix[every, left + 1] = position - left
    matrix[every, left] = 1 - matrix[every, left + 1]
    matrix[~is_known] = 0
    matrix[:, -1] = ~is_known
    yield _Basis(ColumnWidths(name, (), places=tuple(places.tolist())), matrix)


def _quantiles(values: _Floats, shares: Sequence[float]) -> _Floats:
    """Return the values at these shares of the order. np.quantile would import much first."""
    places = (np.array(shares) * (len(values) - 1)).astype(np.int64)
    ordered: _Floats = np.sort(values)[places]
    return ordered


def _basis_of_text(name: str, column: pa.Array) -> Iterator[_Basis]:
    counted = pc.value_counts(texts(column, name).cast(pa.string()).drop_null())
    counts = counted.field("counts").to_numpy()
    order = [place for place in np.argsort(-counts, kind="stable") if counts[place] >= _LEAST_COUNT]
    frequent = counted.field("values").take(pa.array(order[:_MOST_VALUES], pa.int64())).to_pylist()
    if not frequent:
        return
    term = ColumnWidths(name, (), values=tuple(frequent))
    places = _find_texts(column, term)
    yield _Basis(term, np.eye(len(frequent) + 1)[places])


def _numbers(column: pa.Array) -> _Floats:
    """Return numbers, with NaN for NULL; a column that has another type than in training has no numbers."""
    try:
        return numbers(column, "")
    except SemanticError:
        return np.full(len(column), np.nan)


def _find_texts(column: pa.Array, term: ColumnWidths) -> npt.NDArray[np.int64]:
    """Return the place of each text among those of the term, or their number for another one."""
    try:
        positions = pc.index_in(texts(column, "").cast(pa.string()), pa.array(term.values, pa.string()))
    except (SemanticError, pa.ArrowInvalid):
        return np.full(len(column), len(term.values))
    places: npt.NDArray[np.int64] = positions.fill_null(len(term.values)).to_numpy().astype(np.int64)
    return places


def _with_logs(term: ColumnWidths, logs: _Floats) -> ColumnWidths:
    *of_places, otherwise = np.round(logs, _DIGITS).tolist()
    return msgspec.structs.replace(term, logs=tuple(of_places), otherwise=otherwise)


# Fit ----------------------------------------------------------------------------------------------------------


def _losses(sizes: _Floats, logs: _Floats) -> _Floats:
    """Return the negative log-likelihoods of exponential distributions with these logarithms of their means."""
    return sizes / np.exp(logs) + logs


def _fit_terms(
    bases: Sequence[_Basis],
    rows: npt.NDArray[np.bool_],
    sizes: _Floats,
    counts: _Floats,
    penalties: Sequence[float],
) -> list[_Fit]:
    """Return, for each penalty, the terms that model the sizes of errors of some rows best.

    They are of the prediction and of the best columns.
    """
    chosen = _choose_columns(bases, rows, sizes, counts)
    sizes, counts = sizes[rows], counts[rows]
    if not chosen:
        return [_Fit(math.log(np.average(sizes, weights=counts)), {})] * len(penalties)
    matrix = np.concatenate([bases[place].values[rows] for place in chosen], axis=1)
    ends = np.cumsum([bases[place].values.shape[1] for place in chosen])
    means = np.average(matrix, axis=0, weights=counts)
    centred = matrix - means
    information = (centred * counts[:, np.newaxis]).T @ centred
    fits = []
    for penalty in penalties:
        base, logs = _maximise(centred, information, sizes, counts, penalty)
        of_terms = dict(zip(chosen, np.split(logs, ends[:-1]), strict=True))
        fits.append(_Fit(base - float(means @ logs), of_terms))
    return fits


def _choose_columns(
    bases: Sequence[_Basis], rows: npt.NDArray[np.bool_], sizes: _Floats, counts: _Floats
) -> list[int]:
    """Return the places of the bases that explain the sizes best, each alone."""
    if len(bases) <= _MOST_COLUMNS + 1:
        return list(range(len(bases)))
    excess = counts[rows] * (sizes[rows] / np.average(sizes[rows], weights=counts[rows]) - 1)
    explained = []
    for basis in bases:
        values = basis.values[rows]
        centred = values - values.mean(axis=0)
        moments = centred.T @ centred + _PENALTIES[0] * np.eye(values.shape[1])
        slopes = centred.T @ excess
        explained.append(float(slopes @ np.linalg.solve(moments, slopes)))
    return sorted(np.argsort(explained)[::-1][: _MOST_COLUMNS + 1].tolist())


def _maximise(
    matrix: _Floats, information: _Floats, sizes: _Floats, counts: _Floats, penalty: float
) -> tuple[float, _Floats]:
    """Return base and slopes of the largest penalised likelihood, by steps of Fisher scoring, halved where too long.

    information: the matrix of moments, which is the same at each step.
    """
    unit = np.eye(matrix.shape[1])
    inverse = np.asarray(np.linalg.solve(information + penalty * unit, unit), dtype=np.float64)
    total = counts.sum()
    base, slopes = math.log(float(counts @ sizes) / total), np.zeros(matrix.shape[1])
    logs = np.full(len(sizes), base)
    loss = float(counts @ _losses(sizes, logs))
    for _ in range(_MOST_STEPS):
        excess = counts * (sizes / np.exp(logs) - 1)
        step_of_base, step = float(excess.sum()) / total, inverse @ (matrix.T @ excess - penalty * slopes)
        change = step_of_base + matrix @ step
        part, before = 1.0, loss
        while part > 1e-3:
            tried = slopes + part * step
            loss = float(counts @ _losses(sizes, logs + part * change)) + penalty / 2 * float(tried @ tried)
            if loss <= before:
                break
            part /= 2
        else:
            break
        base, slopes, logs = base + part * step_of_base, tried, logs + part * change
        if before - loss < _TOLERANCE * total:
            break
    return base, slopes
