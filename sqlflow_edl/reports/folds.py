"""Metric of the folds of a search, in words."""

from __future__ import annotations

import math

from edl import metrics
from edl.data.cells import format_count
from edl.spec import FoldValues, JobSpec
from sqlflow_edl.reports.intervals import mean_of_folds
from sqlflow_edl.reports.text import number


def describe_folds(trained: JobSpec, measured: FoldValues) -> str:
    """Describe the metric of each fold: `5 folds: rmse 2.1, 2.3, …; mean 2.2, 2 to 2.4 with 95 % confidence`."""
    split, blocks, values = trained.split, trained.rows.blocks, measured.values
    by, order = "", ""
    if split is not None and split.by in ("time", "group"):
        by = f" by {split.column}"
    if blocks and blocks.is_forward:
        values, order = values[::-1], ", the earliest first"
    ratio = trained.rows.validation / max(1, trained.rows.training)
    known = [value for value in values if value is not None]
    mean = ""
    if len(known) > 1:
        least, most = mean_of_folds(known, ratio)
        metric = metrics.by_name(measured.metric, metrics.kind_of(trained.label), exact=True)
        if min(known) >= 0:
            least = max(least, 0.0)
        if metric.higher_is_better:
            most = min(most, metric.most)
        ends = f"{number(least)} to {number(most)} with 95 % confidence"
        mean = f"; mean {number(math.fsum(known) / len(known))}, {ends}"
    return f"{len(values)} folds{by}: {measured.metric} {', '.join(map(number, values))}{order}{mean}"


def describe_trained_rows(trained: JobSpec) -> str:
    """Describe the training rows: `80 rows in each of 5 folds`, by time `200 to 1,000 rows in the 5 folds`."""
    rows, folds = trained.rows, trained.folds
    if folds == 1:
        return format_count(rows.training)
    if rows.blocks:
        sizes = sorted(rows.select_fold(fold).training for fold in range(len(rows.blocks.sizes)))
        if rows.blocks.is_forward and sizes[0] < sizes[-1]:
            return f"{sizes[0]:,} to {format_count(sizes[-1])} in the {folds} folds"
    return f"{format_count(rows.training)} in each of {folds} folds"
