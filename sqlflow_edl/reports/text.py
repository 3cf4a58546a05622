"""Texts of specs, figures and sizes in the tables for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from edl import spec
from edl.data.cells import format_count
from edl.data.source import RowEstimate
from edl.jobs.trials import Trial
from edl.spec.forecast import Step
from edl.spec.job import ROW_LIMITS, TREES
from sqlflow_edl.analysis.checks.warning import format_share

if TYPE_CHECKING:
    from edl.models.fitting import ColumnSummary
    from edl.sources.pinning_cost import PinningCost

SHOWN = 8  # entries of a vocabulary, of boundaries, of classes, of frequent values
LEADING = 5  # columns of a summary, by their importance
LONGEST_LISTS = 200  # characters of lists in a list that are shown
LONGEST_CANDIDATE = 60  # characters of a candidate's name in a line
UNSEEN_WORDS = {"frequent": "unseen ones as the first", "other": "an id for unseen ones"}
STARTS = {"normal": "normally distributed", "zeros": "as zeros"}
LONGEST = 40  # characters of one entry
MOST_HOURS = 100  # of a duration that is not written in days
_MOMENTS = ("mean", "min", "max", "boundaries")  # facts of a feature that are dates or times, as its column
Types = Mapping[str, str]


def feature(column: spec.Feature | spec.Category, types: Types = MappingProxyType({})) -> str:
    """Describe a feature: `standardize, mean 44.5, std 14.43`; `one-hot of vocabulary, 2 values: a, b`.

    types: Arrow types by column; figures of dates and times are written as such.
    """
    describe = DESCRIPTIONS.get(type(column))
    if describe is not None:
        return describe(column, types)
    type_ = _type(column, types)
    facts = [
        _fact(field, value, type_)
        for field, value in msgspec.structs.asdict(column).items()
        if field not in ("column", "columns", "part", "unseen")
        and value not in ((), "", None, msgspec.UNSET)
        and not (field == "limit" and value == 0)
    ]
    unseen = f"; {UNSEEN_WORDS[column.unseen]}" if spec.is_category(column) and column.unseen else ""
    return ", ".join([column.noun, *facts]) + unseen


def column_types(query: spec.Query) -> Types:
    """Return the Arrow types of the columns of a query."""
    return {field.name: field.type for field in query.schema}


_PLAIN_TYPES = {
    "int": "whole number",
    "uint": "whole number",
    "bool": "true or false",
    "date": "date",
    "timestamp": "date and time",
    "time": "time",
    "string": "text",
    "list": "list",
}


def plain_type(type_: str) -> str:
    """Name an Arrow type for people: text, date, number."""
    family = re.split("[^a-z]", type_.replace("large_", ""))[0]
    return _PLAIN_TYPES.get(
        family, "number" if family in ("float", "double", "decimal", "halffloat") else type_
    )


def _type(column: Any, types: Types) -> str:
    """Return the Arrow type of the column of a feature if its numbers are dates or times, else an empty text."""
    type_ = types.get(column.column, "") if isinstance(getattr(column, "column", None), str) else ""
    return type_ if is_temporal(type_) and not column.part else ""


def _embedding(column: spec.Embedding, types: Types) -> str:
    combined = "" if column.combiner == "sum" else f", combined by {column.combiner}"
    start = "" if column.initial == "uniform" else f", starts {STARTS[column.initial]}"
    table = f", vectors of the shared table {column.table}" if column.table else ""
    return f"embedding of {feature(column.category, types)}; {column.dim:,} wide{combined}{start}{table}"


def _piecewise_linear(column: spec.PiecewiseLinear, types: Types) -> str:
    nulls = ", and one for NULL" if column.nulls else ""
    type_ = _type(column, types)
    edges = (
        join_first(moment(edge, type_) for edge in column.boundaries)
        if type_
        else join_first(column.boundaries)
    )
    return f"piecewise linear, {format_count(column.bins, 'bin')}{nulls}: {edges}"


def _periodic(column: spec.Periodic, types: Types) -> str:
    type_ = _type(column, types)
    moments = f"{_fact('mean', column.mean, type_)}, {_fact('std', column.std, type_)}"
    return f"periodic, {column.frequencies:,} frequencies, {moments}"


def _target_mean(column: spec.TargetMean, types: Types) -> str:
    folds = f", out of {column.folds} folds" if column.folds else ""
    several = f"; {column.outputs:,} wide" if column.outputs > 1 else ""
    return f"mean label of {feature(column.category, types)}; smoothing {column.smoothing:g}{folds}{several}"


def _group_mean(column: spec.GroupMean, types: Types) -> str:
    what = f"{column.number} less its mean" if column.difference else f"mean of {column.number}"
    return f"{what} by {feature(column.category, types)}"


def _cross(crossed: spec.Cross, types: Types) -> str:
    parts = (part if isinstance(part, str) else feature(part, types) for part in crossed.columns)
    of = "" if all(isinstance(part, str) for part in crossed.columns) else f" of {' and '.join(parts)}"
    return f"cross{of}, buckets {crossed.size:,}"


DESCRIPTIONS: Mapping[type, Callable[[Any, Types], str]] = {
    spec.Cross: _cross,
    spec.Sequence: lambda column, types: (
        f"sequence of {feature(column.category, types)}; the last {column.length:,}"
    ),
    spec.OneHot: lambda column, types: (
        f"one-hot of {feature(column.category, types)}; {spec.width(column):,} wide"
    ),
    spec.Embedding: _embedding,
    spec.TargetMean: _target_mean,
    spec.LogCount: lambda column, types: f"log of the number of rows of {feature(column.category, types)}",
    spec.GroupMean: _group_mean,
    spec.Codes: lambda column, types: f"codes of {feature(column.category, types)}",
    spec.ListOf: lambda column, types: (
        f"list of {feature(column.category, types)}{', weighted' if column.weights else ''}"
    ),
    spec.NGrams: lambda column, types: (
        f"n-grams of {format_count(column.n, 'character')}, size {column.size:,}"
    ),
    spec.Concat: lambda column, types: (
        f"concat of {' and '.join(feature(each, types) for each in column.categories)}"
    ),
    spec.Vector: lambda column, types: (
        f"vector, {spec.width(column):,} numbers{', standardised' if column.std else ''}"
    ),
    spec.PiecewiseLinear: _piecewise_linear,
    spec.Periodic: _periodic,
}


def model(job: spec.JobSpec) -> str:
    """Return the name of the model; with several labels, without the first one's Classifier or Regressor."""
    name = job.model.name
    return name.removesuffix("Classifier").removesuffix("Regressor") if _has_several(job) else name


