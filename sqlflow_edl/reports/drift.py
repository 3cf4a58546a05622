"""Report of drift: a row per column, and the sentence about all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from edl.data.cells import format_count
from sqlflow_edl.reports import table
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import number, percent

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlflow_edl.analysis.checks.drift import ColumnDrift

SHOWN = ("column", "verdict", "why", "PSI", "NULLs", "unseen", "outside", "range")  # of `cells`


def rows(comparisons: Sequence[ColumnDrift]) -> pa.RecordBatchReader:
    """Return the comparisons as a result set."""
    import pyarrow as pa

    columns = {
        "column": pa.string(),
        "verdict": pa.string(),
        "why": pa.string(),
        **dict.fromkeys(("psi", "nulls_then", "nulls_now", "unseen", "outside"), pa.float64()),
        **dict.fromkeys(("min_then", "max_then", "min_now", "max_now"), pa.float64()),
    }
    values = (
        (
            *(
                column_drift.column,
                column_drift.verdict,
                column_drift.why,
                column_drift.psi,
                column_drift.nulls_then,
                column_drift.nulls_now,
            ),
            *(column_drift.unseen, column_drift.outside, *column_drift.then, *column_drift.now),
        )
        for column_drift in comparisons
    )
    return table.make_typed_reader(columns, values)


def add_drift(result: Result, comparisons: Sequence[ColumnDrift] | None, model: str) -> Result:
    """Add the comparisons to the result of a statement, if there are any."""
    if comparisons is None:
        return result
    message = "; ".join(filter(None, (result.message, sentence(comparisons, model))))
    return replace(result, message=message, reader=rows(comparisons), view="drift")


def sentence(comparisons: Sequence[ColumnDrift], model: str) -> str:
    """Name the columns that drifted: `2 of 5 columns drifted from the training rows of m@1: age (NULLs), city (…)`."""
    drifted = [
        f"{column_drift.column} ({column_drift.why})"
        for column_drift in comparisons
        if column_drift.verdict == "drifted"
    ]
    count = f"{len(drifted):,} of {format_count(len(comparisons), 'column')}" if drifted else "no column"
    unknown = ", ".join(
        column_drift.column for column_drift in comparisons if column_drift.verdict == "unknown"
    )
    return (
        f"{count} drifted from the training rows of {model}"
        + (": " if drifted else "")
        + ", ".join(drifted)
        + (f"; there are no statistics of {unknown}" if unknown else "")
    )


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Format a row of the result set for people, under the headings `SHOWN`."""
    ranges = [_range(row[f"min_{when}"], row[f"max_{when}"]) for when in ("then", "now")]
    return (
        row["column"],
        row["verdict"],
        row["why"],
        f"{row['psi']:.3f}" if row["psi"] is not None else "",
        _change([percent(row["nulls_then"]), _share(row["nulls_now"])]),
        _share(row["unseen"]),
        _share(row["outside"]),
        _change(ranges),
    )


def _share(share: float | None) -> str:
    return "" if share is None else percent(share)


def _range(least: float | None, most: float | None) -> str:
    return "" if least is None else f"{number(least)} to {number(most)}"


def _change(values: Sequence[str]) -> str:
    """Join then and now, unless they are the same."""
    return ", now ".join(filter(None, dict.fromkeys(values)))
