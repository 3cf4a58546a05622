"""Advice to calibrate probabilities: where a temperature lowers the log loss of held-out rows clearly."""

from __future__ import annotations

import numpy as np
import pytest

from edl.arrays import Array
from edl.evaluation.calibrating import LEAST_ROWS, calibration_advice
from edl.metrics.calibration import apply_temperature
from edl.spec import ClassLabel, RegressionLabel

SPECIES = ClassLabel("species", ("ash", "elm", "oak"))


def draw_rows(temperature: float, rows: int = 400) -> tuple[Array, Array]:
    """Classes (rows,) drawn by true probabilities, and the probabilities (rows, 3) of a model at a temperature."""
    draw = np.random.default_rng(3)
    true = draw.dirichlet((0.3, 0.3, 0.3), rows)
    labels = np.array([draw.choice(3, p=each) for each in true])
    return labels, apply_temperature(true, temperature)


@pytest.mark.parametrize(("temperature", "fault"), [(3.0, "too cautious"), (0.4, "too sure")])
def test_a_clear_gain_is_told_with_the_attribute_and_both_losses(temperature: float, fault: str) -> None:
    labels, scores = draw_rows(temperature)
    [note] = calibration_advice(SPECIES, "", labels, scores, None)
    loss = -np.log(np.maximum(scores[np.arange(len(labels)), labels], 1e-300)).mean()
    assert note.startswith(f"the probabilities are {fault}: validation.calibration = temperature would lower")
    assert f"from {loss:.4g} to " in note


def test_good_probabilities_few_rows_and_numbers_get_no_advice() -> None:
    labels, scores = draw_rows(1.0)
    assert calibration_advice(SPECIES, "", labels, scores, None) == ()
    labels, scores = draw_rows(3.0)
    few = slice(LEAST_ROWS - 1)
    assert calibration_advice(SPECIES, "", labels[few], scores[few], None) == ()
    assert calibration_advice(RegressionLabel("height"), "", labels, scores, None) == ()


def test_a_model_that_is_calibrated_already_gets_no_advice() -> None:
    labels, scores = draw_rows(3.0)
    assert calibration_advice(SPECIES, "temperature", labels, scores, None) == ()


def test_rows_count_by_their_weights() -> None:
    labels, scores = draw_rows(1.0)
    cautious = apply_temperature(scores, 3.0)
    both, twice = np.concatenate([scores, cautious]), np.concatenate([labels, labels])
    weights = np.concatenate([np.ones(len(labels)), np.zeros(len(labels))])
    assert calibration_advice(SPECIES, "", twice, both, weights) == ()
    assert calibration_advice(SPECIES, "", twice, both, 1 - weights)
