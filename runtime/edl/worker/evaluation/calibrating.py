"""Measurement of how sure the predictions of a model are: on the validation rows, beside the metrics of its program."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edl.metrics import AUC, AbsoluteErrors, Metric, State
from edl.metrics.calibration import TemperedLoss, thresholds
from edl.spec import Calibration, ClassLabel, JobSpec, Label, RegressionLabel, Uncertainty

_ERRORS, _LOSSES, _CURVE = "edl.errors", "edl.losses", "edl.curve"  # names that no metric of a program has
NAMES = (_ERRORS, _LOSSES, _CURVE)


def of_label(
    label: Label, calibration: str, metrics: Mapping[str, Metric] | None = None
) -> dict[str, Metric]:
    """Return the metrics to measure, by name: errors of a number, a curve of two classes, losses at temperatures.

    metrics: of the program; without any, its scores need not be probabilities.
    """
    if isinstance(label, RegressionLabel):
        return {_ERRORS: AbsoluteErrors()}
    if not isinstance(label, ClassLabel) or (metrics is not None and not metrics):
        return {}
    found: dict[str, Metric] = {_CURVE: AUC()} if label.binary else {}
    return {**found, _LOSSES: TemperedLoss()} if calibration else found


def uncertainty(metrics: Mapping[str, Metric], states: Mapping[str, State]) -> Uncertainty | None:
    """Return the errors of a number, or the calibration of classes; None if nothing was measured."""
    errors, losses = metrics.get(_ERRORS), metrics.get(_LOSSES)
    if isinstance(errors, AbsoluteErrors):
        return errors.quantiles(states[_ERRORS])
    found: Calibration | None = None
    if isinstance(losses, TemperedLoss):
        found = losses.calibration(states[_LOSSES])
    curve = states.get(_CURVE, ())
    if curve:
        found = found or Calibration()
        found = msgspec.structs.replace(found, thresholds=thresholds(curve, found.temperature))
    return found


def calibration_notes(spec: JobSpec, found: Uncertainty | None) -> tuple[str, ...]:
    """Return notes on what the validation rows chose, as far as the statement asks for it."""
    label, metric = spec.label, spec.training.threshold
    if not isinstance(found, Calibration) or not isinstance(label, ClassLabel):
        return ()
    notes = []
    if found.log_loss:
        (loss, lower), (error, less) = found.log_loss, found.error
        notes.append(
            f"calibrated by the temperature {found.temperature:.3g}: the log loss of the validation rows is "
            f"{lower:.4g} instead of {loss:.4g}, their calibration error {100 * less:.1f} % instead of "
            f"{100 * error:.1f} %"
        )
    chosen = found.thresholds.get(metric) if isinstance(metric, str) else None
    if chosen is not None:
        notes.append(
            f"predicts {label.classes[1]} from its probability {chosen.probability:.4g} on, where the {metric} of the "
            f"validation rows is highest, {chosen.value:.4g}"
        )
    return tuple(notes)
