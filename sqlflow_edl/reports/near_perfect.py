"""Doubt about metrics that are nearly perfect: rarely is a model that good, and often a column gives the label away."""

from __future__ import annotations

from collections.abc import Mapping

from edl.data.cells import format_count
from edl.models.archive import Archive
from edl.models.fitting import Fitting
from edl.spec import JobSpec
from sqlflow_edl.analysis import expressions
from sqlflow_edl.reports.intervals import hanley_mcneil, measured_rows, wilson
from sqlflow_edl.reports.text import number

# Least value at the lower end of the 95 % interval. Iris, wine and breast_cancer are below, with whichever model.
BETTER_THAN_GUESSING = (
    0.95  # share of the mistakes of always predicting the most frequent class that are avoided
)
AUC = 0.995
R2 = 0.99  # of diamonds, the best model has 0.984
FEWEST_OTHERS = 50  # rows outside the most frequent class; an auc of 1 has no width, however few they are
FEWEST_NUMBERS = 100  # rows of a label of numbers; of fewer, r2 may be high by chance


def archived_doubt(archive: Archive, model: str) -> str:
    """Return the doubt about the metrics of a stored model."""
    return doubt(archive.spec, archive.metrics, *measured_rows(archive), archive.fitting, model)


def doubt(
    trained: JobSpec,
    figures: Mapping[str, float | None],
    kind: str,
    count: int,
    fitting: Fitting | None,
    model: str,
) -> str:
    """Return a sentence if the metrics of a training are nearly perfect, else an empty text.

    kind, count: of the rows that were measured: test, validation or training. model: name for the advice.
    """
    label, same = trained.label, kind == "training"
    if trained.forecast is not None or not count:  # the next step of a series is often near the last one
        return ""
    if label.has_classes:
        name = _near_perfect_class(figures, count, _most_frequent(label.column, fitting), same)
    elif not label.is_number:
        return ""
    else:
        r2 = figures.get("r2")
        enough = same or count >= FEWEST_NUMBERS
        name = "r2" if r2 is not None and r2 >= R2 and enough else ""
    if not name:
        return ""
    said = f"{name} {number(figures[name])} of {format_count(count, f'{kind} row')}"
    if same:
        return f"{said} says nothing about other rows: the model was trained on them; add VALIDATE 0.2"
    return (
        f"{said} is too good to be true of most data: look for a column that is known only when {label.column} is; "
        f"SELECT … TO EXPLAIN {expressions.model(model)} names the most important ones"
    )


def _most_frequent(column: str, fitting: Fitting | None) -> float:
    """Return the share of the most frequent class; 0 if it is not known."""
    summary = fitting.columns.get(column) if fitting is not None else None
    return summary.top[0][1] / summary.rows if summary is not None and summary.top else 0.0


def _near_perfect_class(
    figures: Mapping[str, float | None], count: int, most_frequent: float, same: bool
) -> str:
    """Return the name of a metric of classes that is nearly perfect, or an empty text."""
    accuracy, auc = figures.get("accuracy"), figures.get("auc")
    if "auc" in figures and auc is None:  # the rows have one class, of which a warning tells
        return ""
    if accuracy is not None and most_frequent < 1:
        least = accuracy if same else wilson(accuracy, count)[0]
        if (least - most_frequent) / (1 - most_frequent) >= BETTER_THAN_GUESSING:
            return "accuracy"
    others = count * (1 - most_frequent)
    if auc is not None and 0 < most_frequent < 1 and (same or others >= FEWEST_OTHERS):
        least = auc if same else hanley_mcneil(auc, others, count - others)[0]
        if least >= AUC:
            return "auc"
    return ""
