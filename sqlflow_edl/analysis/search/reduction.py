"""Reduction of a search to what its time limit allows, by looks at its rows before they are pinned."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.search import space
from sqlflow_edl.analysis.search.drafts import value_of
from sqlflow_edl.analysis.search.limits import (
    FEW_VALUES,
    MOST_SECONDS,
    SCREENED_COLUMNS,
    SCREENED_ROWS,
    SCREENED_VALUES,
    Clock,
    Table,
    TimeLimit,
    default_seconds,
    estimate_row_cost,
)
from sqlflow_edl.analysis.search.screening import choose_columns
from sqlflow_edl.analysis.settings import search as settings
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.syntax import ast


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduction of a search. rows: number of its rows, None if it is not known. counting: seconds that took.

    parts: into which the rows are divided; one of them is read.
    """

    limit: TimeLimit
    table: Table
    rows: int | None
    counting: float = 0.0
    parts: int = 1

    @property
    def condition(self) -> str:
        """SQL condition of the rows that are read; empty for all."""
        return self.table.condition(self.parts) if self.parts > 1 else ""

    def notes(self) -> Iterator[str]:
        """Yield what is to be said of the rows."""
        if self.parts > 1:
            yield (
                f"a random part of the {self.rows:,} rows is read, one of {self.parts}: a limit of "
                f"{self.limit.seconds:g} s allows no more here"
            )

    def narrow(
        self, schema: Schema, label: str, needed: Collection[str], planning: float, notes: list[str]
    ) -> Schema | None:
        """Return the columns that there is time for, with a note, or None if that is all of them.

        needed: columns that stay. planning: the seconds that the plan of a candidate with all columns took.
        """
        total = len(schema.names)
        texts = sum(schema.type(name) is ColumnType.TEXT for name in schema.names) / max(total, 1)
        count = self.limit.columns_that_fit(total, planning + self.counting, texts)
        if count >= total:
            return None
        kept = {*needed} & {*schema.names}
        step = max(1, total // (SCREENED_COLUMNS * count))
        names = [name for place, name in enumerate(schema.names) if name in kept or not place % step]
        try:
            rows = self.table.read_rows(min(SCREENED_ROWS, SCREENED_VALUES // total), self.rows, names)
        except SQLFlowError:  # which pinning raises in its place
            return None
        names = choose_columns(rows, label, kept, count)
        among = f" among one column of {step}" if step > 1 else ""
        notes.append(
            f"{len(names):,} of {total:,} columns are read, by which {label} differs most in {rows.num_rows:,} "
            f"rows{among}: a limit of {self.limit.seconds:g} s allows no more here"
        )
        return schema.narrow(names)

    def sample(self, columns: int) -> Reduction:
        """Return the reduction to a part of the rows that there is time for. columns: number of those that are read."""
        if self.rows is None or self.rows * columns <= FEW_VALUES:
            return self
        with contextlib.suppress(SQLFlowError):  # which pinning raises in its place
            cost = estimate_row_cost(self.table, columns)
            return replace(self, parts=self.limit.parts_of_rows(self.rows, cost))
        return self

    def sample_again(self, rows: int, seconds: float) -> Reduction | None:
        """Return the reduction to fewer rows, if the pinning shows that there is no time for those that were pinned.

        rows, seconds: that pinning has pinned and taken.
        """
        parts = self.limit.parts_of_pinned(rows, seconds) if self.rows is not None else 1
        return replace(self, parts=self.parts * parts) if parts > 1 else None


def find_reduction(
    statement: ast.Statement,
    resolved: Mapping[str, Resolved],
    schema: Schema,
    clock: Clock | None,
    table: Table | None,
) -> Reduction | None:
    """Return the reduction of a search, or None if it has no time limit or no clock.

    Raises SemanticError if a written limit is below the time to read the rows.
    """
    written = resolved.get(settings.TIME_LIMIT)
    if clock is None or table is None or (written is None and not _has_limit(statement)):
        return None
    before, rows = clock.seconds, None
    with contextlib.suppress(SQLFlowError):  # which pinning raises in its place
        rows = table.count_rows()
    if written is not None:
        limit = TimeLimit(float(value_of(resolved, settings.TIME_LIMIT)), clock)
        if rows is not None:
            limit.check_reading(rows, clock.seconds - before, written.written.span)
        return Reduction(limit, table, rows, clock.seconds - before)
    usual = MOST_SECONDS if rows is None else default_seconds(rows, len(schema.names))
    return Reduction(TimeLimit(usual, clock), table, rows, clock.seconds - before)


def _has_limit(statement: ast.Statement) -> bool:
    """Return True if the search has a time limit that is not written."""
    return statement.kind == "auto" or bool(space.searched_items(statement))
