"""Charts of explained rows as values of cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.display.files import OutputFile, name_write_errors, path_of
from sqlflow_edl.notebook import html
from sqlflow_edl.notebook.errors import CellError

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlflow_edl.charts.shapley import Explained


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
