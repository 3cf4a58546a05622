"""Objectives of trees: the prediction that a sum of leaves stands for, and the loss of a row.

The sum of the leaves of all trees is a row's *margin*. It is the predicted number itself, its logarithm, or the logit
of a class. The libraries minimize and report the same losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Link = Literal["identity", "log", "logit", "softmax"]
_LEAST_NUMBER = -1 + 1e-6  # of XGBoost, before the logarithm of a number and 1
_LEAST = 1e-15  # least probability before a logarithm, in place of 0


@dataclass(frozen=True, slots=True)
class Objective:
    """Loss that trees minimize.

    `losses` maps labels, predictions and `parameter` to a loss per row; `metric` is the library's own name of its
    mean, where it computes the same. `start` is the link of the prediction before the first round, in the library's
    file, if it is another.
    """

    link: Link
    losses: Callable[[Floats, Floats, float], Floats]
    parameter: str = ""  # of the library, and its default
    default: float = 0.0
    metric: str = ""
    ranks: bool = False  # the rows of a group among each other; a row has no loss of its own
    start: Link | None = None

    def predictions(self, margins: Floats) -> Floats:
        """Return numbers (n, 1), or probabilities (n, 1) of the second class or (n, k), of margins of that shape."""
        if self.link == "log":
            numbers: Floats = np.exp(margins)
            return numbers
        if self.link == "logit":
            return _sigmoid(margins)
        return _softmax(margins) if self.link == "softmax" else margins

    @property
    def classifies(self) -> bool:
        return self.link in ("logit", "softmax")


def mean_loss(losses: Floats, weights: Floats | None) -> float:
    """Return the sum of the weighted losses over their number."""
    if weights is None:
        return float(losses.mean(dtype=np.float64))
    return float(losses @ weights) / len(losses)


def _sigmoid(margins: Floats) -> Floats:
    shares: Floats = np.exp(-np.logaddexp(0, -margins))
    return shares


def _softmax(margins: Floats) -> Floats:
    powers: Floats = np.exp(margins - margins.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


# Losses ------------------------------------------------------------------------------------------------------


def _squared_errors(labels: Floats, predictions: Floats, _: float) -> Floats:
    return np.square(predictions - labels)


def _squared_logs(labels: Floats, predictions: Floats, _: float) -> Floats:
    logs = np.log1p(np.maximum(predictions, _LEAST_NUMBER)) - np.log1p(labels)
    losses: Floats = 0.5 * np.square(logs)
    return losses


def _absolute(labels: Floats, predictions: Floats, _: float) -> Floats:
    return np.abs(predictions - labels)


def _huber(labels: Floats, predictions: Floats, delta: float) -> Floats:
    error = np.abs(predictions - labels)
    return np.where(error <= delta, 0.5 * np.square(error), delta * (error - 0.5 * delta))


def _pseudo_huber(labels: Floats, predictions: Floats, slope: float) -> Floats:
    losses: Floats = slope**2 * (np.sqrt(1 + np.square((predictions - labels) / slope)) - 1)
    return losses


def _quantile(labels: Floats, predictions: Floats, quantile: float) -> Floats:
    error = labels - predictions
    return np.where(error < 0, (quantile - 1) * error, quantile * error)


def _poisson(labels: Floats, predictions: Floats, _: float) -> Floats:
    return predictions - labels * np.log(np.maximum(predictions, _LEAST))


def _gamma(labels: Floats, predictions: Floats, _: float) -> Floats:
    safe = np.maximum(predictions, _LEAST)
    return labels / safe + np.log(safe)


def _tweedie(labels: Floats, predictions: Floats, power: float) -> Floats:
    safe = np.maximum(predictions, _LEAST)
    losses: Floats = safe ** (2 - power) / (2 - power) - labels * safe ** (1 - power) / (1 - power)
    return losses


def _two_classes(labels: Floats, predictions: Floats, _: float) -> Floats:
    return -np.log(np.maximum(np.where(labels > 0.5, predictions, 1 - predictions), _LEAST))


def _hinge(labels: Floats, predictions: Floats, _: float) -> Floats:
    shares = np.clip(predictions, _LEAST, 1 - _LEAST)
    margins = np.log(shares) - np.log1p(-shares)
    losses: Floats = np.maximum(1 - np.where(labels > 0.5, margins, -margins), 0)
    return losses


def _classes(labels: Floats, predictions: Floats, _: float) -> Floats:
    of_truth = predictions[np.arange(len(labels)), labels.astype(np.int64)]
    return -np.log(np.maximum(of_truth, _LEAST))


def _zero_losses(labels: Floats, _: Floats, __: float) -> Floats:
    return np.zeros(len(labels))


_RANKING = Objective("identity", _zero_losses, ranks=True)

LIGHTGBM: Mapping[str, Objective] = {
    "regression": Objective("identity", _squared_errors, metric="l2"),
    "regression_l1": Objective("identity", _absolute, metric="l1"),
    "huber": Objective("identity", _huber, "alpha", 0.9, "huber"),
    "quantile": Objective("identity", _quantile, "alpha", 0.9, "quantile"),
    "poisson": Objective("log", _poisson, metric="poisson"),
    "gamma": Objective("log", _gamma, metric="gamma"),
    "tweedie": Objective("log", _tweedie, "tweedie_variance_power", 1.5, "tweedie"),
    "binary": Objective("logit", _two_classes, metric="binary_logloss"),
    "multiclass": Objective("softmax", _classes, metric="multi_logloss"),
    "lambdarank": _RANKING,
    "rank_xendcg": _RANKING,
}
XGBOOST: Mapping[str, Objective] = {
    "reg:squarederror": Objective("identity", _squared_errors),
    "reg:squaredlogerror": Objective("identity", _squared_logs),
    "reg:absoluteerror": Objective("identity", _absolute),
    "reg:pseudohubererror": Objective("identity", _pseudo_huber, "huber_slope", 1.0),
    "reg:quantileerror": Objective("identity", _quantile, "quantile_alpha", 0.5),
    "count:poisson": Objective("log", _poisson),
    "reg:gamma": Objective("log", _gamma),
    "reg:tweedie": Objective("log", _tweedie, "tweedie_variance_power", 1.5),
    "binary:logistic": Objective("logit", _two_classes),
    "binary:hinge": Objective("logit", _hinge, start="identity"),
    "multi:softprob": Objective("softmax", _classes),
    "rank:ndcg": _RANKING,
    "rank:pairwise": _RANKING,
    "rank:map": _RANKING,
}