def _has_several(job: spec.JobSpec) -> bool:
    return bool(job.label.labels) and job.own is None


def label(spec_label: spec.Label) -> str:
    """Describe what is predicted."""
    return LABELS[type(spec_label)](spec_label)


def _number_label(spec_label: spec.RegressionLabel) -> str:
    offset = spec.label_offset(spec_label)
    mean = f"{offset + spec_label.mean:.12g}" if offset else number(spec_label.mean)
    return f"a number, mean {mean}, std {number(spec_label.std)}"


LABELS: Mapping[type, Callable[[Any], str]] = {
    spec.RegressionLabel: _number_label,
    spec.ClassLabel: lambda spec_label: (
        f"{len(spec_label.classes):,} classes: {join_first(spec_label.classes)}"
    ),
    spec.RankingLabel: lambda spec_label: f"a relevance, which orders the rows of each {spec_label.group}",
    spec.ClusterLabel: lambda spec_label: f"one of {spec_label.clusters:,} clusters, found without a label",
    spec.AnomalyLabel: lambda _: "true for unusual rows, found without a label",
    spec.ReductionLabel: lambda spec_label: (
        f"{spec_label.dimensions:,} numbers that stand for the features, found without a label"
    ),
    spec.ForecastLabel: lambda _: "a number, relative to the level and the scale of its series",
    spec.RawLabel: lambda _: "the model's outputs as they are",
    spec.NoLabel: lambda _: "none",
    spec.SeveralLabels: lambda spec_label: "; ".join(
        f"{part.column}: {label(part)}" for part in spec_label.labels
    ),
}


