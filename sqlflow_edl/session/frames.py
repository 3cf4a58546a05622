"""Data frames and Arrow tables of the caller as tables of a session."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from edl.data.names import duplicate
from edl.errors import SemanticError

if TYPE_CHECKING:
    import pyarrow as pa

    from edl.data import Source

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Frames:
    """Tables of a session's connection that are data of the caller; no other connection sees them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: dict[str, str] = {}  # folded -> as registered

    def register(self, name: str, data: Any) -> None:
        """Make the data a table. Raises SQLFlowError; see `Session.register`."""
        if not _NAME.fullmatch(name):
            raise SemanticError(f"{name!r} cannot name a table", hint="use letters, digits and _")
        if not (self._source.temporary_tables and self._source.temporary_tables_are_private):
            scheme = self._source.url.partition(":")[0]
            raise SemanticError(
                f"{scheme} has no tables that only one connection sees, or does not let this user make them",
                hint="write the data to a table of the database",
            )
        rows = arrow_table(data)
        if name.casefold() in self._names:
            self.unregister(name)
        elif name.casefold() in {
            table.rpartition(".")[2].strip('"`').casefold() for table in self._source.tables()
        }:
            raise SemanticError(
                f"there is a table {name}, which the data would hide", hint="choose another name"
            )
        self._source.stage_temporary(name, rows.to_reader())
        self._names[name.casefold()] = name

    def unregister(self, name: str) -> None:
        """Remove such a table. Raises SemanticError if the name is not registered."""
        registered = self._names.pop(name.casefold(), None)
        if registered is None:
            names = ", ".join(self._names.values())
            raise SemanticError(f"{name} is not registered", hint=f"registered: {names}" if names else None)
        self._source.drop_temporary(registered)


def arrow_table(data: Any) -> pa.Table:
    """Return a pandas or polars data frame, Arrow data, or an object that exports an Arrow stream, as an Arrow table.

    Of pandas, NaN becomes NULL, the index is left out, and sparse columns become dense. Raises SemanticError for other
    objects, for values and types that no table has, and for names that differ in case alone.
    """
    import pyarrow as pa

    is_pandas = all(hasattr(data, name) for name in ("dtypes", "columns", "iloc"))
    if is_pandas:
        _check_names(map(str, data.columns))
    elif not (hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.RecordBatch)):
        raise SemanticError(
            f"a {type(data).__name__} is not a data frame",
            hint="pandas, polars and Arrow tables are possible",
        )
    try:
        table = pa.Table.from_pandas(_densify(data), preserve_index=False) if is_pandas else pa.table(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reasons = ": ".join(map(str, reversed(error.args)))  # Arrow's last one names the column, as a rule
        raise SemanticError(
            f"the data frame cannot become a table: {reasons}",
            hint=_hint_on_column(data) if is_pandas else None,
        ) from None
    _check_names(table.column_names)
    return _usual_types(table)


def _check_names(names: Iterable[str]) -> None:
    """Raise SemanticError if two columns have one name: SQL ignores the case of names."""
    names = list(names)
    if (name := duplicate(names)) is None:
        return
    alike = dict.fromkeys(other for other in names if other.casefold() == name.casefold())
    raise SemanticError(
        f"the data frame has several columns named {' and '.join(alike)}, and SQL ignores case",
        hint=f"rename them, such as {name} and {name}_2",
    )


def _hint_on_column(frame: Any) -> str | None:
    """Return how to convert the first column of a pandas frame that does not become an Arrow array."""
    import pyarrow as pa

    for number, name in enumerate(frame.columns):
        try:
            pa.Array.from_pandas(frame.iloc[:, number])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return f"convert column {name}, such as frame[{name!r}].astype(str)"
    return None


def _densify(frame: Any) -> Any:
    """Return a pandas frame with its sparse columns made dense, because Arrow requires it."""
    sparse = {name: kind.subtype for name, kind in frame.dtypes.items() if hasattr(kind, "fill_value")}
    return frame.astype(sparse) if sparse else frame


def _usual_types(table: pa.Table) -> pa.Table:
    """Return the table with the types that databases have. Raises SemanticError for a type that no cast converts."""
    import pyarrow as pa

    for number, field in enumerate(table.schema):
        if pa.types.is_float16(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.float32()))
        elif isinstance(field.type, pa.BaseExtensionType):
            raise SemanticError(
                f"column {field.name} of the data frame is of the type {field.type}, which no table has",
                hint=f"convert it, such as frame[{field.name!r}].astype(str)",
            )
    return table
