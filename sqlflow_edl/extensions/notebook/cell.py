"""Execution of a cell's statements, one after another, like `sqlflow run`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.extensions.notebook.errors import Interrupted
from sqlflow_edl.extensions.notebook.result_set import ResultSet
from sqlflow_edl.reports.text import duration
from sqlflow_edl.session.interrupts import stop_on_interrupt

if TYPE_CHECKING:
    from sqlflow_edl.extensions.notebook.live import CellScreen
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement


def run_statements(
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