def columns(column: spec.Feature | spec.Category) -> str:
    return ", ".join(map(str, spec.sources(column)))


def features_with_inputs(job: spec.JobSpec) -> Iterator[tuple[spec.Feature, list[str]]]:
    """Yield each feature, with its input where the model has several; an ensemble's models have inputs of their own."""
    if job.members:
        yield from ((feature, []) for feature in job.features)
    for name, features in job.inputs.items():
        for feature in features:
            yield feature, [f"in {name}"] if len(job.inputs) > 1 else []


def left_out(columns: str, why: str, models: Sequence[spec.JobSpec], noun: str) -> str:
    """Describe why columns are left out, and by how many of the models; empty if all of them read the columns.

    columns: names with commas between them, or a part of a column. noun: what the models are.
    """
    names = set(columns.split(", "))
    without = sum(names.isdisjoint(model.columns) for model in models)
    if not without:
        return ""
    return why if without == len(models) else f"by {without:,} of {format_count(len(models), noun)}: {why}"


def settings(training: spec.Training) -> Iterator[tuple[str, str]]:
    """Yield name and value of each setting except those that reports show elsewhere."""
    for name, setting in msgspec.structs.asdict(training).items():
        if (
            name not in _SHOWN_ELSEWHERE
            and setting is not msgspec.UNSET
            and (setting or name not in _OPTIONAL)
        ):
            yield name, value(setting)


def split(spec_split: spec.Split) -> str:
    """Describe which rows are validation rows: `the latest by day, from 2024-03-01`."""
    match spec_split.by:
        case "time" if spec_split.folds:
            since = f", the last one from {spec_split.since}" if spec_split.since else ""
            gap = f", {number(spec_split.folds.gap)} after the training rows" if spec_split.folds.gap else ""
            return f"folds one after another by {text(spec_split.column)}{since}{gap}"
        case "time":
            return f"the latest by {text(spec_split.column)}" + (
                f", from {spec_split.since}" if spec_split.since else ""
            )
        case "group":
            return f"all of some values of {text(spec_split.column)}"
        case "column":
            return f"those that {text(spec_split.column)} marks"
        case "stratified":
            return f"the same share of each class of {text(spec_split.column)}"
    return "at random"


def backtest(spec_forecast: spec.Forecast) -> str:
    """Describe which rows validate a forecast: `the last 14 steps of each series`."""
    count = spec_forecast.horizon * spec_forecast.windows
    last = "last step" if count == 1 else f"last {count:,} steps"
    windows = f" in {spec_forecast.windows:,} windows" if spec_forecast.windows > 1 else ""
    return f"the {last}{' of each series' if spec_forecast.series else ''}{windows}"


def forecast(spec_forecast: spec.Forecast | None) -> Iterator[tuple[str, str]]:
    """Yield name and value of what is known of the series that a model forecasts."""
    if spec_forecast is None:
        return
    yield "time", spec_forecast.time
    yield "series", ", ".join(spec_forecast.series) or "one"
    yield "step", Step.parse(spec_forecast.step).words
    yield "season", f"{spec_forecast.season:,} steps" if spec_forecast.season > 1 else "none"
    yield "horizon", format_count(spec_forecast.horizon, "step")
    yield "lags", f"{spec_forecast.lags:,}"
    yield "windows", f"{spec_forecast.windows:,}"
    if spec_forecast.holidays:
        yield "holidays", spec_forecast.holidays
    if spec_forecast.non_negative:
        yield "non_negative", "yes"
    yield "refit", "on all rows after the backtest" if spec_forecast.refit else "no"


