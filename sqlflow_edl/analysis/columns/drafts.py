"""Types shared by the functions of the COLUMN language and their callers: drafts and checked calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from edl.errors import SemanticError, Span
from edl.features.calendar import TIME_PARTS
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import TextOperandError
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.syntax import ast

Statistics = Mapping[str, ColumnStatistics]


@dataclass(frozen=True, slots=True)
class Draft:
    """Feature column before its parameters are known.

    columns: the table columns it reads. wants: the statistics of each. fit: raises SemanticError if the data does not
    suit the function. why: the plan's text for a derived feature, empty for a written one. part: of the date or time,
    if it is one. input: of the model, if COLUMN … FOR names one. lists: the cells of several values that it reads.
    parts: of several categories together; their columns want different statistics. is_concat: the parts belong to a
    CONCAT. dim: written length of its vectors. table: number of the vectors that it shares with other columns.
    origin: the model that it was fitted for, if it is another's. applies: False for statistics by which a derived
    feature is not worth having; then no note mentions it.
    """

    columns: tuple[str, ...]
    wants: Want
    fit: Callable[[Statistics], Fitted]
    span: Span | None = None
    is_category: bool = False
    why: str = ""
    part: str = ""
    input: str = ""
    lists: tuple[Cells, ...] = ()
    parts: tuple[Draft, ...] = ()
    is_concat: bool = False
    dim: int = 0
    table: int = 0
    origin: str = ""
    applies: Callable[[Statistics], bool] = lambda statistics: True

    @property
    def leaves(self) -> Sequence[Draft]:
        """Drafts without parts that it is made of; itself if it has none."""
        return [leaf for part in self.parts for leaf in part.leaves] if self.parts else (self,)

    @property
    def cells(self) -> Cells:
        """Cells that a draft over one column reads."""
        return self.lists[0] if self.lists else Cells(self.columns[0])


ParameterType = Literal[
    "column",
    "crossed",
    "category",
    "categories",
    "embedded",
    "whole",
    "numbers",
    "buckets",
    "characters",
    "frequencies",
    "text",
    "names",
    "scalar",
    "shape",
    "delimiter",
    "dtype",
]


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    name: str
    type: ParameterType
    aliases: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """Row of the table of COLUMN functions.

    usage: shown if a call does not fit. reads: defines how a column is read, and may be an argument of others.
    variadic: all arguments of the call go to its one parameter.
    """

    name: str
    usage: str
    parameters: tuple[FunctionParameter, ...]
    build: Callable[[Bound], Draft]
    aliases: tuple[str, ...] = ()
    reads: bool = False
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Call with checked arguments: columns are `Cells` of the query's columns, categories are drafts."""

    call: ast.Call
    function: ColumnFunction
    values: Mapping[str, Any]
    schema: Schema

    @property
    def span(self) -> Span:
        return self.call.span

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    def fail(self, message: str, hint: str | None = None, span: Span | None = None) -> SemanticError:
        return SemanticError(message, span=span or self.span, hint=hint or f"write {self.function.usage}")

    @property
    def cells(self) -> Cells:
        """Column argument."""
        argument: Cells = self["x"]
        return argument

    @property
    def column(self) -> str:
        """Column argument. Its cells must hold one value each."""
        if self.cells.has_several:
            raise self.fail(f"{self.function.name} takes one value of each row, and these are lists")
        return self.cells.column

    def numeric_column(self, *, times: bool = False) -> str:
        """Return the column argument, which must hold numbers; with `times`, dates and times count as seconds."""
        column = self.column
        kind = self.schema.type(column)
        if kind in (ColumnType.NUMBER, ColumnType.BOOLEAN) or (times and kind.is_temporal):
            return column
        hint, name = None, expressions.argument(column)
        if kind is ColumnType.TEXT:
            hint = (
                f"a text becomes a feature by VOCABULARIZE({name}) or CATEGORY_HASH({name}, 1000), "
                f"numbers in a text by DENSE({name})"
            )
        elif kind.is_temporal:
            hint = f"a time becomes a feature by STANDARDIZE({name}), BUCKETIZE({name}, 10) or its parts"
        message = f"{self.function.name} needs a number, {column} is {kind.words}"
        if kind is ColumnType.TEXT and not isinstance(column, expressions.WrittenName):
            raise TextOperandError(message, column, span=self.span, hint=hint)
        raise self.fail(message, hint=hint)

    def temporal_column(self, part: str) -> str:
        """Return the column argument, which must hold dates or times with that part."""
        column = self.column
        if part not in self.schema.parts(column):
            what = "a time" if part in TIME_PARTS else "a date"
            cast = expressions.timestamp(column, self.schema.dialect)
            hint = f"cast it in the SELECT: {cast}" if cast else "declare it as TIMESTAMP in its table"
            if isinstance(column, expressions.WrittenName):
                hint = f"compute {what} in the SELECT, and name its column"
            raise self.fail(
                f"{self.function.name} needs {what}, {column} is {self.schema.type(column).words}",
                hint=hint,
            )
        return column


def require_statistics(statistics: Statistics, cells: Cells, span: Span | None) -> ColumnStatistics:
    """Return the statistics of a column's values, or of the items in its cells.

    Raises SemanticError if a cell cannot be read.
    """
    column_statistics = statistics[cells.column]
    if not cells.has_several:
        return column_statistics
    column_statistics = column_statistics.lists[cells]
    if column_statistics.error:
        hint = column_statistics.error.hint
        raise SemanticError(
            column_statistics.error.message,
            span=span,
            hint=f"{hint}; another is written as delimiter=';'" if hint else None,
        )
    return column_statistics
