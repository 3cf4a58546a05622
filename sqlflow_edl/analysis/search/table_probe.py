"""Looks at the rows of a query before they are pinned: their number, and a sample of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from edl.data import Source
from edl.spec import Query, QueryPart
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.rows.row_filter import RowFilter

# dialect -> condition of one of `parts` parts of the rows, which follows from their values alone: a query is read twice
_PARTS = {
    "duckdb": "hash({row}) % {parts} = 0",
    "postgres": "abs(hashtext({row}::text)::bigint) % {parts} = 0",
    "mysql": "crc32(concat_ws('|', {columns})) % {parts} = 0",
}
_ROW = "sqlflow_edl_given"


@dataclass(frozen=True, slots=True)
class TableProbe:
    """Rows of a query. columns: their names."""

    source: Source
    select: str
    columns: tuple[str, ...]

    def count_rows(self) -> int | None:
        """Return the number of rows, or None if the database has no way to choose a share of them."""
        if self.source.dialect not in _PARTS:
            return None
        counted = self.source.stream(f"SELECT count(*) AS n FROM (\n{self.select}\n) AS {_ROW}").read_all()
        return int(counted["n"][0].as_py())

    def read_rows(self, most: int, total: int | None, columns: Sequence[str] = ()) -> pa.Table:
        """Return at most about so many rows: of a known `total` a random share, else the first ones.

        columns: those that are read; all without any.
        """
        parts = (total or 0) // max(most, 1)
        conditions = (self.condition(parts),) if parts > 1 else ()
        names = tuple(expressions.quote(name, self.source.dialect) for name in columns) or ("*",)
        limited = f"{RowFilter(conditions, names).of(self.select)} LIMIT {2 * most}"
        return self.source.stream(limited).read_all()

    def condition(self, parts: int) -> str:
        """Return the SQL condition of one of so many parts of the rows."""
        return _condition(self.source.dialect, self.columns, parts)


def select_part(query: Query) -> str:
    """Return the SELECT of the rows and columns of a query that were read."""
    if not isinstance(query.part, QueryPart):
        return query.select
    names = tuple(column.name for column in query.schema)
    conditions = [_condition(query.dialect, names, query.part.parts)] if query.part.parts > 1 else []
    columns = tuple(expressions.quote(name, query.dialect) for name in query.part.columns)
    return RowFilter(tuple(conditions), columns).of(query.select)


def _condition(dialect: str, columns: Iterable[str], parts: int) -> str:
    quoted = ", ".join(expressions.quote(name, dialect) for name in columns)
    return _PARTS[dialect].format(row=_ROW, columns=quoted, parts=parts)
