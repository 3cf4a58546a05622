"""The metric of folds in words."""

from __future__ import annotations

import msgspec
import pytest

from edl import spec
from edl.spec import FoldValues, Rows, Split, ValidationBlocks
from sqlflow_edl.reports.folds import describe_folds, describe_trained_rows
from sqlflow_edl.reports.intervals import mean_of_folds
from tests.edl.programs import job_spec

BLOCKS = ValidationBlocks(100, (20,) * 5)


def describe(measured: FoldValues, split: Split | None = None, blocks: ValidationBlocks = BLOCKS) -> str:
    rows = Rows(True, 100, 80, 20, blocks=blocks)
    job = job_spec("torch", (), spec.RegressionLabel("y", 0.0, 1.0), rows)
    trained = msgspec.structs.replace(job, split=split)
    return describe_folds(trained, measured)


def test_folds_are_listed_with_the_interval_of_their_mean() -> None:
    assert describe(FoldValues("rmse", (2.0, 2.2, 1.8, 2.1, 1.9))) == (
        "5 folds: rmse 2, 2.2, 1.8, 2.1, 1.9; mean 2, 1.706 to 2.294 with 95 % confidence"
    )


def test_folds_by_time_begin_with_the_earliest() -> None:
    blocks = ValidationBlocks(100, (20, 20, 20), is_forward=True)
    said = describe(FoldValues("rmse", (1.0, 2.0, 3.0)), Split("time", "day"), blocks)
    assert said.startswith("3 folds by day: rmse 3, 2, 1, the earliest first; mean 2, 0 to ")


def test_folds_by_time_are_trained_on_more_and_more_rows() -> None:
    def described(blocks: ValidationBlocks) -> str:
        search = spec.Search((), "rmse", folds=len(blocks.sizes))
        rows = Rows(True, 100, 80, 20, blocks=blocks)
        job = job_spec("torch", (), spec.RegressionLabel("y", 0.0, 1.0), rows)
        return describe_trained_rows(msgspec.structs.replace(job, search=search))

    assert described(BLOCKS) == "80 rows in each of 5 folds"
    assert described(ValidationBlocks(80, (20, 20, 20), is_forward=True)) == "20 to 60 rows in the 3 folds"


def test_a_fold_without_a_value_counts_in_no_mean() -> None:
    said = describe(FoldValues("r2", (0.9, None, 0.99)), Split("group", "shop"))
    assert said == "3 folds by shop: r2 0.9, not defined, 0.99; mean 0.945, 0.2447 to 1 with 95 % confidence"
    assert describe(FoldValues("r2", (0.9, None))) == "2 folds: r2 0.9, not defined"


@pytest.mark.parametrize(("ratio", "half"), [(0.0, 0.196), (0.25, 0.294)])
def test_the_interval_is_wider_if_the_trainings_share_rows(ratio: float, half: float) -> None:
    """Student's t with 4 degrees of freedom is 2.776; the variance of these values is 0.025."""
    least, most = mean_of_folds((2.0, 2.2, 1.8, 2.1, 1.9), ratio)
    assert (least, most) == pytest.approx((2 - half, 2 + half), abs=1e-3)
