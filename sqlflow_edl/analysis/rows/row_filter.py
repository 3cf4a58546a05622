"""Rows of a TRAIN statement that are trained on: the rows of its query under further conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edl.errors import Span, SQLFlowError
from sqlflow_edl.errors.spans import shift_spans

BEHIND = "\n) AS sqlflow_edl_given"

_BEFORE = "SELECT * FROM (\n"


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Conditions in SQL, which all must be true; without any, all rows are trained on."""

    conditions: tuple[str, ...] = ()

    def of(self, query: str) -> str:
        """Return the query of the rows that are trained on."""
        return f"{_BEFORE}{query}{BEHIND} WHERE {' AND '.join(self.conditions)}" if self.conditions else query

    @contextmanager
    def placed(self, select: Span | None) -> Iterator[None]:
        """Provide a context for `of` the query at `select`, in which errors are placed in the statement."""
        with shift_spans(select):
            try:
                yield
            except SQLFlowError as error:
                if error.span and self.conditions:
                    error.span = error.span.shifted(-len(_BEFORE))
                raise
