"""Statistics of categories, out of fold for training rows, against their formulas by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import UNSET

from edl import features as fc
from edl.errors import SpecError
from edl.features.folds import FOLD, FoldReader, Folds, keep_folds
from edl.spec import Rows, ValidationBlocks

CITY = fc.vocabulary("city", ["oslo", "rome"])


def values(feature: Any, cities: Sequence[str | None], **columns: Any) -> Any:
    batch = pa.record_batch({"city": pa.array(cities, pa.string()), **columns})
    return fc.Features(feature).transform(batch)["dense"]


def test_a_category_becomes_its_mean_label_smoothed_towards_the_mean_of_all_rows() -> None:
    """Rows of two folds: oslo 4 + 2, rome 1 + 1, NULL 0 + 2; their labels add up to 12 + 3, 9 + 0, 0 + 6."""
    found = fc.target_mean(
        CITY, smoothing=2, counts=[4, 1, 0, 2, 1, 2], sums=[12, 9, 0, 3, 0, 6], folds=2, rows=10, scaled=False
    )
    prior = (15 + 9 + 6) / 10
    wanted = [(15 + 2 * prior) / 8, (9 + 2 * prior) / 4, prior, prior]
    assert values(found, ["oslo", "rome", None, "lima"])[:, 0].tolist() == pytest.approx(wanted)


def test_null_and_other_values_are_categories_if_the_encoding_says_so() -> None:
    """Rows: oslo 6, rome 2, NULL 2; then others 4, which have a mean of their own."""
    city = fc.vocabulary("city", ["oslo", "rome"], "other")
    cities = ["oslo", "rome", None, "lima"]

    def means(counts: list[float], sums: list[float]) -> list[float]:
        found = fc.target_mean(city, 2, 1, counts, sums, 1, 10, scaled=False, nulls=True)
        return values(found, cities)[:, 0].tolist()

    prior = 30 / 10
    oslo, rome, null = (15 + 2 * prior) / 8, (9 + 2 * prior) / 4, (6 + 2 * prior) / 4
    known = (6 * oslo + 2 * rome) / 8
    assert means([6, 2, 2, 0], [15, 9, 6, 0]) == pytest.approx([oslo, rome, null, known])
    assert means([6, 2, 2, 4], [15, 9, 6, 12])[3] == pytest.approx((12 + 2 * 3) / 6)
    counted = fc.log_count(city, counts=[7, 3, 5, 0], scaled=False, nulls=True)
    wanted = [math.log(8), math.log(4), math.log(6), math.log(4)]
    assert values(counted, cities)[:, 0].tolist() == pytest.approx(wanted), "as the rarest one"


def test_a_training_row_has_the_statistics_of_the_other_folds_and_their_prior() -> None:
    found = fc.target_mean(
        CITY, smoothing=2, counts=[4, 1, 0, 2, 1, 2], sums=[12, 9, 0, 3, 0, 6], folds=2, rows=10, scaled=False
    )
    in_first, in_second, of_all = (3 + 0 + 6) / 5, (12 + 9) / 5, 30 / 10
    wanted = [(3 + 2 * in_first) / 4, (12 + 2 * in_second) / 6, (15 + 2 * of_all) / 8, in_first]
    got = values(found, ["oslo", "oslo", "oslo", None], **{FOLD: [0b01, 0b10, 0, 0b01]})
    assert got[:, 0].tolist() == pytest.approx(wanted)


def test_several_classes_have_a_share_for_each_but_the_last() -> None:
    found = fc.target_mean(
        CITY, smoothing=0, outputs=2, counts=[4, 2, 0], sums=[1, 1, 0, 2, 0, 0], folds=1, rows=6, scaled=False
    )
    np.testing.assert_allclose(
        values(found, ["oslo", "rome", None]), [[1 / 4, 2 / 4], [1 / 2, 0], [2 / 6, 2 / 6]]
    )


def test_scaled_means_have_mean_zero_and_deviation_one_over_the_training_rows() -> None:
    counts, sums = [4, 1, 0, 2, 1, 2], [12, 9, 0, 3, 0, 6]
    found = fc.target_mean(CITY, smoothing=2, counts=counts, sums=sums, folds=2, rows=10)
    rows = ["oslo"] * 6 + ["rome"] * 2 + [None] * 2
    plain = values(fc.target_mean(CITY, 2, 1, counts, sums, 2, 10, scaled=False), rows)[:, 0]
    np.testing.assert_allclose(values(found, rows)[:, 0], (plain - 3.0) / plain.std(), rtol=1e-6)


def test_a_category_becomes_the_logarithm_of_its_rows() -> None:
    found = fc.log_count(CITY, counts=[7, 3, 5], scaled=False)
    wanted = [math.log(8), math.log(4), 0.0, 0.0]
    assert values(found, ["oslo", "rome", None, "lima"])[:, 0].tolist() == pytest.approx(wanted)


def test_a_scaled_count_has_mean_zero_and_deviation_one_over_the_training_rows() -> None:
    got = values(fc.log_count(CITY, counts=[7, 3, 5]), ["oslo"] * 7 + ["rome"] * 3 + [None] * 5)
    assert got.mean() == pytest.approx(0, abs=1e-6)
    assert got.std() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("feature", [fc.target_mean(CITY, 10), fc.log_count(CITY)])
def test_a_feature_without_statistics_says_where_they_come_from(feature: Any) -> None:
    with pytest.raises(SpecError, match="come from the rows that a statement pins"):
        values(feature, ["oslo"])


class _Numbers:
    """Reader of ten rows, in batches of three."""

    rows = 10
    schema = pa.schema({"n": pa.int64()})

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        for first in range(start, end, 3):
            yield pa.record_batch({"n": list(range(first, min(first + 3, end)))})


def test_training_rows_are_in_folds_by_their_place_and_validation_rows_in_none() -> None:
    reader = FoldReader(_Numbers(), Folds(3, 7), Rows(True, 10, 7, 3))
    left_out = [bits for batch in reader.read(1, 10) for bits in batch.column(FOLD).to_pylist()]
    assert left_out == [2, 4, 1, 2, 4, 1, 0, 0, 0]


BLOCKS = {
    "equal blocks": (6, ValidationBlocks(10, (3, 3, 3))),
    "blocks of different sizes": (6, ValidationBlocks(10, (2, 5, 3))),
    "by time": (8, ValidationBlocks(10, (2, 3, 2), is_forward=True)),
    "by time with a gap": (12, ValidationBlocks(10, (3, 3, 2), is_forward=True, gaps=(1, 2, 0))),
}


@pytest.mark.parametrize("fold", [0, 1, 2])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_no_row_of_a_search_has_statistics_of_rows_that_its_training_does_not_read(
    blocks: str, fold: int
) -> None:
    number, of_search = BLOCKS[blocks]
    folds, rows = Folds(number, 10, of_search), Rows(True, 12, 7, 3, blocks=of_search).select_fold(fold)
    of_rows = folds.find_folds(np.arange(10))
    pinned = [place for start, end in rows.list_parts() for place in range(start, end)]
    trained = set(pinned[: rows.training])
    for place, bits in enumerate(folds.list_left_out(rows, 0, rows.total).tolist()):
        used = set(np.flatnonzero(keep_folds(number, bits)[of_rows]).tolist())
        if place >= rows.training + rows.validation:
            assert used == set(range(10))  # test rows, as rows to predict
        elif place >= rows.training:
            assert used <= trained
            assert trained - used <= {0}, "a row before equal blocks is in the last one"
        else:
            assert pinned[place] not in used
            assert used <= trained


@pytest.mark.parametrize("blocks", [None, ValidationBlocks(10, (3, 4, 3))], ids=["one", "three"])
def test_rows_that_a_refit_trains_on_in_addition_have_the_statistics_of_all_folds(
    blocks: ValidationBlocks | None,
) -> None:
    """A search had statistics of its first ten rows; the model is trained once more on all twelve."""
    folds = Folds(6, 10, blocks)
    of_rows = folds.find_folds(np.arange(10))
    rows = Rows(True, 12, 12, 0, blocks=UNSET if blocks is None else blocks)
    for row, bits in enumerate(folds.list_left_out(rows, 0, 12).tolist()):
        used = keep_folds(6, bits)[of_rows]
        assert not row < 10 or not used[row]
        assert used.sum() == (10 - (of_rows == of_rows[row]).sum() if row < 10 else 10)


GROUPS = {"counts": [4.0, 2.0, 2.0], "means": [10.0, 20.0, 30.0]}  # oslo, rome, NULL; the mean of all is 17.5
CITIES = ["oslo", "rome", None, "lima"]
AMOUNTS = pa.array([12.0, None, 25.0, 7.5])


@pytest.mark.parametrize(("nulls", "of_null"), [(True, 30.0), (UNSET, 17.5)])
def test_a_category_becomes_the_mean_of_a_number_in_its_group(nulls: Any, of_null: float) -> None:
    found = fc.group_mean(CITY, "amount", **GROUPS, scaled=False, nulls=nulls)
    unseen = of_null if nulls is True else 17.5  # without an id of its own it is as NULL
    assert values(found, CITIES, amount=AMOUNTS)[:, 0].tolist() == [10.0, 20.0, of_null, unseen]
    of_cities = fc.group_mean(
        fc.vocabulary("city", ["oslo", "rome"], "other"),
        "amount",
        counts=[4, 2, 2, 0],
        means=[10, 20, 30, 0],
        scaled=False,
        nulls=nulls,
    )
    assert values(of_cities, CITIES, amount=AMOUNTS)[3, 0] == 17.5


def test_a_difference_to_the_mean_of_a_group_is_missing_where_the_number_is() -> None:
    found = fc.group_mean(CITY, "amount", difference=True, **GROUPS, scaled=False, nulls=True)
    oslo, rome, null, lima = values(found, CITIES, amount=AMOUNTS)[:, 0].tolist()
    assert (oslo, null, lima) == (2.0, -5.0, 7.5 - 30.0)
    assert math.isnan(rome)


def test_means_of_groups_and_differences_for_networks_are_scaled() -> None:
    means = values(fc.group_mean(CITY, "amount", **GROUPS, deviation=5.0, nulls=True), CITIES, amount=AMOUNTS)
    assert means[:, 0].tolist() == [-1.5, 0.5, 2.5, 2.5]
    found = fc.group_mean(CITY, "amount", difference=True, **GROUPS, deviation=5.0, nulls=True)
    np.testing.assert_allclose(values(found, CITIES, amount=AMOUNTS)[:, 0], [0.4, 0.0, -1.0, -4.5], rtol=1e-6)
    equal = fc.group_mean(CITY, "amount", difference=True, **GROUPS)
    assert not values(equal, CITIES, amount=AMOUNTS).any(), "without deviation"
