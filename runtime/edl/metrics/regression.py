"""Metrics of a predicted number. Labels and scores of shape (n, 1), in the label's own unit."""

from __future__ import annotations

import abc
import math

import numpy as np

from edl.metrics.base import Array, Metric, ratio, regression_rows
from edl.metrics.states import Floats, State


class _RowMean(Metric):
    """Weighted mean of an error per row. State: its weighted sum, the sum of weights."""

    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, predicted, weight = regression_rows(labels, scores, weights)
        return (np.array([(self._errors(truth, predicted) * weight).sum(), weight.sum()]),)

    def _result(self, state: State) -> float:
        total, weight = state[0]
        return ratio(total, weight)

    @abc.abstractmethod
    def _errors(self, truth: Floats, predicted: Floats) -> Floats: ...


class MSE(_RowMean):
    """Mean squared error."""

    name = "mse"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        return np.square(predicted - truth)


class RMSE(MSE):
    """Root of the mean squared error."""

    name = "rmse"

    def _result(self, state: State) -> float:
        return math.sqrt(super()._result(state))


class MAE(_RowMean):
    """Mean absolute error."""

    name = "mae"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        return np.abs(predicted - truth)


class Bias(_RowMean):
    """Mean error: of the predictions less the labels, above 0 if they are too high."""

    name = "bias"
    ranks_models = False

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        return predicted - truth


class MAPE(_RowMean):
    """Mean absolute error relative to the label, as a fraction (0.1 is 10 %).

    A label of 0 has no relative error; as in scikit-learn it counts as 2.2e-16, so the figure becomes huge.
    """

    name = "mape"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        relative: Floats = np.abs(predicted - truth) / np.maximum(np.abs(truth), np.finfo(np.float64).eps)
        return relative


class SMAPE(_RowMean):
    """Symmetric mean absolute percentage error: 2 |error| / (|label| + |score|), from 0 to 2; 0 where both are 0."""

    name = "smape"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        size = np.abs(truth) + np.abs(predicted)
        errors: Floats = np.divide(
            2 * np.abs(predicted - truth), size, out=np.zeros_like(size), where=size > 0
        )
        return errors


class MSLE(_RowMean):
    """Mean squared error of log(1 + x). Numbers below 0 count as 0, as in Keras."""

    name = "msle"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        logs = np.log1p(np.maximum(np.stack([predicted, truth]), 0))
        errors: Floats = np.square(logs[0] - logs[1])
        return errors


class RMSLE(MSLE):
    """Root of the mean squared error of log(1 + x)."""

    name = "rmsle"

    def _result(self, state: State) -> float:
        return math.sqrt(super()._result(state))


class LogCosh(_RowMean):
    """Mean of log(cosh(error)): half the square of small errors, the size of large ones."""

    name = "log_cosh"

    def _errors(self, truth: Floats, predicted: Floats) -> Floats:
        error = np.abs(predicted - truth)
        losses: Floats = error + np.log1p(np.exp(-2 * error)) - math.log(2)
        return losses


class MaxError(Metric):
    """Largest absolute error of a row with a weight. State: it."""

    name = "max_error"
    higher_is_better = False

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, predicted, weight = regression_rows(labels, scores, weights)
        errors = np.abs(predicted - truth)[weight > 0]
        return (errors.max(keepdims=True),) if len(errors) else ()

    def _merge(self, a: State, b: State) -> State:
        return (np.maximum(a[0], b[0]),)

    def _result(self, state: State) -> float:
        return float(state[0][0])


class R2(Metric):
    """Coefficient of determination: the share of the labels' variance that the scores explain.

    NaN for fewer than two rows; for labels that are all equal it is 1 if every score is right, else 0. State: rows,
    weight, mean of the labels, their squared deviations from it, squared errors.
    """

    name = "r2"
    higher_is_better = True

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        truth, predicted, weight = regression_rows(labels, scores, weights)
        total = weight.sum()
        from_first = truth - truth[0]  # exactly 0 for equal labels, whatever rounding does to their mean
        shift = (from_first * weight).sum() / total if total else 0.0
        deviations = (np.square(from_first - shift) * weight).sum()
        errors = (np.square(predicted - truth) * weight).sum()
        return (np.array([len(truth), total, truth[0] + shift, deviations, errors]),)

    def _merge(self, a: State, b: State) -> State:
        """Combine means and squared deviations (Chan, Golub and LeVeque)."""
        rows_a, weight_a, mean_a, deviations_a, errors_a = a[0]
        rows_b, weight_b, mean_b, deviations_b, errors_b = b[0]
        weight = weight_a + weight_b
        share = weight_b / weight if weight else 0.0
        gap = mean_b - mean_a
        deviations = deviations_a + deviations_b + gap * gap * weight_a * share
        return (np.array([rows_a + rows_b, weight, mean_a + gap * share, deviations, errors_a + errors_b]),)

    def _result(self, state: State) -> float:
        rows, weight, _, deviations, errors = state[0]
        if rows < 2 or not weight:
            return math.nan
        if not deviations:
            return 0.0 if errors else 1.0
        return float(1 - errors / deviations)


class ExplainedVariance(R2):
    """Share of the labels' variance that is not variance of the errors: R2 without a constant error.

    State: the state of R2 for the labels, and the same for the errors in place of the labels.
    """

    name = "explained_variance"

    def _measure(self, labels: Array, scores: Array, weights: Array | None) -> State:
        [of_labels] = super()._measure(labels, scores, weights)
        [of_errors] = super()._measure(scores.astype(np.float64) - labels, scores, weights)
        return of_labels, of_errors

    def _merge(self, a: State, b: State) -> State:
        return tuple(R2._merge(self, (one,), (other,))[0] for one, other in zip(a, b, strict=True))

    def _result(self, state: State) -> float:
        (rows, weight, mean, deviations, _), (*_, errors, _) = state
        return super()._result((np.array([rows, weight, mean, deviations, errors]),))
