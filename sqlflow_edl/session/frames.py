"""Data frames and Arrow tables of the caller as tables of a session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

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
            each.rpartition(".")[2].strip('"`').casefold() for each in self._source.tables()
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
            known = ", ".join(self._names.values())
            raise SemanticError(f"{name} is not registered", hint=f"registered: {known}" if known else None)
        self._source.drop_temporary(registered)


def arrow_table(data: Any) -> pa.Table:
    """Return a pandas or polars data frame, Arrow data, or an object that exports an Arrow stream, as an Arrow table.

    Of pandas, NaN becomes NULL, and the index is left out. Raises SemanticError for other objects and other values.
    """
    import pyarrow as pa

    try:
        if hasattr(data, "dtypes") and hasattr(data, "columns") and hasattr(data, "iloc"):
            return pa.Table.from_pandas(data, preserve_index=False)
        if hasattr(data, "__arrow_c_stream__") or isinstance(data, pa.RecordBatch):
            return pa.table(data)
    except pa.ArrowException as error:
        reasons = ": ".join(map(str, reversed(error.args)))  # the last one names the column
        raise SemanticError(f"the data frame cannot become a table: {reasons}") from None
    raise SemanticError(
        f"a {type(data).__name__} is not a data frame", hint="pandas, polars and Arrow tables are possible"
    )
