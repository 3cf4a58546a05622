"""Execution of a cell's statements, one after another, like `sqlflow run`; an error ends it without a traceback of
ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.errors.render import render
from sqlflow_edl.notebook.result_set import ResultSet
from sqlflow_edl.reports.text import duration
from sqlflow_edl.session.interrupts import stop_on_interrupt

if TYPE_CHECKING:
    from sqlflow_edl.notebook.live import CellScreen
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement


def run(
    session: Session, text: str, screen: CellScreen, show: Callable[[ResultSet], None]
) -> ResultSet | None:
    """Run the statements of the text. The result of the last is returned; earlier ones are shown.

    Raises SQLFlowError for the first statement that fails, and Interrupted if the user interrupts; both end the
    cell.
    """
    statements = session.program(text)
    last: ResultSet | None = None
    session.observer = screen
    with stop_on_interrupt(session.source.interrupt):
        for statement in statements:
            if last is not None:
                show(last)
            last = _execute(session, statement, screen)
    return last


def _execute(session: Session, statement: Statement, screen: CellScreen) -> ResultSet:
    name = title(statement, session.dialect)
    began = time.monotonic()
    how = "failed"
    try:
        result = session.execute(statement)
        result_set = ResultSet.read(result, screen.curve)
        how = "done"
    except KeyboardInterrupt:
        how = "cancelled"
        raise Interrupted(name) from None
    finally:
        screen.on_end(f"{name}: {how} ({duration(time.monotonic() - began)})")
    return result_set


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
