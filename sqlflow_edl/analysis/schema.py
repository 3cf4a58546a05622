"""Columns of a query for the analysis: a few column types, and name resolution with suggestions."""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from edl.errors import SemanticError, Span, did_you_mean
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import NoLabelOptionError, UnknownColumnError
from sqlflow_edl.syntax import ast

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnType(enum.Enum):
    """Kind of column, which decides the features it can become. `words` names it in a message."""

    NUMBER = "a number"
    BOOLEAN = "a boolean"
    TEXT = "a text"
    DATE = "a date"
    TIMESTAMP = "a timestamp"
    TIME = "a time of day"
    OTHER = "of a type that models cannot use yet"

    @property
    def words(self) -> str:
        return self.value

    @property
    def is_temporal(self) -> bool:
        return self in (ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.TIME)


MOST_SHOWN = 20  # columns in a hint


class Schema:
    """Names and types of a query's columns, in order. Names match exactly, else without case.

    dialect: of the query, in which hints are written. unfit: columns that no feature can use, as they hold a value that
    their type cannot hold, each with the message and the hint of the error of reading it. left_out: columns that are
    not among the names, as there is no time for them.
    """

    def __init__(
        self, arrow: pa.Schema, dialect: str = "duckdb", unfit: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self.arrow = arrow
        self.dialect = dialect
        self.names: Sequence[str] = arrow.names
        # By name, the first of equal ones: a look into an Arrow schema takes as long as it has columns.
        self._types = {field.name: field.type for field in reversed(list(arrow))}
        self._of_database = _of_database(arrow)
        self.unfit = dict(unfit or {})
        self.left_out: frozenset[str] = frozenset()
        self._folded = {name.casefold(): name for name in reversed(self.names)}

    def with_column(self, name: str, *, text: bool = False) -> Schema:
        """Return the columns with a computed one, a number or a text, that is not selected itself."""
        import pyarrow as pa

        extended = copy.copy(self)
        extended._types = {**self._types, name: pa.string() if text else pa.float64()}
        extended._of_database = {key: value for key, value in self._of_database.items() if key != name}
        extended.unfit = {key: value for key, value in self.unfit.items() if key != name}
        return extended

    def narrow(self, names: Sequence[str]) -> Schema:
        """Return the columns without the others, as far as features are derived from them."""
        narrow = copy.copy(self)
        narrow.names, narrow.left_out = names, frozenset(self.names) - frozenset(names)
        return narrow

    def find(self, name: str) -> str | None:
        return name if name in self._types else self._folded.get(name.casefold())

    def resolve(self, name: ast.Name) -> str:
        """Return the column of a written name; `table.column` means its last part."""
        for candidate in (name.text, str(name), name.parts[-1]):
            if column := self.find(candidate):
                return column
        kind = NoLabelOptionError if name.implied else UnknownColumnError
        raise kind(name.parts[-1], name.text, span=name.span, hint=self.suggest_columns(name.parts[-1]))

    def suggest_columns(self, near: str = "") -> str | None:
        """Return a hint: the nearest column, or the columns if they are few."""
        write = partial(expressions.name, dialect=self.dialect)
        names = [*map(write, self.names[:MOST_SHOWN]), *(["…"] if len(self.names) > MOST_SHOWN else [])]
        if near and (hint := did_you_mean(near, self.names, list_up_to=0, write=write)):
            return hint
        return f"{'known' if near else 'selected'}: {', '.join(names)}" if names else None

    def is_of_database(self, name: str) -> bool:
        """Return True for a column of a type that only the database has, which no feature reads."""
        return name in self._of_database

    def type(self, name: str) -> ColumnType:
        if name in self._of_database or name in self.unfit:
            return ColumnType.OTHER
        return column_type(self._arrow_type(name))

    def parts(self, name: str) -> Sequence[str]:
        """Return the parts of a date or time column: year, month, …; none for other columns."""
        from edl.features.calendar import parts_of

        return parts_of(self._arrow_type(name)) if self.type(name).is_temporal else ()

    def require_category(self, column: str, span: Span | None) -> None:
        """Raise SemanticError unless the column's values can be categories: text, integers, booleans."""
        kind = self.type(column)
        if kind is ColumnType.OTHER:
            raise self.unusable(column, span)
        if kind is ColumnType.NUMBER and not self.is_integer(column):
            raise SemanticError(
                f"{column} holds fractional numbers, which cannot be categories",
                span=span,
                hint=f"write BUCKETIZE({expressions.argument(column)}, 10)",
            )

    def is_integer(self, column: str) -> bool:
        """Return True if the column holds whole numbers, as NUMERIC(20, 0) does, or lists of them."""
        import pyarrow.types as types

        arrow = self._item_type(column) or self._arrow_type(column)
        return bool(
            types.is_integer(arrow) or types.is_null(arrow) or (types.is_decimal(arrow) and arrow.scale <= 0)
        )

    def has_nan(self, column: str) -> bool:
        """Return True if the column's type has NaN and infinities."""
        import pyarrow.types as types

        return bool(types.is_floating(self._arrow_type(column)))

    def has_time_zone(self, column: str) -> bool:
        """Return True if the column holds timestamps with a time zone."""
        import pyarrow.types as types

        arrow = self._arrow_type(column)
        return bool(types.is_timestamp(arrow) and arrow.tz)

    def is_null(self, column: str) -> bool:
        """Return True if the column has no type because all its values are NULL."""
        import pyarrow.types as types

        return bool(types.is_null(self._arrow_type(column)))

    def items(self, column: str) -> ColumnType | None:
        """Return the item type of a column of lists, or None for another column."""
        item = self._item_type(column)
        return column_type(item) if item is not None else None

    def _item_type(self, column: str) -> pa.DataType | None:
        import pyarrow.types as types

        if column in self.unfit:
            return None
        arrow = self._arrow_type(column)
        is_list = types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow)
        return arrow.value_type if is_list else None

    def unusable(self, column: str, span: Span | None) -> SemanticError:
        reason, hint = self.why_unusable(column)
        return SemanticError(f"{column} {reason}", span=span, hint=hint)

    def why_unusable(self, column: str) -> tuple[str, str]:
        """Return why the column's type cannot be a feature, without the column's name, and what to write instead."""
        import pyarrow.types as types

        if column in self.unfit:
            message, hint = self.unfit[column]
            return message.removeprefix(f"column {column} "), hint
        if of_database := self._of_database.get(column):
            return f"is of the type {of_database[0]}, which models cannot read", f"select {of_database[1]}"
        arrow = self._arrow_type(column)
        if types.is_struct(arrow) and arrow.num_fields:
            inner = arrow.field(0).name
            name = expressions.name(column, self.dialect)
            return (
                f"holds several values, {', '.join(field.name for field in list(arrow)[:12])}",
                f"select them one by one, such as {name}.{expressions.name(inner, self.dialect)} AS {inner}",
            )
        if types.is_interval(arrow):
            return "is an interval", f"select its seconds: {expressions.seconds(column, self.dialect)}"
        return f"is of type {arrow}, which models cannot read", "cast it in the SELECT"

    def _arrow_type(self, name: str) -> pa.DataType:
        return self._types[name]


def _of_database(arrow: pa.Schema) -> dict[str, tuple[str, str]]:
    """Return the columns of types that only their database has: the type's name, and an expression to select."""
    from edl.data.arrow_types import database_type

    named = ((field.name, database_type(field)) for field in arrow if field.metadata)
    return {name: described for name, described in named if described is not None}


def column_type(arrow: pa.DataType) -> ColumnType:
    import pyarrow.types as types

    if types.is_boolean(arrow):
        return ColumnType.BOOLEAN
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow) or types.is_null(arrow):
        return ColumnType.NUMBER
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return ColumnType.TEXT
    if types.is_dictionary(arrow):
        return column_type(arrow.value_type)
    for is_type, kind in (
        (types.is_date, ColumnType.DATE),
        (types.is_timestamp, ColumnType.TIMESTAMP),
        (types.is_time, ColumnType.TIME),
    ):
        if is_type(arrow):
            return kind
    return ColumnType.OTHER
