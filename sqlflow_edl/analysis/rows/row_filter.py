"""Rows of a TRAIN statement that are trained on: the rows of its query under further conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edl.errors import Span, SQLFlowError
from sqlflow_edl.errors.spans import shift_spans

BEHIND = "\n) AS sqlflow_edl_given"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Conditions in SQL, which all must be true; without any, all rows are trained on.

    columns: those that are read, as the query writes them; all without any.
    """

    conditions: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def of(self, query: str) -> str:
        """Return the query of the rows that are trained on."""
        if not self.conditions and not self.columns:
            return query
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"{self._before}{query}{BEHIND}{where}"

    @property
    def _before(self) -> str:
        return f"SELECT {', '.join(self.columns) or '*'} FROM (\n"

    @contextmanager
    def place(self, select: Span | None) -> Iterator[None]:
        """Provide a context for `of` the query at `select`, in which errors are placed in the statement."""
        with shift_spans(select):
            try:
                yield
            except SQLFlowError as error:
                if error.span and (self.conditions or self.columns):
                    error.span = error.span.shift(-len(self._before))
                raise
