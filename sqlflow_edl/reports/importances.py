"""Importance of the columns of trees, by the splits in the model."""

from __future__ import annotations

from dataclasses import dataclass

from edl.models.archive import Archive
from edl.spec import TREES, matrix_columns


@dataclass(frozen=True, slots=True)
class Importance:
    """Importance of a column. gain: its share of the improvement by all splits. splits: on it."""

    column: str
    gain: float
    splits: float


def importances(archive: Archive) -> list[Importance]:
    """Return the columns of trees, the most important first; none for other models."""
    spec = archive.spec
    if spec.framework not in TREES:
        return []
    weights = archive.weights()
    features = spec.features if spec.forecast is None else spec.inputs["features"]  # without the scale
    names = [names for feature in features for names in matrix_columns(feature)]
    found: dict[str, dict[str, float]] = {}
    for kind in ("gain", "split"):
        values = found[kind] = dict.fromkeys(spec.columns, 0.0)
        for columns, value in zip(names, weights.get(kind, [0.0] * len(names)), strict=True):
            for column in columns:
                values[column] += float(value) / len(columns)
    total = sum(found["gain"].values()) or 1.0
    ordered = sorted(found["gain"].items(), key=lambda pair: -pair[1])
    return [Importance(column, gain / total, found["split"][column]) for column, gain in ordered]
