"""Checks of large numbers that a model takes in float32: a label without a centre, values that become equal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edl import spec
from edl.features.arrays import Floats
from sqlflow_edl.analysis.checks.thresholds import MERGED
from sqlflow_edl.analysis.checks.warning import DataWarning
from sqlflow_edl.analysis.statistics import precision
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics


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
