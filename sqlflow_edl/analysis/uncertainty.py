"""Attributes of PREDICT and EVALUATE about how sure a prediction is: interval of a number, threshold of a class."""

from __future__ import annotations

from edl import spec
from edl.errors import SemanticError, SQLFlowError
from edl.models.archive import Archive
from sqlflow_edl.analysis.settings.dictionary import Resolved


def interval(
    written: Resolved | None, model: Archive, reference: str, errors: list[SQLFlowError]
) -> spec.Interval | None:
    """Return the interval that predict.interval asks for; add an error if the model cannot give it."""
    if written is None:
        return None
    try:
        return interval_of(model, reference, float(written.value))  # type: ignore[arg-type]  # a number
    except SemanticError as error:
        error.span = written.written.value.span
        errors.append(error)
        return None


def interval_of(model: Archive, reference: str, coverage: float) -> spec.Interval:
    """Return the interval around predictions with this coverage.

    Raises SemanticError if the model cannot give it.
    """
    margin = model.residuals.margin(coverage) if model.residuals is not None else None
    if margin is not None:
        return spec.Interval(coverage, margin)
    problem, hint = _missing(model, reference, coverage)
    raise SemanticError(problem, hint=hint)


def threshold(written: Resolved | None, label: spec.Label, errors: list[SQLFlowError]) -> float | None:
    """Return the given least probability of the second of two classes; add an error if the label has other classes."""
    if written is None:
        return None
    try:
        check_threshold(label, written.written.key)
    except SemanticError as error:
        error.span = written.written.key_span
        errors.append(error)
    return float(written.value)  # type: ignore[arg-type]  # a number, says the dictionary


def check_threshold(label: spec.Label, key: str) -> None:
    """Raise SemanticError, with the name of the setting, unless the label has two classes."""
    if isinstance(label, spec.ClassLabel) and label.binary:
        return
    has = f"has {len(label.classes)}" if isinstance(label, spec.ClassLabel) else "is none"
    raise SemanticError(f"a threshold is of two classes, and {label.column} {has}", hint=f"leave {key} out")


def _missing(model: Archive, reference: str, coverage: float) -> tuple[str, str]:
    """Return why the model gives no such interval, and what helps."""
    label = model.spec.label
    if isinstance(label, spec.ClassLabel):
        return (
            f"an interval is of a number, and {reference} predicts the class {label.column}",
            "leave predict.interval out: the columns …_prob are the probabilities of the classes",
        )
    if isinstance(label, spec.RankingLabel):
        return (
            f"an interval is of a number, and {reference} ranks the rows of each {label.group}",
            "leave predict.interval out",
        )
    if not isinstance(label, spec.RegressionLabel):
        return (
            f"an interval is of a number, and {reference} does not declare what it predicts",
            "leave it out",
        )
    if model.residuals is not None:
        rows, most = model.residuals.rows, model.residuals.most_coverage
        return (
            f"an interval of {coverage:g} needs more than the {rows} validation rows of {reference}",
            f"up to {most:g} is possible, or train with more rows"
            if most >= 0.01
            else "train with more rows",
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
