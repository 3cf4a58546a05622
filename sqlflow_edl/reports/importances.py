"""Importance of the columns of a model: by its search, and of trees by their splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edl.data.cells import format_count
from edl.models.archive import Archive
from edl.spec import TREES, JobSpec, matrix_columns
from sqlflow_edl.reports.text import value


@dataclass(frozen=True, slots=True)
class ColumnImportance:
    """Importance of a column of trees. gain: its share of the improvement by all splits. splits: on it."""

    column: str
    gain: float
    splits: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Share of each column of a model in the importance of all, the largest first. by: how it was measured."""

    by: str
    columns: Mapping[str, float]


def importances(archive: Archive) -> list[ColumnImportance]:
    """Return the columns of trees, the most important first; none for other models."""
    spec = archive.spec
    if spec.framework not in TREES:
        return []
    weights = archive.weights()
    features = spec.features if spec.forecast is None else spec.inputs["features"]  # without the scale
    names = [names for feature in features for names in matrix_columns(feature)]
    by_kind: dict[str, dict[str, float]] = {}
    for kind in ("gain", "split"):
        values = by_kind[kind] = dict.fromkeys(spec.columns, 0.0)
        for columns, weight in zip(names, weights.get(kind, [0.0] * len(names)), strict=True):
            for column in columns:
                values[column] += float(weight) / len(columns)
    total = sum(by_kind["gain"].values()) or 1.0
    ordered = sorted(by_kind["gain"].items(), key=lambda pair: -pair[1])
    return [ColumnImportance(column, gain / total, by_kind["split"][column]) for column, gain in ordered]


def shares(archive: Archive) -> Shares | None:
    """Return the shares that the search of a model measured, else the shares of trees by their splits."""
    stored = archive.importances
    if stored is not None:
        rows = format_count(stored.rows, f"{stored.measured_on} row")
        of = unit(archive.spec, is_margin=False)
        return Shares(f"mean size of the Shapley values in {rows}, in {of}", stored.shares)
    of_trees = importances(archive)
    if not of_trees:
        return None
    return Shares(
        "share of the gain of all splits", {importance.column: importance.gain for importance in of_trees}
    )


def unit(spec: JobSpec, *, is_margin: bool) -> str:
    """Name the unit of the contributions of columns. is_margin: they add up to the margin of trees."""
    label = spec.label
    if label.group:
        return "the score of a row"
    if not label.has_classes:
        takes_logarithm = is_margin and spec.loss.name in _OF_LOGARITHMS
        return f"the logarithm of {label.column}" if takes_logarithm else f"the unit of {label.column}"
    explained = value(label.classes[1]) if label.is_binary else "the predicted class"
    return f"{'log-odds' if is_margin else 'the probability'} of {explained}"


_OF_LOGARITHMS = ("poisson", "gamma", "tweedie")  # losses
