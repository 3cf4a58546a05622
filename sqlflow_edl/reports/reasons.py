"""Explanation of one row in words: the value of each column, what is usual, and its contribution to the prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from edl.models.archive import Archive
from edl.models.fitting import Bins, ColumnSummary
from edl.spec import TREES, JobSpec
from sqlflow_edl.reports import table
from sqlflow_edl.reports.importances import unit
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import column_types, is_temporal, moment, number, text

if TYPE_CHECKING:
    import pyarrow as pa

LISTED = 3  # reasons of the message
USUAL = 0.1  # share of the rows from which the most frequent value is usual
TOLERANCE = 0.02  # of the share of numbers below a median, which is one of the deciles of a sample
_COLUMNS = ("feature", "value", "usual", "contribution", "reason")


@dataclass(frozen=True, slots=True)
class Reason:
    """Contribution of a column to a prediction. usual: empty if it is not known."""

    column: str
    value: str
    usual: str
    contribution: float

    @property
    def words(self) -> str:
        """Reason as words: `tenure 2, usually 26: +0.21`."""
        usual = f", usually {self.usual}" if self.usual and self.usual != self.value else ""
        as_usual = ", as usual" if self.usual == self.value else ""
        return f"{self.column} {self.value}{usual}{as_usual}: {format_contribution(self.contribution)}"


def explained_row(result: Result, used: JobSpec, model: Archive) -> Result:
    """Return the explanation of one row as a row for each column, the largest contribution first.

    result: of EXPLAIN for each row. used: JobSpec of the EXPLAIN.
    """
    import pyarrow as pa

    [row] = result.to_arrow().to_pylist()
    names = result.computed
    shares = names[len(names) - len(used.columns) :]
    base = row[names[len(names) - len(used.columns) - 1]]
    usual = usual_values(model)
    of_training = {
        column: usual.get(trained_name, "")
        for column, trained_name in zip(used.columns, model.spec.columns, strict=True)
    }
    contributions = {column: row[share] or 0.0 for column, share in zip(used.columns, shares, strict=True)}
    row_reasons = reasons(row, contributions, of_training)
    types = {**dict.fromkeys(_COLUMNS, pa.string()), "contribution": pa.float64()}
    rows = (
        (reason.column, reason.value, reason.usual or None, reason.contribution, reason.words)
        for reason in row_reasons
    )
    return replace(
        result,
        reader=table.make_typed_reader(types, rows),
        message=describe_prediction(used, names[0], row[names[0]], base, row_reasons),
        computed=("contribution",),
    )


def reasons(
    row: Mapping[str, Any], contributions: Mapping[str, float], usual: Mapping[str, str]
) -> list[Reason]:
    """Return the contributions of the columns to the prediction of a row, the largest first."""
    unsorted = [
        Reason(column, _format_value(row[column]), usual.get(column, ""), contribution)
        for column, contribution in contributions.items()
    ]
    return sorted(unsorted, key=lambda reason: -abs(reason.contribution))


def describe_prediction(
    used: JobSpec, predicted: str, value: object, base: float, row_reasons: Sequence[Reason]
) -> str:
    """Return the prediction in words, what it is on average, and the main reasons.

    predicted: the column of the value.
    """
    total = base + sum(reason.contribution for reason in row_reasons)
    of = unit(used, is_margin=used.framework in TREES)
    what = f"; {of} is {number(total)}" if used.label.has_classes else ""
    is_ = f"{predicted} is {_format_value(value)}{what}, on average {number(base)}"
    main = "; ".join(reason.words for reason in row_reasons[:LISTED] if reason.contribution)
    return f"{is_}: {main}" if main else is_


def format_contribution(contribution: float) -> str:
    """Format a contribution with its sign and two digits, or its whole part: +0.21, -0.07, +12346."""
    return f"{contribution:+.0f}" if abs(contribution) >= 10 else f"{contribution:+.2g}"


def _format_value(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return str(value).upper()
    return number(value) if isinstance(value, float) else text(value)


# What is usual --------------------------------------------------------------------------------------------------


def usual_values(model: Archive) -> dict[str, str]:
    """Return the median or the most frequent value of each column of the training rows, as far as it is known."""
    types = column_types(model.spec.query)
    summaries = model.fitting.columns if model.fitting is not None else {}
    kept = model.background()
    values = {name: _of_summary(summary, types.get(name, "")) for name, summary in summaries.items()}
    for name in model.spec.columns:
        if not values.get(name) and kept is not None and name in kept.schema.names:
            values[name] = _of_rows(kept.column(name))
    return values


def _of_summary(summary: ColumnSummary, type_: str) -> str:
    if type_ == "bool":
        return "" if summary.mean is None else _format_value(summary.mean >= 0.5)
    middle = summary.mean if summary.bins is None else _median(summary.bins)
    if middle is not None:
        if is_temporal(type_):
            return moment(middle, type_)
        return f"{middle:.0f}" if type_.startswith(("int", "uint")) else number(middle)
    if not summary.top:
        return ""
    value, count = summary.top[0]
    return _format_value(value) if count >= USUAL * summary.rows else ""


def _median(bins: Bins) -> float | None:
    """Return the largest edge that at most half of the numbers lie below, or a little more."""
    total, below = sum(bins.counts), 0
    median_edge = None
    for edge, count in zip(bins.edges, bins.counts, strict=False):
        below += count
        if below <= (0.5 + TOLERANCE) * total:
            median_edge = edge
    return median_edge


def _of_rows(values: pa.Array) -> str:
    """Return the median of numbers, or a frequent value of others, among the rows that a model keeps."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = values.drop_null()
    if not len(present) or pa.types.is_nested(present.type):
        return ""
    if pa.types.is_integer(present.type) or pa.types.is_floating(present.type):
        return _format_value(pc.quantile(present, 0.5, interpolation="lower")[0].as_py())
    most = max(pc.value_counts(present).to_pylist(), key=lambda counted: counted["counts"])
    return _format_value(most["values"]) if most["counts"] >= USUAL * len(values) else ""
