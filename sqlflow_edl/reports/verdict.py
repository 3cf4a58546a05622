"""Verdict on a model in words: how good it is on some rows, beside a guess without a model.

Of classes the guess is the most frequent one of the same rows, and of numbers their mean: R² is 1 minus the ratio of
both squared errors, so that the guess has the root mean square error RMSE / sqrt(1 - R²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from edl.data.cells import format_count
from edl.models.archive import Archive
from edl.spec import Label, Residuals
from sqlflow_edl.reports.intervals import hanley_mcneil, measured_rows
from sqlflow_edl.reports.text import number, percent, value

Figures = Mapping[str, float | None]

RANKS = 0.65  # auc from which on the order of the probabilities is worth a word
FEWEST = 10  # rows of each class from which on a reversed ranking is no chance
GUESSED_AUC = 0.5  # of probabilities that say nothing of the class


def verdict(archive: Archive) -> str:
    """Return sentences about the metrics of a classifier or a regression, or an empty text of other models."""
    label, (kind, count) = archive.spec.label, measured_rows(archive)
    rows = format_count(count, f"{kind} row")
    if archive.spec.forecast is not None or not count:
        return ""
    if label.has_classes:
        confusion = archive.calibration.confusion if archive.calibration is not None else ()
        return " ".join(_of_classes(label, archive.metrics, rows, [math.fsum(row) for row in confusion]))
    if label.is_number:
        exact = archive.residuals if archive.residuals and archive.residuals.rows == count else None
        return " ".join(_of_numbers(archive.metrics, rows, exact))
    return ""


def verdict_of_evaluation(label: Label, figures: Figures, count: int, sizes: Sequence[float]) -> str:
    """Return sentences about metrics of so many rows. sizes: rows of each class, or their weights; empty if unknown."""
    rows = format_count(count)
    if label.has_classes:
        return " ".join(_of_classes(label, figures, rows, sizes))
    return " ".join(_of_numbers(figures, rows, None)) if label.is_number else ""


def _of_classes(label: Label, figures: Figures, rows: str, sizes: Sequence[float]) -> Iterator[str]:
    accuracy = figures.get("accuracy")
    if accuracy is None:
        return
    guess = _most_frequent(label, sizes)
    said = f"Right in {percent(accuracy)} of {rows}"
    if guess is None:
        yield f"{said}."
    else:
        name, share = guess
        yield f"{said}; always {name}: {percent(share)}."
        if accuracy < share:
            yield f"So it is less often right than always {name}."
        elif accuracy == share:
            yield f"So it is no more often right than always {name}."
    if label.is_binary:
        if len(sizes) == 2 and not sizes[1]:
            yield f"None of the rows is {value(label.classes[1])}."
        else:
            yield from _of_positive_class(value(label.classes[1]), figures)
        yield from _reversed_ranking(value(label.classes[1]), figures, sizes)


def _most_frequent(label: Label, sizes: Sequence[float]) -> tuple[str, float] | None:
    """Return the most frequent class of the rows and its share; None where the sizes of the classes are not known."""
    if len(sizes) != len(label.classes) or not (total := math.fsum(sizes)):
        return None
    most = max(range(len(sizes)), key=sizes.__getitem__)
    return value(label.classes[most]), sizes[most] / total


def _of_positive_class(name: str, figures: Figures) -> Iterator[str]:
    recall, precision = figures.get("recall"), figures.get("precision")
    if not recall:
        if recall == 0:
            yield f"It finds no row of {name}.{_ranking(name, figures)}"
    elif precision is not None:
        yield f"It finds {percent(recall)} of {name}; {percent(precision)} of those that it calls {name} are {name}."
    else:
        yield f"It finds {percent(recall)} of {name}."


def _ranking(name: str, figures: Figures) -> str:
    """Say that the probabilities tell the rows apart, though none of them reaches the threshold; else an empty text."""
    auc = figures.get("auc")
    if auc is None or auc < RANKS:
        return ""
    return (
        f" Yet its probabilities put rows of {name} above the others (auc {number(auc)}): "
        "WITH predict.threshold = f1 finds some of them."
    )


def _reversed_ranking(name: str, figures: Figures, sizes: Sequence[float]) -> Iterator[str]:
    """Yield a sentence if the probabilities rank the rows of both classes the wrong way round, beyond chance."""
    auc = figures.get("auc")
    if auc is None or auc > 1 - RANKS or len(sizes) != 2 or min(sizes) < FEWEST:
        return
    if hanley_mcneil(auc, sizes[1], sizes[0])[1] < GUESSED_AUC:
        yield (
            f"Its probabilities put rows of {name} below the others (auc {number(auc)}): are the two classes "
            "exchanged, in the model or in these rows?"
        )


def _of_numbers(figures: Figures, rows: str, residuals: Residuals | None) -> Iterator[str]:
    rmse, r2 = figures.get("rmse"), figures.get("r2")
    if rmse is None:
        return
    said = f"Off by {_amount(rmse)} (root mean square) on {rows}"
    if r2 is None or r2 >= 1:
        yield f"{said}."
    else:
        yield f"{said}; always their mean: {_amount(rmse / math.sqrt(1 - r2))}."
        if r2 <= 0:
            yield f"So it is {'worse' if r2 < 0 else 'no better'} than always the mean."
    if residuals is not None and residuals.quantiles:
        middle = residuals.quantiles[(len(residuals.quantiles) - 1) // 2]
        yield f"Half of the rows are off by at most {_amount(middle)}."


def _amount(amount: float) -> str:
    """Format a number with separators of thousands, if it is large."""
    return f"{amount:,.0f}" if 1e3 <= abs(amount) < 1e15 else number(amount)
