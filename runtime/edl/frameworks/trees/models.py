"""Descriptions of models of boosted trees, to return from a program's `custom_model`.

    def custom_model():
        return LightGBM(FEATURES, objective="regression", learning_rate=0.1, num_leaves=31)

All keywords are the library's own training parameters. A round of boosting is an epoch of the job, so the number of
rounds and early stopping are settings of the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edl.features import Features
from edl.spec import category_of, is_category, width


class Trees:
    """Model of boosted trees over the columns of one matrix.

    `categorical` are the positions of the matrix's columns that hold unordered ids. `class_weights` are weights of
    the classes in training, in the order of the label's classes; empty for equal ones.
    """

    def __init__(self, features: Features, *, class_weights: Iterable[float] = (), **params: Any) -> None:
        self.width = features.width
        self.categorical = tuple(_categorical(features))
        self.class_weights = tuple(class_weights)
        self.params = params

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.params.items())})"
        )


class LightGBM(Trees):
    """Model of LightGBM."""


class XGBoost(Trees):
    """Model of XGBoost."""


def _categorical(features: Features) -> Iterable[int]:
    position = 0
    for feature in features.columns:
        if feature.is_for_trees and is_category(category_of(feature)) and not feature.is_ordered:
            yield position
        position += width(feature)
