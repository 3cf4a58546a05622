"""Intervals of metrics, against drawn rows."""

from __future__ import annotations

import numpy as np
import pytest

from edl.metrics import AUC
from sqlflow_edl.reports.intervals import hanley_mcneil

DRAWS = 400


def test_the_interval_of_an_auc_contains_the_true_one_nearly_as_often_as_it_says() -> None:
    draw, metric = np.random.default_rng(5), AUC(exact=True)
    inside, outside, expected = 60, 140, 0.8144533  # of two normal distributions 1.266 deviations apart
    hits = 0
    for _ in range(DRAWS):
        scores = np.concatenate([draw.normal(1.266, 1, inside), draw.normal(0, 1, outside)])
        labels = np.repeat([1, 0], [inside, outside])
        odds = 1 / (1 + np.exp(-scores))
        auc = metric.result(metric.update((), labels, np.stack([1 - odds, odds], axis=1)))
        least, most = hanley_mcneil(auc, inside, outside)
        hits += least <= expected <= most
    assert hits / DRAWS == pytest.approx(0.95, abs=0.03)


def test_a_certain_auc_has_an_interval_without_width() -> None:
    assert hanley_mcneil(1.0, 10, 10) == (1.0, 1.0)
