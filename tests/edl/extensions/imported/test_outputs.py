"""Outputs of ONNX files as scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edl.errors import JobError
from edl.extensions.imported.outputs import scores_of
from edl.features import target
from edl.spec import ClassLabel, Label, RegressionLabel
from edl.spec.imported import Gives

TWO, THREE = ClassLabel("y", ("no", "yes")), ClassLabel("y", (1, 2, 3))
NUMBER = RegressionLabel("y")


def scores(result: Any, gives: Gives, label: Label) -> list[list[float]]:
    return scores_of(result, gives, label, target(label)).round(4).tolist()


@pytest.mark.parametrize(
    "result", [np.array([1.0, 2.0]), np.array([[1.0], [2.0]], dtype=np.float32), np.array([[[1]], [[2]]])]
)
def test_a_number_has_one_score_in_any_shape(result: Any) -> None:
    assert scores(result, "number", NUMBER) == [[1.0], [2.0]]


def test_probabilities_of_two_classes_may_be_those_of_the_second_alone() -> None:
    for result in (np.array([0.25]), np.array([[0.25]]), np.array([[0.75, 0.25]])):
        assert scores(result, "probabilities", TWO) == [[0.75, 0.25]]


def test_maps_are_put_in_the_order_of_the_classes() -> None:
    assert scores([{"yes": 0.25, "no": 0.75}], "probabilities", TWO) == [[0.75, 0.25]]
    assert scores([{3: 0.5, 1: 0.5}], "probabilities", THREE) == [[0.5, 0.0, 0.5]]


def test_logits_become_probabilities() -> None:
    assert scores(np.zeros((1, 3)), "logits", THREE) == [[0.3333, 0.3333, 0.3333]]
    assert scores(np.array([[0.0], [100.0]]), "logits", TWO) == [[0.5, 0.5], [0.0, 1.0]]
    assert scores(np.array([[1000.0, 1000.0]]), "logits", TWO) == [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("result", "label"),
    [
        (np.array(["yes", "no"], dtype=object), TWO),
        (np.array([[2], [1]]), THREE),
        (np.array([2.0, 1.0]), THREE),
    ],
)
def test_a_predicted_class_has_the_score_1(result: Any, label: Label) -> None:
    expected = np.eye(len(label.classes))[[1, 0]].tolist()
    assert scores(result, "class", label) == expected


@pytest.mark.parametrize(
    ("result", "gives", "label", "message"),
    [
        (np.zeros((2, 3)), "number", NUMBER, "3 numbers for each row, and a number needs 1"),
        (
            np.zeros((2, 2)),
            "probabilities",
            THREE,
            "2 numbers for each row, and a probability of each class needs 3",
        ),
        (np.array(["maybe"], dtype=object), "class", TWO, "the class maybe, which is none of no, yes"),
        (
            np.array([[-0.5, 1.5]]),
            "probabilities",
            TWO,
            "the output has -0.5, and a probability is between 0 and 1",
        ),
        (np.array(["a"], dtype=object), "number", NUMBER, "the output has no numbers"),
    ],
)
def test_an_output_of_another_form_is_an_error(result: Any, gives: Gives, label: Label, message: str) -> None:
    with pytest.raises(JobError, match=message):
        scores(result, gives, label)
