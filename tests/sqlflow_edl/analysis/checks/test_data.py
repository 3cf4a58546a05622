"""Warnings from the rows of a training: ids, constants, copies of the label, single predictors, validation rows."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from sqlflow_edl.analysis.checks import labels
from sqlflow_edl.analysis.checks.data import DataChecks, is_id
from sqlflow_edl.analysis.checks.duplicates import Duplicates
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want, collect

ROWS = 2000
RANDOM = np.random.default_rng(7)
CLASSES = RANDOM.integers(0, 3, ROWS)
INCOME = RANDOM.lognormal(10, 1, ROWS)


def statistics(values: Sequence[object] | np.ndarray) -> ColumnStatistics:
    batches = pa.table({"x": pa.array(values)}).to_batches(max_chunksize=500)
    return collect(batches, {"x": Want.UNIQUE | Want.MOMENTS}, seed=0)["x"]


def warnings(
    columns: dict[str, np.ndarray | list[str]],
    label: np.ndarray | list[str],
    *,
    named: Collection[str] = (),
    validation: int = 0,
    loss: spec.Component | None = None,
    unused: Collection[str] = (),
) -> list[str]:
    """Return the warnings about the columns; the last `validation` rows are the validation rows.

    unused: columns that no feature reads. loss: huber for numbers and cross_entropy for classes if it is None.
    """
    table = pa.table({**columns, "y": label})
    training = len(table) - validation
    numeric = pa.types.is_floating(table["y"].type)
    wants = dict.fromkeys(table.column_names, Want.UNIQUE | Want.MOMENTS | Want.COUNTS)
    checks = DataChecks("y", list(columns), Schema(table.schema), seed=0)
    if validation:
        checks.hold_out(table.slice(training).to_batches(max_chunksize=300))
    found = collect(checks.watch(table.slice(0, training).to_batches(max_chunksize=300)), wants, seed=0)
    classes = tuple(sorted(set(table["y"].to_pylist())))
    of_label = spec.RegressionLabel("y", 0.0, 1.0) if numeric else spec.ClassLabel("y", classes)
    features = tuple(spec.Standardize(name, 0.0, 1.0) for name in columns if name not in unused)
    job = spec.JobSpec(
        "train", "", spec.Query("", "", ()), spec.Rows(False, training, training), "torch", spec.Component("DNN"),
        {"features": features}, of_label, spec.Component("adam"),
        loss or spec.Component("huber" if numeric else "cross_entropy"), (),
    )  # fmt: skip
    return [str(each) for each in checks.warnings(found, job, named)]


# Ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", np.arange(ROWS)),
        ("n", RANDOM.permutation(ROWS) + 1),
        ("n", np.arange(ROWS) * 3 + 1_000_000),
        ("customer_id", RANDOM.choice(10**12, ROWS, replace=False)),
        ("CustomerID", RANDOM.choice(10**12, ROWS, replace=False)),
        ("n", [f"c{i}" for i in range(ROWS)]),
        ("n", [None, *range(ROWS)]),
    ],
)
def test_a_column_that_only_tells_rows_apart_is_an_id(name: str, values: np.ndarray) -> None:
    assert is_id(name, statistics(values))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", [*range(ROWS), 5]),
        ("id", RANDOM.normal(size=ROWS)),
        ("price", RANDOM.choice(10**12, ROWS, replace=False)),
        ("id", range(19)),
        ("paid", RANDOM.choice(10**12, ROWS, replace=False)),
        ("n", ["a", *(f"c{i}" for i in range(ROWS)), "a"]),
    ],
)
def test_a_quantity_or_a_repeated_value_is_no_id(name: str, values: np.ndarray) -> None:
    assert not is_id(name, statistics(values))


@pytest.mark.soak
def test_one_repetition_is_found_far_from_the_first() -> None:
    values = np.arange(100_000)
    values[-1] = values[0]
    assert not is_id("id", statistics(values))


def test_an_id_that_is_named_is_warned_about() -> None:
    [said] = warnings({"k": np.arange(ROWS)}, RANDOM.integers(0, 2, ROWS), named={"k"})
    assert said.startswith(
        "k is different in every row, as an id is, and is a feature because COLUMN names it"
    )


def test_a_constant_that_is_named_is_warned_about() -> None:
    [said] = warnings({"k": np.ones(ROWS)}, CLASSES, named={"k"})
    assert said == "k is the same in every training row; remove it from COLUMN: it carries no information"


# Predictors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (CLASSES.astype(np.float64), "x is a copy of the label y"),
        ([str(each) for each in CLASSES], "x is a copy of the label y"),
        ([["red", "green", "blue"][each] for each in CLASSES], "x is the label y under other names"),
        (CLASSES + RANDOM.uniform(0, 0.9, ROWS), "x alone predicts y almost perfectly"),
        ([f"{each}-{i % 5}" for i, each in enumerate(CLASSES)], "x alone predicts y almost perfectly"),
    ],
)
def test_a_column_that_gives_the_class_away_is_warned_about(values: np.ndarray, said: str) -> None:
    [found] = warnings({"x": values}, CLASSES)
    assert found.startswith(said)
    assert found.endswith("if it is known only when y is, leave it out of the SELECT")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (INCOME.copy(), "x is a copy of the label y"),
        ([repr(each) for each in INCOME.tolist()], "x is a copy of the label y"),
        (INCOME * 100 + 3, "x alone predicts y almost perfectly"),
        (INCOME.round(), "x alone predicts y almost perfectly"),
    ],
)
def test_a_column_that_gives_the_number_away_is_warned_about(values: np.ndarray, said: str) -> None:
    assert any(each.startswith(said) for each in warnings({"x": values}, INCOME))


def test_a_curve_of_the_label_is_seen() -> None:
    label = RANDOM.uniform(0, 6, ROWS)
    assert warnings({"x": np.exp(label)}, label)[0].startswith("x alone predicts y")


@pytest.mark.parametrize(
    "values",
    [
        RANDOM.normal(size=ROWS),
        CLASSES + RANDOM.normal(0, 0.3, ROWS),
        RANDOM.integers(0, 5, ROWS),
        [f"id{i}" for i in RANDOM.integers(0, 10**5, ROWS)],
        np.where(RANDOM.uniform(size=ROWS) < 0.05, (CLASSES + 1) % 3, CLASSES),
    ],
)
def test_a_good_column_or_an_id_is_no_perfect_predictor(values: np.ndarray) -> None:
    assert warnings({"x": values}, CLASSES) == []


CHURNED = RANDOM.uniform(size=ROWS) < 0.18
SINCE = [
    f"{i % 28 + 1:02}.{i % 12 + 1:02}.{2000 + i % 337 % 20}" if each else None
    for i, each in enumerate(CHURNED)
]


@pytest.mark.parametrize(
    "values",
    [
        [f"moved, see letter {i}" if each else None for i, each in enumerate(CHURNED)],
        [f"moved, see letter {i // 2}" if each else None for i, each in enumerate(CHURNED)],
        SINCE,
        [
            datetime.date(2020, 1, 1) + datetime.timedelta(i % 999) if each else None
            for i, each in enumerate(CHURNED)
        ],
        [RANDOM.uniform() if each else None for each in CHURNED],
        [None if each else RANDOM.integers(0, 9) for each in CHURNED],
    ],
)
def test_a_column_that_is_filled_for_one_class_alone_is_warned_about(values: list[object]) -> None:
    *_, said = warnings({"x": values}, CHURNED)  # others are about an id, and about dates in texts
    assert said == (
        "whether x is NULL alone predicts y almost perfectly (score 1.0000 of 1); if it is known only when y is, leave "
        "it out of the SELECT"
    )


def test_texts_that_differ_in_each_row_of_a_class_and_are_blank_in_others_are_warned_about() -> None:
    [said] = warnings({"x": [f"letter {i}" if each else "-" for i, each in enumerate(CHURNED)]}, CHURNED)
    assert said.startswith("x alone predicts y almost perfectly")


def test_a_text_that_is_left_out_and_known_for_one_class_alone_is_warned_about() -> None:
    columns = {
        "note": [f"letter {i}" if each else None for i, each in enumerate(CHURNED)],
        "code": [f"c{i}x" for i in range(ROWS)],
        "x": RANDOM.normal(size=ROWS),
    }
    [said] = warnings(columns, CHURNED, unused=("note", "code"))
    assert said == (
        "whether note is NULL alone predicts y almost perfectly (score 1.0000 of 1); the model does not use it; leave "
        "it out of the SELECT, too, if it is known only when y is"
    )


def test_a_number_that_is_known_for_one_side_of_a_label_of_numbers_is_warned_about() -> None:
    label = np.where(CHURNED, RANDOM.normal(9, 0.1, ROWS), RANDOM.normal(0, 0.1, ROWS))
    [said] = warnings({"x": [RANDOM.uniform() if each else None for each in CHURNED]}, label)
    assert said.startswith("whether x is NULL alone predicts y ")


@pytest.mark.parametrize("rare", [0.5, 0.18, 0.05])
def test_a_column_equal_to_the_label_in_99_percent_of_the_rows_is_warned_about_more_softly(
    rare: float,
) -> None:
    random = np.random.default_rng(3)
    label = random.uniform(size=ROWS) < rare
    [said] = warnings({"x": np.where(random.uniform(size=ROWS) < 0.01, ~label, label)}, label)
    assert said.startswith("x alone predicts y unusually well (score 0.9")
    [said] = warnings({"x": np.where(label, 2.0, 0.0) + random.uniform(0, 2.04, size=ROWS)}, label)
    assert said.startswith("x alone predicts y unusually well (score 0.9")


@pytest.mark.parametrize("rare", [0.18, 0.05, 0.01])
def test_values_and_nulls_that_have_nothing_to_do_with_a_rare_class_are_not(rare: float) -> None:
    random = np.random.default_rng(4)
    label = random.uniform(size=ROWS) < rare
    columns = {
        "a": np.where(random.uniform(size=ROWS) < 0.98, None, "x"),
        "b": [f"note {i}" if random.uniform() < 0.5 else None for i in range(ROWS)],
        "c": [f"zip {i}" for i in random.integers(0, ROWS, ROWS)],
        "d": [random.normal() if random.uniform() < 0.9 else None for _ in range(ROWS)],
        "e": random.uniform(size=ROWS) < 0.95,
        "f": label + random.normal(0, 0.4, ROWS),
    }
    assert not [each for each in warnings(columns, label) if "alone" in each]


def test_a_time_near_which_labels_are_alike_is_no_predictor() -> None:
    at = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i) for i in range(ROWS)]
    days = np.sin(np.arange(ROWS) / 12) * 8 + RANDOM.normal(0, 0.3, ROWS)
    assert warnings({"x": at}, days) == []
    assert warnings({"x": at}, np.arange(ROWS) // 40 % 2 == 0) == []


def test_a_rare_class_makes_no_column_a_predictor() -> None:
    label = np.zeros(ROWS, dtype=np.int64)
    label[::100] = 1
    found = warnings({"x": RANDOM.integers(0, 50, ROWS), "z": RANDOM.normal(size=ROWS)}, label)
    assert not any("predict" in each and "y almost" in each for each in found)


def test_a_table_sorted_by_the_label_makes_no_column_a_predictor() -> None:
    assert warnings({"x": RANDOM.integers(0, 3, ROWS)}, np.sort(CLASSES)) == []


# Validation rows -----------------------------------------------------------------------------------------


def test_rows_on_both_sides_are_counted() -> None:
    a, b = RANDOM.normal(size=ROWS), RANDOM.integers(0, 9, ROWS)
    a[-50:], b[-50:] = a[:50], b[:50]
    [said] = warnings({"a": a, "b": b}, RANDOM.integers(0, 2, ROWS), validation=200)
    assert said.startswith("50 of 200 validation rows (25.0 %) have the same features as a training row")


def test_alike_rows_of_few_values_are_no_copies() -> None:
    columns = {"a": RANDOM.integers(0, 5, ROWS), "b": RANDOM.integers(0, 5, ROWS)}
    assert warnings(columns, RANDOM.integers(0, 2, ROWS), validation=200) == []


def test_an_id_that_is_no_feature_does_not_hide_copies() -> None:
    values = {"a": np.arange(100) % 50 * 1.5, "b": np.arange(100) % 50, "id": np.arange(100)}
    table = pa.table(values)
    duplicates = Duplicates(list(values))
    duplicates.hold_out(table.slice(50).to_batches()[0])
    duplicates.add(table.slice(0, 40).to_batches()[0])
    assert duplicates.rows == 50
    assert duplicates.found(["a", "b"]) == 40
    assert duplicates.found(["a", "b", "id"]) == 0


def test_values_are_compared_by_what_they_mean() -> None:
    duplicates = Duplicates(["a", "t"])
    duplicates.hold_out(pa.record_batch({"a": pa.array([1, None], pa.int32()), "t": ["x", "y"]}))
    with_nan = pa.array([1.0, float("nan")])
    duplicates.add(pa.record_batch({"a": with_nan, "t": pa.array(["x", "y"]).dictionary_encode()}))
    assert duplicates.found(["a", "t"]) == 2


@pytest.mark.parametrize(
    ("held_out", "said"),
    [
        ([0] * 20, "all 20 validation rows have the same class, 0"),
        ([0, 1] * 10, "no validation row is of the class 2"),
    ],
)
def test_classes_that_no_validation_row_has_are_named(held_out: list[int], said: str) -> None:
    label = np.concatenate((CLASSES[:300], held_out))
    [found] = warnings({"x": RANDOM.normal(size=320)}, label, validation=20)
    assert found.startswith(said)


def test_a_class_of_validation_rows_alone_is_named() -> None:
    label = np.concatenate((CLASSES[:300], [0, 1, 2, 9]))
    [found] = warnings({"x": RANDOM.normal(size=304)}, label, validation=4)
    assert found.startswith("only validation rows are of the class 9, which the model cannot learn")


def test_a_number_that_is_the_same_in_all_validation_rows_is_named() -> None:
    label = np.concatenate((INCOME[:300], np.ones(5)))
    [found] = warnings({"x": RANDOM.normal(size=305)}, label, validation=5)
    assert found.startswith("y is the same in all 5 validation rows")


def test_validation_rows_with_numbers_far_from_the_others_are_said() -> None:
    label = RANDOM.normal(0, 1, 600)
    label[500:] += 0.9
    [found] = warnings({"x": RANDOM.normal(size=600)}, label, validation=100)
    assert found.startswith("the mean of y is ")
    assert found.endswith(
        "the 100 rows held out are unlike the others; validate on rows like those that are to be predicted"
    )


def test_validation_rows_that_differ_by_chance_or_a_little_are_not_said() -> None:
    random = np.random.default_rng(3)  # of its own: other tests may come first
    few = np.r_[random.normal(0, 1, 600), random.normal(0.7, 1, 12)]
    assert warnings({"x": random.normal(size=612)}, few, validation=12) == []
    some = np.r_[np.arange(600) % 5 == 0, np.arange(300) % 7 == 0]
    assert warnings({"x": random.normal(size=900)}, some, validation=300) == []


# Labels --------------------------------------------------------------------------------------------------


def rare(every: int) -> np.ndarray:
    return (np.arange(ROWS) % every == 0).astype(np.int64)


def test_a_class_that_nearly_all_rows_have_is_named_with_what_helps() -> None:
    [said] = warnings({"x": RANDOM.normal(size=ROWS)}, rare(40))
    assert said == (
        "97.5 % of the training rows are of the class 0, and to predict it always is right as often, so accuracy says "
        "little; compare auc and f1; train.class_weights = balanced gives each class the same weight, "
        "predict.threshold = f1 another threshold"
    )


@pytest.mark.parametrize(
    ("label", "weights"),
    [(rare(19), {}), (rare(40), {"class_weights": (1.0, 40.0)})],
)
def test_classes_that_are_not_that_rare_or_are_weighted_are_not(
    label: np.ndarray, weights: dict[str, tuple[float, ...]]
) -> None:
    loss = spec.Component("cross_entropy", weights)
    assert warnings({"x": RANDOM.normal(size=ROWS)}, label, loss=loss) == []


@pytest.mark.parametrize("weights", [{}, {"class_weights": (1.0, 40.0)}])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "only 1 row of 2,000 is of the class TRUE: next to nothing can be learned or measured of it"),
        (9, "only 9 rows of 2,000 are of the class TRUE: next to nothing can be learned or measured of it"),
    ],
)
def test_a_class_of_a_few_rows_is_named_whatever_its_weight(
    number: int, said: str, weights: dict[str, tuple[float, ...]]
) -> None:
    label = np.arange(ROWS) < number
    loss = spec.Component("cross_entropy", weights)
    [found] = warnings({"x": RANDOM.normal(size=ROWS)}, label, loss=loss)
    assert found.startswith(said)


def skewed(sigma: float) -> np.ndarray:
    return np.exp(sigma * np.sort(np.random.default_rng(0).normal(size=ROWS)))


SQUARED = spec.Component("mean_squared_error")


def test_a_label_with_the_variance_of_few_rows_is_named_with_a_robust_loss() -> None:
    [said] = warnings({"x": RANDOM.normal(size=ROWS)}, skewed(2.0), loss=SQUARED)
    assert said.startswith(
        "1 % of the rows make up 79 % of the variance of y, so few rows decide the model; "
    )
    assert said.endswith(
        "loss = huber or mean_absolute_error heeds them less; if relative errors matter, train on the "
        "logarithm: SELECT LN(y) AS …"
    )


@pytest.mark.parametrize(
    ("label", "loss"),
    [
        (skewed(0.5), SQUARED),
        (RANDOM.exponential(size=ROWS), SQUARED),
        (skewed(2.0), spec.Component("huber")),
    ],
)
def test_labels_that_are_hardly_skewed_or_have_a_robust_loss_are_not(
    label: np.ndarray, loss: spec.Component
) -> None:
    assert warnings({"x": RANDOM.normal(size=ROWS)}, label, loss=loss) == []


def test_the_logarithm_is_not_offered_for_labels_below_zero() -> None:
    [said] = warnings({"x": RANDOM.normal(size=ROWS)}, skewed(2.0) - 1, loss=SQUARED)
    assert said.endswith("heeds them less")


def test_measurements_as_classes_are_warned_about() -> None:
    [said] = labels.fractional_classes(spec.ClassLabel("y", ("1", "1.5", "3")))
    assert str(said) == (
        "each of the 3 different numbers of y, such as 1.5, is a class of its own, without an order; train a "
        "regressor, such as DNNRegressor, if it is a quantity"
    )
    assert not list(labels.fractional_classes(spec.ClassLabel("y", (1, 2))))
