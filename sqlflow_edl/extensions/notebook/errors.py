"""Errors of a cell: rendered without a traceback of ours, and later cells do not run."""

from __future__ import annotations

from edl.errors import SQLFlowError
from sqlflow_edl.errors.render import render


class CellError(SQLFlowError):
    """Error as a notebook shows it: with its place in the cell, and the hint. The original is its cause."""

    def __init__(self, error: SQLFlowError, text: str = "") -> None:
        super().__init__(error.message, span=error.span, hint=error.hint)
        self.code = error.code
        self._shown = render(error, text, "<cell>")

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return self._shown.splitlines()


class Interrupted(KeyboardInterrupt):
    """Interrupt of the kernel; the statement has been cancelled."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._what = what

    def _render_traceback_(self) -> list[str]:
        return [f"cancelled: {self._what}"]
