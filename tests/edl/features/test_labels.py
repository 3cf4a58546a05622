"""Labels: into training, and a model's outputs back to values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, softmax

from edl import features as fc
from edl import spec
from edl.errors import JobError, SemanticError
from edl.features.labels import learned_labels
from edl.spec import RawLabel


def batch(values: Any) -> pa.RecordBatch:
    return pa.record_batch([values if isinstance(values, pa.Array) else pa.array(values)], names=["y"])


INCOME = fc.label("y")
ANSWER = fc.class_label("y", ["no", "yes"])
SPECIES = fc.class_label("y", ["setosa", "versicolor", "virginica"])


@pytest.mark.parametrize(
    "values", [[1, 2], [1.0, 2.0], [Decimal(1), Decimal(2)], pa.array([1, 2], pa.uint8())]
)
def test_a_number_is_a_float32_column(values: Any) -> None:
    labels = INCOME.transform(batch(values), "train")
    assert labels is not None
    assert labels.dtype == np.float32
    assert labels.tolist() == [[1.0], [2.0]]


ARRIVED = fc.label("y", mean=0.5, std=20.0, centre=1_700_000_000.0)
SECONDS = [1_700_000_001, 1_700_000_002, 1_699_999_998]  # float32 steps by 128 there


def test_a_number_with_a_centre_is_learned_less_it() -> None:
    labels = ARRIVED.transform(batch(SECONDS), "train")
    assert labels is not None
    assert labels.dtype == np.float32
    assert labels.tolist() == [[1.0], [2.0], [-2.0]]


@pytest.mark.parametrize("target", [INCOME, ARRIVED])
def test_a_number_is_measured_as_it_stands_in_the_table(target: fc.Target) -> None:
    labels = target.transform(batch(SECONDS), "evaluate")
    assert labels is not None
    assert labels.dtype == np.float64
    assert labels[:, 0].tolist() == SECONDS


def test_the_labels_of_an_evaluation_are_learned_as_in_a_training() -> None:
    several = fc.labels(ARRIVED, fc.class_label("z", ["a", "b", "c"]))
    rows = pa.record_batch({"y": pa.array(SECONDS), "z": pa.array(["a", "c", "b"])})
    for target in (ARRIVED, INCOME, several):
        trained, measured = (target.transform(rows, mode) for mode in ("train", "evaluate"))
        assert trained is not None and measured is not None
        again = learned_labels(target, measured)
        assert again.dtype == np.float32
        np.testing.assert_array_equal(again, trained)


def test_the_centre_is_added_to_the_outputs_in_float64() -> None:
    outputs = np.array([[1.25], [-2.0]], np.float32)
    assert ARRIVED.scores(outputs).tolist() == [[1_700_000_001.25], [1_699_999_998.0]]
    members = np.array([[[1.0], [2.0]]], np.float32)
    assert ARRIVED.scores(members).tolist() == [[1_700_000_001.5]]
    forecast = fc.forecast("y", [0.1, 0.9], centre=1e9)
    assert forecast.scores(np.array([[1.0, 0.5, 2.0]])).tolist() == [[1e9 + 1, 1e9 + 0.5, 1e9 + 2]]


def test_a_centre_must_be_finite() -> None:
    with pytest.raises(SemanticError, match="label y has the centre nan, which must be finite"):
        fc.label("y", centre=math.nan)


def test_labels_without_a_centre_have_the_json_of_earlier_versions() -> None:
    assert msgspec.json.encode(INCOME.spec) == b'{"op":"regression","column":"y","mean":0.0,"std":1.0}'
    assert msgspec.json.encode(fc.forecast("y").spec) == b'{"op":"forecast","column":"y","quantiles":[]}'


def test_classes_of_whole_numbers_beyond_float64_stay_apart() -> None:
    ids = [2**53, 2**53 + 1, 2**53 + 2]
    target = fc.class_label("y", ids)
    labels = target.transform(batch([ids[1], ids[0], ids[2]]), "evaluate")
    assert labels is not None
    assert labels.tolist() == [1, 0, 2]
    assert target.decode(np.eye(3)).to_pylist() == ids


def test_two_classes_are_zero_and_one_in_a_column() -> None:
    labels = ANSWER.transform(batch(["yes", "no"]), "evaluate")
    assert labels is not None
    assert labels.dtype == np.float32
    assert labels.tolist() == [[1.0], [0.0]]


def test_more_classes_are_positions() -> None:
    labels = SPECIES.transform(batch(["virginica", "setosa"]), "train")
    assert labels is not None
    assert labels.dtype == np.int64
    assert labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("classes", "values"),
    [
        ([0, 1], [False, True]),
        ([0, 1], [0.0, 1.0]),
        ([0, 1], ["0", "1"]),
        (["0", "1"], [0, 1]),
        (["0", "1"], [0.0, 1.0]),
        ([False, True], [False, True]),
        ([False, True], [0, 1]),
        ([False, True], ["false", "true"]),
        (["a", "b"], pa.array(["a", "b"]).dictionary_encode()),
        (["a", "b"], pa.array(["a", "b"], pa.large_string())),
    ],
)
def test_a_class_may_come_in_another_type(classes: list[Any], values: Any) -> None:
    labels = fc.class_label("y", classes).transform(batch(values), "train")
    assert labels is not None
    assert labels.tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize("target", [INCOME, ANSWER, SPECIES])
def test_prediction_does_not_read_the_label(target: fc.Target) -> None:
    assert target.transform(pa.record_batch([pa.array([1])], names=["x"]), "predict") is None


@pytest.mark.parametrize(
    ("target", "values", "message", "hint"),
    [
        (INCOME, [1.0, None, None], "label y is NULL in some rows", "WHERE y IS NOT NULL"),
        (
            INCOME,
            [1.0, math.nan, math.inf],
            "label y is not a finite number in some rows",
            "leave those rows out",
        ),
        (INCOME, ["1"], "column y is of type string where a number is needed", "convert it to a number"),
        (INCOME, [1e39], "label y holds 1e\\+39", "scale it"),
        (ANSWER, ["yes", None], "label y is NULL in some rows", "WHERE y IS NOT NULL"),
        (
            ANSWER,
            pa.array(["yes", None]).dictionary_encode(),
            "label y is NULL in some rows",
            "IS NOT NULL",
        ),
        (
            ANSWER,
            ["yess", "yes", "yess"],
            "label y is none of its 2 classes in some rows, such as 'yess'",
            "mean yes?",
        ),
        (
            SPECIES,
            [3],
            "label y is none of its 3 classes in some rows, such as '3'",
            "known: setosa, versicolor, virginica",
        ),
        (fc.class_label("y", [0, 1]), [0.5], "such as '0.5'", "known: 0, 1"),
        (
            fc.class_label("y", [0, 1]),
            [1.0, math.nan],
            "label y is not a finite number in some rows",
            "leave those rows out",
        ),
        (fc.class_label("y", [0, 1]), [b"\xff"], "label y is none of its 2 classes", "known: 0, 1"),
    ],
)
@pytest.mark.parametrize("mode", ["train", "evaluate"])
def test_an_unusable_label_is_named(
    target: fc.Target, values: Any, message: str, hint: str, mode: fc.Mode
) -> None:
    with pytest.raises(SemanticError, match=message) as error:
        target.transform(batch(values), mode)
    assert hint in str(error.value.hint)


@pytest.mark.parametrize("target", [INCOME, ANSWER])
def test_a_missing_label_column_is_named(target: fc.Target) -> None:
    with pytest.raises(SemanticError, match="the data has no column y, the label"):
        target.transform(pa.record_batch([pa.array([1])], names=["x"]), "train")


def test_no_rows_are_no_labels() -> None:
    for target, shape in ((INCOME, (0, 1)), (ANSWER, (0, 1)), (SPECIES, (0,))):
        labels = target.transform(batch(pa.nulls(0)), "train")
        assert labels is not None
        assert labels.shape == shape
        assert len(target.decode(target.scores(np.zeros((0, target.spec.outputs), np.float32)))) == 0


# Scores and values -----------------------------------------------------------------------------------------


def test_a_numbers_scores_are_the_outputs() -> None:
    scores = INCOME.scores(np.array([[1.5], [-2.0]], np.float32))
    assert scores.dtype == np.float64
    assert scores.tolist() == [[1.5], [-2.0]]
    assert INCOME.decode(scores).to_pylist() == [1.5, -2.0]


def test_one_logit_is_two_probabilities() -> None:
    logits = np.array([[-800.0], [-40.0], [0.0], [3.0], [800.0]], np.float32)
    scores = ANSWER.scores(logits)
    assert scores == pytest.approx(np.concatenate([expit(-logits), expit(logits)], axis=1), rel=1e-6)
    assert scores[1, 1] == pytest.approx(math.exp(-40), rel=1e-12)  # not rounded to float32's 0 or 1
    assert scores.sum(axis=1) == pytest.approx(np.ones(5), rel=1e-15)


def test_logits_are_probabilities_of_the_classes() -> None:
    logits = np.random.default_rng(0).normal(0, 50, (100, 3)).astype(np.float32)
    logits[0] = [1e30, -1e30, 0]
    assert SPECIES.scores(logits) == pytest.approx(softmax(logits.astype(np.float64), axis=1), rel=1e-12)


@pytest.mark.parametrize(
    ("classes", "type_"),
    [
        (["a", "b", "c"], pa.string()),
        ([7, 8, 9], pa.int64()),
        (["no", "yes"], pa.string()),
        ([False, True], pa.bool_()),
    ],
)
def test_the_likeliest_class_is_decoded_in_its_own_type(classes: list[Any], type_: pa.DataType) -> None:
    target = fc.class_label("y", classes)
    values = target.decode(np.eye(len(classes)))
    assert values.type == type_
    assert values.to_pylist() == classes


def test_even_odds_decode_to_the_first_class() -> None:
    assert ANSWER.decode(ANSWER.scores(np.zeros((1, 1), np.float32))).to_pylist() == ["no"]


def test_what_a_diverged_model_gives_decodes_to_null() -> None:
    outputs = np.array([[math.nan], [math.inf], [1.0]], np.float32)
    assert INCOME.decode(INCOME.scores(outputs)).to_pylist() == [None, None, 1.0]
    assert ANSWER.decode(ANSWER.scores(np.array([[math.nan], [1.0]], np.float32))).to_pylist() == [
        None,
        "yes",
    ]
    broken = np.array([[math.nan, 0, 0], [math.inf, math.inf, 0], [0, 0, 1.0]], np.float32)
    assert SPECIES.decode(SPECIES.scores(broken)).to_pylist() == [None, None, "virginica"]


@pytest.mark.parametrize(
    ("target", "shape"),
    [(INCOME, (8,)), (INCOME, (8, 2)), (ANSWER, (8,)), (ANSWER, (8, 2)), (SPECIES, (8, 2))],
)
def test_outputs_of_another_shape_are_refused(target: fc.Target, shape: tuple[int, ...]) -> None:
    with pytest.raises(JobError, match=r"the model's outputs have the shape \(8"):
        target.scores(np.zeros(shape, np.float32))


def test_labels_and_decoded_values_are_inverse() -> None:
    labels = SPECIES.transform(batch(["virginica", "setosa", "versicolor"]), "train")
    assert SPECIES.decode(np.eye(3)[labels]).to_pylist() == ["virginica", "setosa", "versicolor"]


# Construction ----------------------------------------------------------------------------------------------


def test_a_target_keeps_its_spec() -> None:
    assert fc.label("y", mean=2.0, std=3.0).spec == spec.RegressionLabel("y", 2.0, 3.0)
    assert SPECIES.spec == spec.ClassLabel("y", ("setosa", "versicolor", "virginica"))
    for target in (INCOME, ANSWER, SPECIES):
        assert type(fc.target(target.spec)) is type(target)
        assert fc.target(target.spec).spec == target.spec


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.label(""), "a label needs the name of a column, not ''"),
        (lambda: fc.label("y", std=0.0), "label y has mean 0.0 and std 0.0"),
        (lambda: fc.label("y", mean=math.nan), "both must be finite"),
        (lambda: fc.class_label("y", ["a"]), "label y needs at least two classes, it has 1"),
        (lambda: fc.class_label("y", ["a", 1]), "must be all text, all integers or all booleans"),
        (lambda: fc.class_label("y", [0.5, 1.5]), "must be all text, all integers or all booleans"),
        (lambda: fc.class_label("y", [1, True]), "must be all text, all integers or all booleans"),
        (lambda: fc.class_label("y", ["a", "b", "a"]), "the classes of label y hold a value twice"),
    ],
)
def test_a_wrong_label_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        make()


def test_what_a_module_does_not_name_is_predicted_as_it_is() -> None:
    raw = fc.target(RawLabel("prediction"))
    assert raw.decode(np.array([[1.5], [np.nan]])).to_pylist() == [1.5, None]
    assert raw.decode(np.array([[1.0, 2.0], [3.0, np.inf]])).to_pylist() == [[1.0, 2.0], [3.0, None]]
    assert raw.decode(np.empty((0, 1))).to_pylist() == []
    assert raw.transform(pa.record_batch({"x": [1]}), "train") is None


def test_the_scores_of_an_ensemble_are_the_means_of_its_members() -> None:
    two = np.array([[[2.0], [-1.0]], [[0.0], [0.0]]], np.float32)
    one = 1 / (1 + np.exp(-two[..., 0].astype(np.float64)))
    assert fc.label("x").scores(two).tolist() == [[0.5], [0.0]]
    assert fc.class_label("x", ["a", "b"]).scores(two)[:, 1] == pytest.approx(one.mean(axis=1))
    many = fc.class_label("x", ["a", "b", "c"]).scores(np.zeros((4, 2, 3), np.float32))
    assert many == pytest.approx(np.full((4, 3), 1 / 3))


# Rankings ------------------------------------------------------------------------------------------------------

RANKING = fc.ranking("y", group="q")


def ranked(relevance: Any, groups: Any) -> pa.RecordBatch:
    return pa.record_batch([pa.array(relevance), pa.array(groups)], names=["y", "q"])


def test_labels_of_a_ranking_are_relevance_and_group() -> None:
    labels = RANKING.transform(ranked([2.0, 0.0, 1.0], [7, 7, -3]), "train")
    assert labels is not None
    assert labels.dtype == np.int64
    assert labels.tolist() == [[2, 7], [0, 7], [1, -3]]
    assert RANKING.transform(pa.record_batch([pa.array([1])], names=["x"]), "predict") is None


@pytest.mark.parametrize(
    "groups",
    [["a", "b", "a"], [1.5, 2.5, 1.5], [2**60, 2**60 + 1, 2**60], [dt.date(2024, 1, 1), dt.date(2024, 1, 2)] * 2],
    ids=["texts", "numbers with fractions", "large numbers", "dates"],
)  # fmt: skip
def test_a_group_of_any_type_has_a_number_of_its_own_in_every_batch(groups: list[Any]) -> None:
    groups = groups[:3]
    whole = RANKING.transform(ranked([1, 1, 1], groups), "train")
    parts = [RANKING.transform(ranked([1], [group]), "evaluate") for group in groups]
    assert whole is not None
    found = whole[:, 1].tolist()
    assert found == [part[0, 1] for part in parts if part is not None]
    assert found[0] == found[2] != found[1]
    assert max(map(abs, found)) <= 2**53  # exact in the states of metrics


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ranked([1, 31], [1, 1]), "label y is 31, and a relevance is a whole number from 0 to 30"),
        (ranked([-1], [1]), "label y is -1, and"),
        (ranked([0.5], [1]), "label y is 0.5, and"),
        (ranked([None], [1]), "label y is NULL in some rows"),
        (ranked([1, 1], ["a", None]), "the group q is NULL in some rows"),
        (pa.record_batch([pa.array([1])], names=["y"]), "the data has no column q, the group"),
    ],
)
def test_rows_that_cannot_be_ranked_are_named(rows: pa.RecordBatch, message: str) -> None:
    with pytest.raises(SemanticError, match=message):
        RANKING.transform(rows, "train")


SEVERAL = fc.labels(
    fc.label("cost", mean=10.0, std=2.0),
    fc.class_label("late", [False, True]),
    fc.class_label("kind", ["a", "b", "c"]),
)


def test_several_labels_are_side_by_side_with_a_one_for_the_class() -> None:
    rows = pa.RecordBatch.from_pydict({"late": [True, False], "kind": ["c", "a"], "cost": [7.5, 9.0]})
    labels = SEVERAL.transform(rows, "train")
    assert labels is not None
    assert labels.dtype == np.float32
    assert labels.tolist() == [[7.5, 1, 0, 0, 1], [9.0, 0, 1, 0, 0]]
    assert SEVERAL.transform(rows, "predict") is None


def test_scores_of_several_labels_equal_the_scores_of_each() -> None:
    outputs = np.array([[8.0, 1.5, 0.25, 0.5, -1.0]], dtype=np.float32)
    parts = [
        SEVERAL[0].scores(outputs[:, :1]),
        SEVERAL[1].scores(outputs[:, 1:2]),
        SEVERAL[2].scores(outputs[:, 2:]),
    ]
    assert np.array_equal(SEVERAL.scores(outputs), np.concatenate(parts, axis=1))
    assert SEVERAL.spec.score_places == ((0, 1), (1, 3), (3, 6))
    assert (SEVERAL.std, SEVERAL.mean) == ([2, 1, 1, 1, 1], [10, 0, 0, 0, 0])
    with pytest.raises(JobError, match=r"label cost, late, kind needs \(rows, 5\)"):
        SEVERAL.scores(outputs[:, :4])


def test_a_single_label_is_not_several() -> None:
    with pytest.raises(SemanticError, match="several labels are two or more"):
        fc.labels(INCOME)
