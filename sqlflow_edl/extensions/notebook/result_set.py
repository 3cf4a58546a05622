"""Result of a cell: the rows of its last statement, a report of what was done, or charts of explained rows."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from edl.data.cells import format_count
from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.charts.bars import bars
from sqlflow_edl.charts.curves import learning_curve, roc
from sqlflow_edl.charts.matrix import confusion
from sqlflow_edl.display import views
from sqlflow_edl.display.files import OutputFile, name_write_errors, path_of
from sqlflow_edl.display.final_report import facts, final_report, largest
from sqlflow_edl.display.grid import matrix
from sqlflow_edl.display.output import FirstRows, first_rows, rows_of
from sqlflow_edl.display.views import format_computed
from sqlflow_edl.extensions.notebook import html
from sqlflow_edl.extensions.notebook.errors import CellError
from sqlflow_edl.reports.drift import SHOWN, cells
from sqlflow_edl.reports.result import Result, View, data_frame, polars_frame
from sqlflow_edl.reports.text import number

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from edl.jobs.events import EpochEnd
    from sqlflow_edl.charts.shapley import Explained

SHOWN_ROWS = 10


@dataclass(frozen=True, eq=False, repr=False)
class ResultSet:
    """Outcome of a statement, with all its rows in memory.

    Its length is the number of its rows, and it iterates over them, tuples in the order of `columns`. A statement
    without rows, such as TRAIN, has a message, figures and a model.
    """

    result: Result
    table: pa.Table | None
    curve: tuple[EpochEnd, ...] = ()

    @classmethod
    def read(cls, result: Result, curve: Sequence[EpochEnd] = ()) -> ResultSet:
        """Fetch the rows of the result."""
        return cls(result, result.to_arrow() if result.reader is not None else None, tuple(curve))

    @property
    def columns(self) -> list[str]:
        return list(self.to_arrow().column_names)

    @property
    def message(self) -> str:
        """Sentence about what was done; empty if the rows are the answer."""
        return self.result.message

    @property
    def figures(self) -> Mapping[str, float | None]:
        """Loss and metrics of a training or evaluation, or the importance of each column of EXPLAIN."""
        return self.result.figures or {}

    @property
    def model(self) -> str:
        """name@version of the trained model."""
        return self.result.model

    def __len__(self) -> int:
        return 0 if self.table is None else int(self.table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.to_arrow().to_batches():
            yield from rows_of(batch)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to a reader of Arrow streams, such as `polars.DataFrame(result)`, or to `--persist`."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return all rows; an empty table without columns if the statement has none."""
        import pyarrow as pa

        return self.table if self.table is not None else pa.table({})

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a data frame; see `sqlflow_edl.reports.result.data_frame`."""
        return data_frame(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Return all rows as a data frame of polars; see `sqlflow_edl.reports.result.polars_frame`."""
        return polars_frame(self.to_arrow())

    def importances(self) -> Chart:
        """Draw the mean size of each column's Shapley values; of rows of EXPLAIN, as are the other charts.

        They raise SQLFlowError for rows without Shapley values, and for unknown columns.
        """
        return draw_explained(self.table, lambda charts, rows: charts.importance_bars(rows))

    def beeswarm(self) -> Chart:
        """Draw the Shapley values of each column, a dot for each row, coloured by the column's value."""
        return draw_explained(self.table, lambda charts, rows: charts.beeswarm(rows))

    def dependence(self, column: str, by: str = "") -> Chart:
        """Draw the Shapley values of a column over its values. by: another column, which gives the colours."""
        return draw_explained(self.table, lambda charts, rows: charts.dependence(rows, column, by))

    def __repr__(self) -> str:
        if self.table is None:
            return "\n".join(self._words())
        text = io.StringIO()
        result = replace(self.result, reader=self.table.to_reader())
        footer = views.write(result, text, most=SHOWN_ROWS, others="to_pandas() has all")
        return "\n".join(
            filter(None, (text.getvalue().rstrip("\n"), self.message, self.result.verdict, footer))
        )

    def _repr_html_(self) -> str:
        if self.table is not None:
            return self._rows_as_html(self.table) + "".join(
                map(html.line, (self.message, self.result.verdict))
            )
        importances = largest(self.figures) if self.result.statement.kind == "explain" else []
        names = [] if importances else list(facts(replace(self.result, curve=())))
        return (
            html.report("\n".join(filter(None, (self.message, self.result.verdict))), names)
            + html.image(bars([(name, value) for name, value, _ in importances], "Importances"))
            + html.image(learning_curve(self.curve))
        )

    def _rows_as_html(self, table: pa.Table) -> str:
        """Render the rows in the form that the result names."""
        form = _FORMS.get(self.result.view)
        rows = first_rows(table.to_reader(), math.inf if form else SHOWN_ROWS)
        if form and (shown := form(rows)):
            return shown
        rows = format_computed(replace(rows, rows=rows.rows[:SHOWN_ROWS]), self.result, is_terminal=True)
        return _swarm(table, self.result) + html.rows(rows.columns, rows.rows, _footer(rows))

    def _words(self) -> list[str]:
        lines = final_report(self.result)
        return lines if self.result.model else [self.message, *lines]


