"""The verdict says in words how good a model is on which rows, beside a guess without a model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from edl.models.archive import Archive, read_archive
from edl.spec import Calibration, ClassLabel, ClusterLabel, Label, Residuals, Rows
from sqlflow_edl.reports.verdict import verdict
from tests.edl.models.conftest import SPEC, write

CHURNED = ClassLabel("churned", (False, True))
CONFUSION = ((1560.0, 74.0), (224.0, 142.0))  # of 2,000 rows: 366 have churned
OF_CLASSES = {"accuracy": 0.851, "precision": 142 / 216, "recall": 142 / 366}


def archive(folder: Path, label: Label | None = None, rows: int = 2000, **parts: Any) -> Archive:
    spec = msgspec.structs.replace(
        SPEC, label=label or SPEC.label, rows=Rows(True, 10_000 + rows, 10_000, rows)
    )
    return read_archive(write(folder / "m.zip", spec=spec, **parts))


def test_a_classifier_is_compared_with_always_the_most_frequent_class(tmp_path: Path) -> None:
    found = archive(tmp_path, CHURNED, metrics=OF_CLASSES, uncertainty=Calibration(confusion=CONFUSION))
    assert verdict(found) == (
        "Right in 85.1 % of 2,000 validation rows; always FALSE: 81.7 %. It finds 38.8 % of TRUE; 65.7 % of those that "
        "it calls TRUE are TRUE."
    )


def test_one_that_is_no_better_is_called_so(tmp_path: Path) -> None:
    metrics = {"accuracy": 0.817, "precision": None, "recall": 0.0}
    found = archive(tmp_path, CHURNED, metrics=metrics, uncertainty=Calibration(confusion=CONFUSION))
    assert verdict(found).endswith("So it is no more often right than always FALSE. It finds no row of TRUE.")


def test_rows_without_the_second_class_are_said_to_have_none(tmp_path: Path) -> None:
    metrics = {"accuracy": 0.9, "precision": 0.0, "recall": 0.0}
    confusion = Calibration(confusion=((90.0, 10.0), (0.0, 0.0)))
    found = archive(tmp_path, CHURNED, metrics=metrics, uncertainty=confusion)
    assert verdict(found).endswith("So it is less often right than always FALSE. None of the rows is TRUE.")


def test_one_that_is_worse_may_still_rank(tmp_path: Path) -> None:
    metrics = {"accuracy": 0.81, "precision": 0.0, "recall": 0.0, "auc": 0.75}
    found = archive(tmp_path, CHURNED, metrics=metrics, uncertainty=Calibration(confusion=CONFUSION))
    assert verdict(found).endswith(
        "So it is less often right than always FALSE. It finds no row of TRUE. Yet its probabilities put rows of "
        "TRUE above the others (auc 0.75): WITH predict.threshold = f1 finds some of them."
    )


@pytest.mark.parametrize(
    ("auc", "confusion", "is_said"),
    [
        (0.05, CONFUSION, True),
        (0.45, CONFUSION, False),  # little below a guess
        (0.05, ((2.0, 1.0), (1.0, 1.0)), False),  # by chance, on so few rows
    ],
)
def test_exchanged_classes_are_suspected_where_the_ranking_is_reversed(
    tmp_path: Path, auc: float, confusion: tuple[tuple[float, ...], ...], *, is_said: bool
) -> None:
    metrics = {**OF_CLASSES, "auc": auc}
    found = archive(tmp_path, CHURNED, metrics=metrics, uncertainty=Calibration(confusion=confusion))
    assert ("TRUE below the others (auc 0.05): are the two classes exchanged" in verdict(found)) is is_said


def test_of_many_classes_there_is_no_confusion_to_guess_from(tmp_path: Path) -> None:
    label = ClassLabel("word", tuple(f"w{number}" for number in range(30)))
    assert (
        verdict(archive(tmp_path, label, metrics={"accuracy": 0.4}))
        == "Right in 40.0 % of 2,000 validation rows."
    )


def test_a_regression_is_compared_with_always_the_mean(tmp_path: Path) -> None:
    """The guess has the error that follows from R²: the error of the mean of the same rows."""
    rng = np.random.default_rng(1)
    truth = rng.normal(50_000, 4310, 2000)
    errors = rng.normal(0, 1900, 2000)
    rmse, r2 = math.sqrt(np.mean(errors**2)), 1 - np.sum(errors**2) / np.sum((truth - truth.mean()) ** 2)
    residuals = Residuals(2000, tuple(np.sort(np.abs(errors))[1::2].tolist()))
    found = archive(tmp_path, metrics={"rmse": rmse, "r2": float(r2)}, uncertainty=residuals)
    assert verdict(found) == (
        f"Off by {rmse:,.0f} (root mean square) on 2,000 validation rows; always their mean: {truth.std():,.0f}. "
        f"Half of the rows are off by at most {np.sort(np.abs(errors))[999]:,.0f}."
    )


@pytest.mark.parametrize(
    ("r2", "said"), [(-0.2, "So it is worse than always the mean."), (1.0, "on 2,000 validation rows.")]
)
def test_a_regression_without_a_guess_or_a_worse_one_says_so(tmp_path: Path, r2: float, said: str) -> None:
    assert verdict(archive(tmp_path, metrics={"rmse": 3.0, "r2": r2})).endswith(said)


def test_clusters_have_none(tmp_path: Path) -> None:
    assert verdict(archive(tmp_path, ClusterLabel(3), metrics={"inertia": 1.0})) == ""
