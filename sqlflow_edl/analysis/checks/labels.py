"""Checks of the label: a class that is nearly always right, errors of few rows, labels of the validation rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from edl import spec
from edl.features.arrays import Floats
from sqlflow_edl.analysis.checks.warning import (
    FEW_ROWS,
    FEWEST_OF_A_CLASS,
    FEWEST_OF_FEW,
    FEWEST_ROWS,
    FREQUENT_CLASS,
    SHIFT_ERRORS,
    SHIFTED_MEAN,
    SHIFTED_ODDS,
    SKEW,
    DataWarning,
    format_share,
)
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics

_SHOWN = 3  # classes that a warning names


def frequent_class(
    label: spec.Label, training: ColumnStatistics, validation: ColumnStatistics | None, job: spec.JobSpec
) -> Iterator[DataWarning]:
    """Yield a warning if one class has nearly all rows and the statement does nothing about it.

    validation: statistics of the label in the validation rows, if they are known.
    """
    counts = training.counts
    if not label.has_classes or counts is None:
        return
    often, rows = counts.counts[0], sum(counts.counts)
    if rows < FEWEST_ROWS or often < FREQUENT_CLASS * rows:
        return
    if rows - often < FEWEST_OF_A_CLASS:
        yield _too_few_others(label, training, validation)
        return
    trained = job.search.candidates[0].spec if job.search is not None else job
    if "class_weights" in trained.loss.params:
        return
    measures = "auc and f1" if label.is_binary else "f1"
    advice = f"compare {measures}; train.class_weights = balanced gives each class the same weight"
    if label.is_binary and job.training.threshold is None:
        advice += ", predict.threshold = f1 another threshold"
    yield DataWarning(
        label.column,
        f"{format_share(often / rows)} of the training rows are of the class {_literal(counts.values[0])}, and to "
        "predict it always is right as often, so accuracy says little",
        advice,
    )


def fractional_classes(label: spec.Label) -> Iterator[DataWarning]:
    """Yield a warning if the classes of a column of numbers have fractions: quantities, each of which becomes a class
    of its own.
    """
    if not label.has_classes:
        return
    if fractions := [class_ for class_ in label.classes if "." in str(class_)]:
        yield DataWarning(
            label.column,
            f"each of the {len(label.classes):,} different numbers of {label.column}, such as {fractions[0]}, is a "
            "class of its own, without an order",
            "train a regressor, such as DNNRegressor, if it is a quantity",
        )


def _too_few_others(
    label: spec.Label, training: ColumnStatistics, validation: ColumnStatistics | None
) -> DataWarning:
    """Return the warning of a label in which nearly no row differs from the most frequent class."""
    all_counts = [
        column_statistics.counts
        for column_statistics in (training, validation)
        if column_statistics is not None and column_statistics.counts is not None
    ]
    totals = Counter[object]()
    for counts in all_counts:
        totals.update(dict(zip(counts.values, counts.counts, strict=True)))
    (frequent, often), rows = totals.most_common(1)[0], totals.total()
    others = [value for value in label.classes if value != frequent]
    count = "1 row" if rows - often == 1 else f"{rows - often:,} rows"
    classes = f"the class{'es' if len(others) > 1 else ''} {_list_classes(others)}"
    return DataWarning(
        label.column,
        f"only {count} of {rows:,} {'is' if rows - often == 1 else 'are'} of {classes}: next to nothing can be learned "
        f"or measured of {'them' if len(others) > 1 else 'it'}, and to predict {_literal(frequent)} always is right in "
        f"{format_share(often / rows, 4)} of them",
        "select more rows of the rare class, perhaps with fewer of the others",
    )


def skew(label: spec.Label, labels: Floats, job: spec.JobSpec) -> Iterator[DataWarning]:
    """Yield a warning if a squared loss is decided by few rows. labels: a sample of them, (n,)."""
    if not label.is_number or job.loss.name != "mean_squared_error":
        return
    finite = labels[np.isfinite(labels)]
    few = int(FEW_ROWS * len(finite))
    if few < FEWEST_OF_FEW:
        return
    squares = np.sort(np.square(finite - finite.mean()))
    share = float(squares[-few:].sum() / total) if (total := squares.sum()) > 0 else 0.0
    if share < SKEW:
        return
    advice = "loss = huber or mean_absolute_error heeds them less"
    if finite.min() > 0:
        advice += f"; if relative errors matter, train on the logarithm: SELECT LN({label.column}) AS …"
    yield DataWarning(
        label.column,
        f"{format_share(FEW_ROWS, 0)} of the rows make up {format_share(share, 0)} of the variance of {label.column}, "
        "so few rows decide the model",
        advice,
    )


def held_out(
    label: spec.Label, training: ColumnStatistics, held_out: ColumnStatistics
) -> Iterator[DataWarning]:
    """Yield warnings about the labels of the validation rows if metrics over them say little."""
    if held_out.rows < 2:
        return
    if not label.has_classes:
        if held_out.constant and not label.group:
            yield DataWarning(
                "validation rows",
                f"{label.column} is the same in all {held_out.rows:,} validation rows",
                "r2 is undefined there; use more validation rows: VALIDATE 0.2",
            )
        return
    if training.counts is None or held_out.counts is None:
        return
    only = set(held_out.counts.values) - set(training.counts.values)
    missing = [class_ for class_ in label.classes if class_ not in set(held_out.counts.values)]
    advice = "use more validation rows (VALIDATE 0.2), or rows of every class: VALIDATE ON (SELECT …)"
    if len(held_out.counts.values) == 1:
        message = f"all {held_out.rows:,} validation rows have the same class, {_literal(held_out.counts.values[0])}"
        yield DataWarning("validation rows", f"{message}: their metrics say little", advice)
    elif missing:
        message = (
            f"no validation row is of the class{'es' if len(missing) > 1 else ''} {_list_classes(missing)}"
        )
        yield DataWarning("validation rows", f"{message}, so no metric covers it", advice)
    if only:
        classes = f"class{'es' if len(only) > 1 else ''} {_list_classes(sorted(only, key=str))}"
        message = f"only validation rows are of the {classes}"
        yield DataWarning(
            "training rows", f"{message}, which the model cannot learn", "select more rows of every class"
        )


def shift_warnings(
    label: spec.Label, training: ColumnStatistics, held_out: ColumnStatistics, split: spec.Split | None
) -> Iterator[DataWarning]:
    """Yield a warning if the labels of the held-out rows differ strongly from the labels of the training rows.

    split: None if the rows have a query of their own, or are the last ones.
    """
    sentence = None
    if label.has_classes:
        sentence = _shifted_class(training, held_out)
    elif label.is_number:
        sentence = _shifted_mean(label.column, training, held_out)
    if sentence is None:
        return
    by = f" by {split.column}" if split is not None and split.by in ("time", "group", "column") else ""
    advice = "validate on rows like those that are to be predicted"
    if by:
        other = "stratified" if label.has_classes else "random"
        advice = f"if the rows to be predicted are not like these, write validation.split = {other}"
    yield DataWarning(
        "validation rows",
        f"{sentence}: the {held_out.rows:,} rows held out{by} are unlike the others",
        advice,
    )


def _shifted_class(training: ColumnStatistics, held_out: ColumnStatistics) -> str | None:
    """Return the class with the largest difference in share, and both shares, if chance does not explain it."""
    if training.counts is None or held_out.counts is None or len(held_out.counts.values) < 2:
        return None
    before, after = (
        dict(zip(some_counts.values, some_counts.counts, strict=True))
        for some_counts in (training.counts, held_out.counts)
    )
    rows, others = sum(before.values()), sum(after.values())
    both = [value for value in before if value in after]
    if not both or not others:
        return None
    most = max(both, key=lambda value: abs(before[value] / rows - after[value] / others))
    share, now = before[most] / rows, after[most] / others
    mean = (before[most] + after[most]) / (rows + others)
    error = (mean * (1 - mean) * (1 / rows + 1 / others)) ** 0.5
    odds = [part_share / (1 - part_share) for part_share in (share, now) if part_share < 1]
    if len(odds) < 2 or max(odds) < SHIFTED_ODDS * min(odds) or abs(share - now) < SHIFT_ERRORS * error:
        return None
    return (
        f"the class {_literal(most)} has {format_share(now)} of the validation rows and {format_share(share)} of the "
        "training rows"
    )


def _shifted_mean(column: str, training: ColumnStatistics, held_out: ColumnStatistics) -> str | None:
    """Return both means if they are far apart, and chance does not explain it."""
    if not (training.numbers and held_out.numbers and training.std > 0):
        return None
    apart = abs(held_out.mean - training.mean)
    if apart < max(SHIFTED_MEAN, SHIFT_ERRORS * held_out.numbers**-0.5) * training.std:
        return None
    means = f"{held_out.mean:.4g} in the validation rows and {training.mean:.4g} in the training rows"
    return f"the mean of {column} is {means}"


def _list_classes(classes: Sequence[object]) -> str:
    shown = ", ".join(map(_literal, classes[:_SHOWN]))
    return f"{shown} and {len(classes) - _SHOWN:,} more" if len(classes) > _SHOWN else shown


def _literal(value: object) -> str:
    """Return a class as SQL writes it."""
    return str(value).upper() if isinstance(value, bool) else repr(value)