def _swarm(table: pa.Table, result: Result) -> str:
    """Draw the rows of EXPLAIN; empty for other statements."""
    if result.statement.kind != "explain":
        return ""
    from sqlflow_edl.charts import shapley

    rows = shapley.Explained.of(table)
    return html.image(shapley.beeswarm(rows)) if rows is not None else ""


def _sections(first: FirstRows) -> str:
    rows = views.shorten_sections(first).rows
    return html.sections([(str(section), str(name), *values) for section, name, *values in rows])


def _confusion_matrix(first: FirstRows) -> str:
    """Draw the matrix; empty if the pairs of classes make none."""
    pairs = matrix(first.rows)
    return html.image(confusion(*pairs)) if pairs else ""


def _importances(first: FirstRows) -> str:
    return html.image(bars([(str(name), value) for name, value, _ in first.rows], "Importances"))


def _roc_curve(first: FirstRows) -> str:
    """Draw the curve above its first rows; empty without rows of both classes."""
    drawn = html.image(roc(views.score_curve(first)))
    rows = [
        tuple(number(value) if isinstance(value, float) else value for value in row) for row in first.rows
    ]
    some = replace(first, rows=rows[:SHOWN_ROWS])
    return drawn and drawn + html.rows(some.columns, some.rows, _footer(some))


def _drift(first: FirstRows) -> str:
    names = [name for name, _ in first.columns]
    rows = [cells(dict(zip(names, row, strict=True))) for row in first.rows]
    return html.rows([(name, False) for name in SHOWN], rows, format_count(len(rows), "column"))


_FORMS: Mapping[View, Callable[[FirstRows], str]] = {
    "sections": _sections,
    "confusion_matrix": _confusion_matrix,
    "importances": _importances,
    "roc_curve": _roc_curve,
    "drift": _drift,
}


def _footer(first: FirstRows) -> str:
    total = format_count(first.total)
    return total if first.total == len(first.rows) else f"{len(first.rows)} of {total}"


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart that a notebook shows. svg: the drawing, without scripts and references."""

    svg: str

    def __repr__(self) -> str:
        return unescape(html.label(self.svg)) or "no rows to draw"

    def _repr_html_(self) -> str:
        return html.image(self.svg)

    def save(self, path: str | Path) -> None:
        """Write the drawing to a file, `shap.svg` for example.

        Raises CellError for another format, a chart without rows, and a file that cannot be written.
        """
        try:
            file = path_of(str(path))
            if file.suffix.casefold() not in ("", ".svg"):
                raise SemanticError(
                    f"a chart is written as SVG, not as {file.suffix}",
                    hint=f"save({str(file.with_suffix('.svg'))!r})",
                )
            if not self.svg:
                raise SemanticError("the chart has no rows to draw")
            with OutputFile(file) as output:
                with name_write_errors(file):
                    output.out.write(self.svg)
                output.keep()
        except SQLFlowError as error:
            raise CellError(error) from error


def draw_explained(table: pa.Table | None, draw: Callable[[ModuleType, Explained], str]) -> Chart:
    """Draw explained rows, by a function that gets `sqlflow_edl.charts.shapley` and the rows.

    Raises CellError for rows without Shapley values, and for what the function refuses.
    """
    from sqlflow_edl.charts import shapley

    try:
        rows = shapley.Explained.of(table) if table is not None else None
        if rows is None:
            raise SemanticError(
                "the rows have no Shapley values",
                hint="SELECT … TO EXPLAIN m WITH explain.level = rows, or the table of EXPLAIN … INTO",
            )
        return Chart(draw(shapley, rows))
    except SemanticError as error:
        raise CellError(error) from error