_OPTIONAL = ("time_limit", "calibration", "threshold", *ROW_LIMITS)
_SHOWN_ELSEWHERE = ("epochs", "batch_size", "max_steps", "validation_fraction")


def summary(column_summary: ColumnSummary, type_: str = "") -> str:
    """Describe a column: `1,080 rows, 2.5 % NULL, 20 to 69, mean 44.5, std 14.43`.

    type_: its Arrow type; the figures of dates and times are seconds.
    """
    temporal = is_temporal(type_)
    shown = partial(moment, type_=type_) if temporal else number
    parts = [f"{column_summary.rows:,} rows", nulls(column_summary)]
    if column_summary.min is not None and column_summary.max is not None:
        parts.append(f"{shown(column_summary.min)} to {shown(column_summary.max)}")
    if column_summary.mean is not None and column_summary.std is not None:
        spread = duration(column_summary.std) if temporal else number(column_summary.std)
        parts.append(f"mean {shown(column_summary.mean)}, std {spread}")
    if column_summary.distinct is not None:
        parts.append(
            f"{'more than ' if column_summary.countless else ''}{column_summary.distinct:,} different"
        )
    if column_summary.top:
        most = ", ".join(f"{text(value)} ({count:,})" for value, count in column_summary.top[:SHOWN])
        parts.append(f"most often {most}")
    return ", ".join(parts)


def is_temporal(type_: str) -> bool:
    """Return True for the Arrow types of dates and times; their figures are seconds."""
    return type_.startswith(("date", "timestamp", "time"))


def moment(seconds: float, type_: str) -> str:
    """Format a date or time of an Arrow type, given in seconds since 1970 in UTC, or since midnight."""
    try:
        time = datetime.fromtimestamp(round(seconds), UTC)
    except (OverflowError, ValueError, OSError):  # of a year that Python does not have
        return f"{number(seconds)} s"
    if type_.startswith("date"):
        return f"{time:%Y-%m-%d}"
    return f"{time:%Y-%m-%d %H:%M:%S}" if type_.startswith("timestamp") else f"{time:%H:%M:%S}"


def nulls(column_summary: ColumnSummary) -> str:
    """Format the share of NULLs: no NULL, 2.5 % NULL, below 0.1 % NULL."""
    if not column_summary.nulls:
        return "no NULL"
    share = column_summary.nulls / column_summary.rows
    return f"{percent(share)} NULL" if share >= 0.001 else "below 0.1 % NULL"


