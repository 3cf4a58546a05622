"""Result sets for people, each in the form that its `view` names.

A confusion matrix is a grid, an explanation has bars, a description has sections. A result that does not fit
its form, and every other result, is a table; where that is wider than the terminal, a record for each row.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any

from edl.data.cells import format_count
from edl.spec import ScoreCurve
from sqlflow_edl.charts.curves import area, roc_points
from sqlflow_edl.display.grid import grid
from sqlflow_edl.display.listing import ListLayout, listing
from sqlflow_edl.display.output import (
    FOR_PEOPLE,
    SHOWN_ROWS,
    WRITERS,
    FirstRows,
    as_table,
    first_rows,
    table_width,
    write_records,
    write_rows,
)
from sqlflow_edl.display.plot import plot_shares
from sqlflow_edl.display.terminal import Capabilities, capabilities, console, in_ascii
from sqlflow_edl.reports.drift import SHOWN as COLUMNS_OF_DRIFT
from sqlflow_edl.reports.drift import cells
from sqlflow_edl.reports.result import Result, View
from sqlflow_edl.reports.text import number, percent, size

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table

OTHERS = "--format csv has all"
MOST_RECORDS = 20  # limit for a table that is wider than the terminal, as each record takes many lines
LONGEST_BAR, SHORTEST_BAR = 40, 8  # cells
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_WITH_SHARES = ("confusion_matrix", "importances")  # views with a share as the last column


@dataclass(frozen=True, slots=True)
class Shown:
    """Result set in its form. footer: remark below it, or empty. drawing: lines above it."""

    table: Table
    footer: str = ""
    drawing: Sequence[str] = ()


def write_file(result: Result, out: IO[str], format_: str) -> str:
    """Write all rows of the result, with all their digits, and return the footer."""
    reader = _reader(result)
    if format_ not in FOR_PEOPLE:
        return WRITERS[format_](reader, out)
    rows = first_rows(reader, math.inf)
    (write_records if format_ == "vertical" else write_rows)(rows.columns, rows.rows, out)
    return rows.footer("")


def write(
    result: Result,
    out: IO[str],
    format_: str = "table",
    *,
    most: int = SHOWN_ROWS,
    others: str = OTHERS,
    types: bool = False,
) -> str:
    """Write the result for people or in a format for programs, and return the footer.

    most: limit on the rows of a table. others: how to see the omitted rows and columns. types: show column
    types where there is room.
    """
    if format_ not in FOR_PEOPLE:
        return WRITERS[format_](_reader(result), out)
    view, terminal, vertical = VIEWS.get(result.view), capabilities(out), format_ == "vertical"
    rows = first_rows(_reader(result), math.inf if view else most)
    shown = view(rows, terminal, others) if view and not vertical else None
    if shown is not None:
        out.writelines(f"{line}\n" for line in shown.drawing)
        _print(shown.table, out, terminal)
        return shown.footer
    rows = format_computed(replace(rows, rows=rows.rows[:most]), result, terminal.is_terminal)
    if vertical or (terminal.is_terminal and is_too_wide(rows, terminal)):
        rows = rows if vertical else replace(rows, rows=rows.rows[:MOST_RECORDS])
        write_records(rows.columns, rows.rows, out)
    else:
        with_types = types and terminal.is_terminal and not is_too_wide(rows, terminal, rows.types)
        write_rows(rows.columns, rows.rows, out, types=rows.types if with_types else ())
    return rows.footer(others)


def _print(table: Table, out: IO[str], terminal: Capabilities) -> None:
    """Print a table; in a file its lines have no blanks at their ends, which Rich pads to the same width."""
    if terminal.is_terminal:
        console(out).print(table)
        return
    text = io.StringIO()
    console(text).print(table)
    out.writelines(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _reader(result: Result) -> pa.RecordBatchReader:
    if result.reader is None:
        raise ValueError("the statement has no rows")
    return result.reader


def is_too_wide(rows: FirstRows, terminal: Capabilities, types: Sequence[str] = ()) -> bool:
    return table_width(as_table(rows.columns, rows.rows, types)) > terminal.width


def format_computed(first: FirstRows, result: Result, is_terminal: bool) -> FirstRows:
    """Format computed numbers in four digits and shares in percent; other values stay unchanged.

    Predictions are the rows of a query, and keep all their digits unless they go to a terminal.
    """
    names = [name for name, _ in first.columns]
    short = {*result.computed} if is_terminal or result.view != "rows" else set()
    texts: list[Callable[[Any], Any]] = [_short if name in short else _as_it_is for name in names]
    if result.view in _WITH_SHARES and texts:
        texts[-1] = _percent
    rows = [tuple(text(value) for text, value in zip(texts, row, strict=True)) for row in first.rows]
    return replace(first, rows=rows)


def _as_it_is(value: Any) -> Any:
    return value


def _short(value: Any) -> Any:
    return number(value) if isinstance(value, float) else value


def _percent(value: Any) -> Any:
    return percent(value) if isinstance(value, float) else value


# Forms -----------------------------------------------------------------------------------------------------


def shorten_sections(first: FirstRows) -> FirstRows:
    """Keep the first rows of each section, and say in a row of its own how many more there are."""
    rows: list[Sequence[Any]] = []
    for section, some in itertools.groupby(first.rows, key=itemgetter(0)):
        section_rows = list(some)
        rows += section_rows[:SHOWN_ROWS]
        if len(section_rows) > SHOWN_ROWS:
            rows.append(
                (section, f"{len(section_rows) - SHOWN_ROWS:,} more", *[""] * (len(section_rows[0]) - 2))
            )
    return replace(first, rows=rows)


def sections(first: FirstRows, terminal: Capabilities, others: str) -> Shown:
    """Show a title for each section, with its names, values and reasons below."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold", max_width=max(16, terminal.width // 3))
    for _ in first.columns[2:]:
        table.add_column(overflow="fold")
    before, short = None, shorten_sections(first)
    for section, name, *values in short.rows:
        begins, before = section != before, section
        if begins and table.row_count:
            table.add_row()
        if begins and name:
            table.add_row(Text(section, "bold"))
        texts = [Text(value if terminal.blocks else in_ascii(value)) for value in values]
        for text in texts[1:]:
            text.stylize("dim")
        table.add_row(Text("  " + name) if name else Text(section, "bold"), *texts)
    return Shown(table, others if len(short.rows) < len(first.rows) else "")


def confusion_matrix(first: FirstRows, terminal: Capabilities, others: str) -> Shown | None:
    """Show a grid of true and predicted classes; return None if it does not fit or a pair never occurred."""
    pairs = grid(first.columns[0][0], first.rows)
    if pairs is None:
        return None
    table = as_table(pairs.columns, pairs.rows)
    if table_width(table) > terminal.width:
        return None
    return Shown(table, format_count(int(pairs.total)) if pairs.total % 1 == 0 else "")


def importances(first: FirstRows, terminal: Capabilities, others: str) -> Shown:
    """Show a line for each of the most important columns, and a bar where the terminal is wide enough."""
    footer = format_count(first.total, "column")
    if first.total > SHOWN_ROWS:
        first, footer = (
            replace(first, rows=first.rows[:SHOWN_ROWS]),
            f"{footer}, {SHOWN_ROWS} shown ({others})",
        )
    rows = [(name, _short(value), _percent(share)) for name, value, share in first.rows]
    columns = first.columns
    left = terminal.width - table_width(as_table(columns, rows)) - 2
    if not terminal.is_terminal or left < SHORTEST_BAR:
        return Shown(as_table(columns, rows), footer)
    most = max((value for _, value, _ in first.rows if value), default=0.0)
    bars = (
        _bar((value or 0.0) / most if most else 0.0, min(left, LONGEST_BAR), terminal)
        for _, value, _ in first.rows
    )
    lines = [(*row, bar) for row, bar in zip(rows, bars, strict=True)]
    return Shown(as_table([*columns, ("", False)], lines), footer)


def _bar(share: float, longest: int, terminal: Capabilities) -> str:
    """Draw a bar of at most `longest` cells, in eighths where the terminal has such characters."""
    if not terminal.blocks:
        return "#" * round(share * longest)
    eighths = round(share * longest * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


SHOWN_THRESHOLDS = 20
# The counts can be derived from the rates and the numbers of rows.
ROC_CURVE = ListLayout("", ("true_negatives", "false_negatives", "false_positives", "true_positives"))


def roc_curve(first: FirstRows, terminal: Capabilities, others: str) -> Shown | None:
    """Draw the curve above a line for each of some thresholds.

    Columns of counts are dropped where the terminal is too narrow.
    """
    if not terminal.is_terminal:
        return None
    names = [name for name, _ in first.columns]
    some = first.rows
    if len(some) > SHOWN_THRESHOLDS:  # evenly, from the first to the last
        some = [
            some[number * (len(some) - 1) // (SHOWN_THRESHOLDS - 1)] for number in range(SHOWN_THRESHOLDS)
        ]
    rows = [["" if value is None else str(_short(value)) for value in row] for row in some]
    fitted = listing(names, rows, ROC_CURVE, terminal.width)
    table = as_table([(name, True) for name in fitted.columns], fitted.rows)
    shown = format_count(len(first.rows), "threshold")
    if len(some) < len(first.rows):
        shown += f", {len(some)} shown ({others})"
    return Shown(table, _join_footers(shown, fitted.footer(others)), _draw_roc_curve(first, terminal))


def _draw_roc_curve(first: FirstRows, terminal: Capabilities) -> list[str]:
    """Draw the curve, and name the area below it; empty without rows of both classes."""
    points = roc_points(score_curve(first))
    title = f"recall, area {number(area(points))}"
    lines = plot_shares(points, "false positive rate", title, width=terminal.width, blocks=terminal.blocks)
    return [*lines, ""] if lines else []


def score_curve(first: FirstRows) -> ScoreCurve:
    """Return the curve of the rows of EVALUATE … evaluate.report = roc_curve."""
    names = [name for name, _ in first.columns]
    columns = dict(zip(names, zip(*first.rows, strict=True), strict=True)) if first.rows else {}
    thresholds, hits, alarms = (
        columns.get(name, ()) for name in ("threshold", "true_positives", "false_positives")
    )
    inside, outside = (hits[-1], alarms[-1]) if hits else (0.0, 0.0)
    return ScoreCurve(1, inside, outside, thresholds, hits, alarms)


def _join_footers(*footers: str) -> str:
    return "; ".join(filter(None, footers))


MODELS = ListLayout("result", ("size", "framework", "current", "created", "model", "tags"), least=24)


def models(first: FirstRows, terminal: Capabilities, others: str) -> Shown:
    """Show a line for each version, with its metrics or the reason of its failure."""
    names = [name for name, _ in first.columns]
    records = [dict(zip(names, row, strict=True)) for row in first.rows]
    rows = [
        (
            row["name"],
            str(row["version"]),
            row["state"],
            "yes" if row["current"] else "",
            row["tags"],
            row["model"],
            row["framework"],
            f"{row['rows']:,}" if row["rows"] is not None else "",
            row["reason"] or row["metrics"],
            f"{row['created']:%Y-%m-%d %H:%M}" if row["created"] else "",
            size(row["size"]) if row["size"] is not None else "",
        )
        for row in records
    ]
    columns = (
        "name",
        "version",
        "state",
        "current",
        "tags",
        "model",
        "framework",
        "rows",
        "result",
        "created",
        "size",
    )
    return show_list(columns, rows, MODELS, terminal, others, format_count(len(rows), "version"))


DRIFT = ListLayout("why", ("outside", "range", "unseen", "NULLs"))


def drift(first: FirstRows, terminal: Capabilities, others: str) -> Shown:
    """Show a line for each column, with a coloured verdict."""
    names = [name for name, _ in first.columns]
    rows = [cells(dict(zip(names, row, strict=True))) for row in first.rows]
    return show_list(COLUMNS_OF_DRIFT, rows, DRIFT, terminal, others, format_count(len(rows), "column"))


# Right-aligned: numbers, and texts that end with a unit.
RIGHT = ("version", "rows", "size", "took", "PSI", "unseen", "outside")
_STATES = {
    "done": "green",
    "ready": "green",
    "failed": "red",
    "died": "red",
    "unknown": "yellow",
    "damaged": "red",
    "running": "cyan",
    "paused": "yellow",
    "interrupted": "yellow",
    "drifted": "red",
    "shifted": "yellow",
    "stable": "green",
}


def show_list(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    layout: ListLayout,
    terminal: Capabilities,
    others: str,
    footer: str,
) -> Shown:
    """Show a list in lines that fit, with coloured states; its footer names the dropped columns."""
    from rich.text import Text

    if not terminal.is_terminal:
        return Shown(as_table([(name, name in RIGHT) for name in columns], rows, null=""), footer)
    fitted = listing(columns, rows, layout, terminal.width)
    lines = [
        [
            Text(
                text or "",
                _STATES.get((text or "").partition(":")[0], "") if name in ("state", "verdict") else "",
            )
            for name, text in zip(fitted.columns, row, strict=True)
        ]
        for row in fitted.rows
    ]
    table = as_table([(name, name in RIGHT) for name in fitted.columns], lines)
    return Shown(table, _join_footers(footer, fitted.footer(others)))


Form = Callable[[FirstRows, Capabilities, str], Shown | None]
VIEWS: Mapping[View, Form] = {
    "sections": sections,
    "models": models,
    "importances": importances,
    "confusion_matrix": confusion_matrix,
    "roc_curve": roc_curve,
    "drift": drift,
}
