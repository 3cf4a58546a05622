"""Measurement of how sure the predictions of a model are: on the validation rows, beside the metrics of its program."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edl.arrays import Array
from edl.metrics import AUC, AbsoluteErrors, Metric, PredictedMeans, State
from edl.metrics.calibration import TemperedLoss, thresholds
from edl.metrics.classification import ConfusionMatrix
from edl.metrics.score_curves import ScoreHistogram, score_curve
from edl.spec import Calibration, JobSpec, Label, Uncertainty

# Names that no metric of a program has.
_ERRORS, _LOSSES, _CURVE, _MEANS = "edl.errors", "edl.losses", "edl.curve", "edl.means"
_SCORES, _CONFUSION = "edl.scores", "edl.confusion"
NAMES = (_ERRORS, _MEANS, _LOSSES, _CURVE, _SCORES, _CONFUSION)
MOST_CLASSES = 20  # for a model to keep curves and confusion
LEAST_GAIN, LEAST_ROWS = 0.05, 100  # share of the log loss, and rows, from which a calibration is advised


def of_label(
    label: Label, calibration: str, metrics: Mapping[str, Metric] | None = None
) -> dict[str, Metric]:
    """Return the metrics to measure, by name: errors of a number, curves and confusion of classes, losses at
    temperatures.

    metrics: of the program; without any, its scores need not be probabilities.
    """
    if label.is_number:
        return {_ERRORS: AbsoluteErrors(), _MEANS: PredictedMeans()}
    if not label.has_classes or (metrics is not None and not metrics):
        return {}
    chosen: dict[str, Metric] = {}
    if len(label.classes) <= MOST_CLASSES:
        chosen = {_CURVE: AUC()} if label.is_binary else {_SCORES: ScoreHistogram()}
        chosen[_CONFUSION] = ConfusionMatrix()
    return {**chosen, _LOSSES: TemperedLoss()} if calibration else chosen


def uncertainty(metrics: Mapping[str, Metric], states: Mapping[str, State]) -> Uncertainty | None:
    """Return the errors of a number, or the calibration of classes; None if nothing was measured."""
    errors, losses = metrics.get(_ERRORS), metrics.get(_LOSSES)
    if isinstance(errors, AbsoluteErrors):
        found_errors = errors.quantiles(states[_ERRORS])
        if found_errors is None:
            return None
        return msgspec.structs.replace(found_errors, means=PredictedMeans().groups(states.get(_MEANS, ())))
    calibration: Calibration | None = None
    if isinstance(losses, TemperedLoss):
        calibration = losses.calibration(states[_LOSSES])
    if not any(states.get(name) for name in (_CURVE, _SCORES, _CONFUSION)):
        return calibration
    calibration = calibration or Calibration()
    curve, scores, confusion = (states.get(name, ()) for name in (_CURVE, _SCORES, _CONFUSION))
    curves = ScoreHistogram().curves(scores) if scores else ()
    if curve:
        best = thresholds(curve, calibration.temperature)
        exact = [0.5, *(threshold.probability for threshold in best.values())]
        calibration = msgspec.structs.replace(calibration, thresholds=best)
        curves = (score_curve(AUC().curve(curve), 1, calibration.temperature, exact),)
    matrix = ConfusionMatrix().matrix(confusion).tolist() if confusion else ()
    return msgspec.structs.replace(calibration, curves=curves, confusion=tuple(map(tuple, matrix)))


def calibration_advice(
    label: Label, calibration: str, labels: Array, scores: Array, weights: Array | None
) -> tuple[str, ...]:
    """Return a note if a temperature would lower the log loss of held-out rows clearly, and none was asked for.

    calibration: of the program. labels, scores and weights: as in `edl.metrics.base`.
    """
    if calibration or not label.has_classes or len(labels) < LEAST_ROWS:
        return ()
    losses = TemperedLoss()
    measured = losses.calibration(losses.update((), labels, scores, weights))
    if measured is None:
        return ()
    loss, lower = measured.log_loss
    if lower > (1 - LEAST_GAIN) * loss:
        return ()
    fault = "too cautious" if measured.temperature < 1 else "too sure"
    note = (
        f"the probabilities are {fault}: validation.calibration = temperature would lower the log loss of the "
        f"held-out rows from {loss:.4g} to {lower:.4g}, and the most probable classes stay"
    )
    return (note,)


def calibration_notes(spec: JobSpec, measured: Uncertainty | None) -> tuple[str, ...]:
    """Return notes on what the validation rows chose, as far as the statement asks for it."""
    label, metric = spec.label, spec.training.threshold
    if not isinstance(measured, Calibration) or not label.has_classes:
        return ()
    notes = []
    if measured.log_loss:
        (loss, lower), (error, less) = measured.log_loss, measured.error
        notes.append(
            f"calibrated by the temperature {measured.temperature:.3g}: the log loss of the validation rows is "
            f"{lower:.4g} instead of {loss:.4g}, their calibration error {100 * less:.1f} % instead of "
            f"{100 * error:.1f} %"
        )
    chosen = measured.thresholds.get(metric) if isinstance(metric, str) else None
    if chosen is not None:
        notes.append(
            f"predicts {label.classes[1]} from its probability {chosen.probability:.4g} on, where the {metric} of the "
            f"validation rows is highest, {chosen.value:.4g}"
        )
    return tuple(notes)