def format_figures(by_name: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {number(value)}" for name, value in by_name.items())


def value(item: object) -> str:
    """Format a parameter or setting as a statement would write it, or the number of lists in a long one."""
    if isinstance(item, tuple | list):
        written = f"[{', '.join(map(value, item))}]"
        has_lists = any(isinstance(part, tuple | list) for part in item)
        return f"{len(item)} lists" if has_lists and len(written) > LONGEST_LISTS else written
    if isinstance(item, bool):
        return str(item).upper()
    return f"{item:.10g}" if isinstance(item, float) else text(item)


def candidate(name: str) -> str:
    """Return the name of a candidate of a search for a line; of a long one without settings, which SHOW TRIALS has."""
    return name if len(name) <= LONGEST_CANDIDATE else f"{name.partition(', ')[0]}, …"


def number(amount: float | None) -> str:
    """Format a computed number with four significant digits; a larger whole part is kept: 0.1682, 12346."""
    if amount is None:
        return "not defined"
    return f"{amount:.0f}" if 1e4 <= abs(amount) < 1e15 else f"{amount:.4g}"


def percent(share: float | None) -> str:
    """Format a share with one decimal: 34.2 %."""
    return "not defined" if share is None else format_share(share)


def leading_shares(columns: Mapping[str, float]) -> str:
    """List the most important columns by their shares: `tenure 34.2 %, calls 27.6 %; 8 others`."""
    listed = [f"{name} {percent(share)}" for name, share in list(columns.items())[:LEADING]]
    others = len(columns) - len(listed)
    return ", ".join(listed) + (f"; {others:,} other{'s' if others > 1 else ''}" if others else "")


def length_of_refit(trial: Trial) -> str:
    """Return the length of a model's training on all rows: `153 rounds` of trees, or `20 epochs`."""
    return _length(trial, trial.refit or 0)


def length_of_trial(trial: Trial) -> str:
    """Return the length of a trial's training: `153 rounds` of trees, or `20 epochs`; empty for a trial that failed."""
    return _length(trial, trial.epochs) if trial.epochs else ""


def _length(trial: Trial, count: int) -> str:
    name, _, library = trial.name.partition(",")[0].partition(" (")
    from sqlflow_edl.analysis.catalog import MODELS

    named = MODELS.find(name)  # a candidate of a search by one model does not name the library
    of_trees = library.rstrip(")") in TREES or (named is not None and set(named.frameworks) <= set(TREES))
    return format_count(count, "round" if of_trees else "epoch")


def join_first(values: Iterable[object], shown: int = SHOWN) -> str:
    """Join the first values, with an ellipsis if there are more."""
    words = [number(item) if isinstance(item, float) else value(item) for item in values]
    return ", ".join([*words[:shown], *(["…"] if len(words) > shown else [])])


def text(item: object) -> str:
    """Shorten a value to one line of limited length."""
    line = " ".join(str(item).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def size(count: float) -> str:
    """Format bytes in the unit that suits them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError  # the last unit returns


def pinned_rows(estimate: RowEstimate, cost: PinningCost) -> str:
    """Describe the rows that a job copies first: about 12,000,000 rows, 520.0 MB; about 14 s and 1.2 GB of memory."""
    if not estimate.is_counted:
        about = "up to about" if estimate.is_bound else "about"
        counted = f"{about} {_round(estimate.rows):,} rows"
    else:
        counted = f"{estimate.rows:,} row{'s' * (estimate.rows != 1)}"
    takes = [] if cost.seconds is None else [_roughly(cost.seconds)]
    takes += [f"{size(_round(cost.memory))} of memory"] if cost.memory else []
    costs = f"; {' and '.join(takes)}" if takes else ""
    return f"{counted}, about {size(_round(estimate.size))}{costs}"


def _roughly(seconds: float) -> str:
    """Format the estimate of a duration."""
    if seconds < 1:
        return "less than a second"
    if seconds < 100:
        return f"about {_round(seconds)} s"
    return f"about {_round(seconds / 60)} min" if seconds < 6000 else f"about {_round(seconds / 3600)} h"


def _round(number: float) -> int:
    """Round to two digits, or to a whole number."""
    unit = int("1" + "0" * (len(str(round(number))) - 2))
    return round(number / unit) * unit


def duration(seconds: float) -> str:
    """Format a duration: 0.25 s, 42.4 s, 3 min 5 s, 2 h 10 min, 776 days."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    if minutes < MOST_HOURS * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes / (24 * 60):,.0f} days"


def _fact(field: str, fact: object, type_: str = "") -> str:
    """Format a fact of a feature. type_: of a column of dates or times."""
    if type_ and field in _MOMENTS:
        values = fact if isinstance(fact, tuple) else (fact,)
        shown = join_first(moment(item, type_) for item in values)
        return f"{len(values):,} {field}: {shown}" if isinstance(fact, tuple) else f"{field} {shown}"
    if type_ and field == "std" and isinstance(fact, float):
        return f"{field} {duration(fact)}"
    if isinstance(fact, tuple):
        return f"{len(fact):,} {field}: {join_first(fact)}"
    name = {"size": "buckets"}.get(field, field)
    if isinstance(fact, float):
        return f"{name} {number(fact)}"
    return f"{name} {fact:,}" if isinstance(fact, int) else f"{name} {value(fact)}"
