"""Attributes about how sure a prediction is: interval of a number, threshold and calibration of classes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from edl.models.archive import Archive
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved


def interval(
    attribute: Resolved | None,
    model: Archive,
    reference: str,
    renamed: Mapping[str, str],
    errors: list[SQLFlowError],
) -> spec.Interval | None:
    """Return the interval that predict.interval asks for; add an error if the model cannot give it.

    renamed: columns of the model -> the query's columns.
    """
    if attribute is None:
        return None
    try:
        return interval_of(model, reference, float(attribute.value), renamed)  # type: ignore[arg-type]  # a number
    except SemanticError as error:
        error.span = attribute.span
        errors.append(error)
        return None


def interval_of(
    model: Archive, reference: str, coverage: float, renamed: Mapping[str, str] | None = None
) -> spec.Interval:
    """Return the interval around predictions with this coverage.

    renamed: columns of the model -> the query's columns. Raises SemanticError if the model cannot give it.
    """
    interval = model.residuals.interval(coverage) if model.residuals is not None else None
    if interval is not None:
        margin, widths = interval
        return spec.Interval(coverage, margin, widths.rename(renamed or {}) if widths else msgspec.UNSET)
    problem, hint = _explain_missing(model, reference, coverage)
    raise SemanticError(problem, hint=hint)


def threshold(
    attribute: Resolved | None, model: Archive, reference: str, errors: list[SQLFlowError]
) -> float | None:
    """Return the least probability of the second of two classes: the written one, else the training's.
    A metric stands for the threshold that it chose on the validation rows. Adds an error if the label has other classes
    or the model has no such threshold.
    """
    if attribute is None:
        return model.threshold
    if not _is_binary(model.spec.label, attribute, errors):
        return None
    try:
        return _choose_threshold(model, reference, attribute.value)
    except SemanticError as error:
        error.span = attribute.span
        errors.append(error)
        return None


def _choose_threshold(model: Archive, reference: str, setting: object) -> float:
    """Return the threshold that a number or a metric stands for. Raises SemanticError if the model has none."""
    if not isinstance(setting, str):
        return float(setting)  # type: ignore[arg-type]  # a number, says the dictionary
    chosen = model.calibration.thresholds.get(setting) if model.calibration is not None else None
    if chosen is not None:
        return chosen.probability
    has_rows = model.spec.rows.validation
    why = "its validation rows were not measured" if has_rows else "it was trained without validation rows"
    raise SemanticError(
        f"{reference} has no threshold by {setting}: {why}",
        hint="write a probability, or train it again with VALIDATE 0.1",
    )


def temperature(model: Archive) -> float:
    """Return the temperature by which the model divides the logits of its classes; 1 without calibration."""
    return model.calibration.temperature if model.calibration is not None else 1.0


def probabilities(attribute: Resolved | None, model: Archive, errors: list[SQLFlowError]) -> bool | None:
    """Return if PREDICT adds a column for each class, None if it is not written; add an error without classes."""
    if attribute is None:
        return None
    label = model.spec.label
    if not any(one_label.has_classes for one_label in spec.each_label(label)):
        errors.append(
            SemanticError(
                f"only classes have probabilities, and {label.column} has no classes",
                span=attribute.key_span,
                hint="leave predict.probabilities out",
            )
        )
    return bool(attribute.value)


def check_training(resolved: Mapping[str, Resolved], label: spec.Label, errors: list[SQLFlowError]) -> None:
    """Add errors for attributes of TRAIN that its label does not allow."""
    if "validation.threshold" in resolved:
        _is_binary(label, resolved["validation.threshold"], errors)
    attribute = resolved.get("validation.calibration")
    if attribute is not None and not label.has_classes:
        errors.append(
            SemanticError(
                f"only probabilities of classes can be calibrated, and {label.column} is a number",
                span=attribute.key_span,
                hint="leave it out; WITH predict.interval = 0.9 gives intervals of the predicted number",
            )
        )


def _is_binary(label: spec.Label, attribute: Resolved, errors: list[SQLFlowError]) -> bool:
    """Return True if the label has two classes; add an error otherwise."""
    try:
        check_threshold(label, attribute.written.key)
    except SemanticError as error:
        error.span = attribute.key_span
        errors.append(error)
        return False
    return True


def check_threshold(label: spec.Label, key: str) -> None:
    """Raise SemanticError, with the name of the setting, unless the label has two classes."""
    if label.is_binary:
        return
    has = f"has {len(label.classes)}" if label.has_classes else "has no classes"
    if label.labels:
        has = "are several labels"
    raise SemanticError(
        f"a threshold needs a label of two classes, and {label.column} {has}", hint=f"leave {key} out"
    )


# Why a prediction of a kind of label has no interval, and what helps. A number has one.
WITHOUT_INTERVAL: Mapping[type, str] = {
    spec.ClassLabel: "an interval is of a number, and {reference} predicts the class {label.column}",
    spec.RankingLabel: "an interval is of a number, and {reference} ranks the rows of each {label.group}",
    spec.ClusterLabel: "an interval is of a number, and {reference} finds clusters",
    spec.AnomalyLabel: "an interval is of a number, and {reference} finds anomalies",
    spec.ReductionLabel: "an interval is of a number, and {reference} predicts numbers without a label",
    spec.ForecastLabel: "{reference} forecasts quantiles instead of an interval",
    spec.SeveralLabels: "an interval is of one number, and {reference} predicts {label.column}",
    spec.RawLabel: "an interval is of a number, and {reference} does not declare what it predicts",
    spec.NoLabel: "an interval is of a number, and {reference} does not declare what it predicts",
}
INSTEAD_OF_INTERVAL: Mapping[type, str] = {
    spec.ClassLabel: "leave predict.interval out: the columns …_prob_CLASS are the probabilities of the classes",
    spec.RankingLabel: "leave predict.interval out",
    spec.ClusterLabel: "leave predict.interval out",
    spec.AnomalyLabel: "leave predict.interval out",
    spec.ReductionLabel: "leave predict.interval out",
    spec.ForecastLabel: "train it WITH forecast.quantiles = [0.05, 0.95], whose columns PREDICT then adds",
    spec.SeveralLabels: "leave predict.interval out, or train a model of that number alone",
    spec.RawLabel: "leave it out",
    spec.NoLabel: "leave it out",
}


def _explain_missing(model: Archive, reference: str, coverage: float) -> tuple[str, str]:
    """Return why the model gives no such interval, and what helps."""
    label = model.spec.label
    if not label.is_number:
        why = WITHOUT_INTERVAL[type(label)].format(reference=reference, label=label)
        return why, INSTEAD_OF_INTERVAL[type(label)]
    if model.residuals is not None:
        rows, most = model.residuals.rows, model.residuals.most_coverage
        return (
            f"an interval of {coverage:g} needs more than the {rows} validation rows of {reference}",
            f"up to {most:g} is possible, or train with more rows"
            if most >= 0.01
            else "train with more rows",
        )
    if model.spec.imported:
        return (
            f"{reference} was imported, and no errors of it are known",
            "rows with a label measure them, see sqlflow help evaluate",
        )
    if not model.spec.rows.validation:
        return (
            f"{reference} was trained without validation rows, whose errors give the interval",
            "train it again with VALIDATE 0.1, or on 100 rows or more",
        )
    return (
        f"{reference} has no errors of its validation rows, which give the interval",
        "train it again: an earlier version of this program trained it, or it has a metric of its own",
    )
