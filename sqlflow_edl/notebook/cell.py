"""The statements of a cell, one after another, as `sqlflow run` runs those of a program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlflow_edl.analysis.outline import title
from sqlflow_edl.notebook.errors import Interrupted
from sqlflow_edl.notebook.result_set import ResultSet
from sqlflow_edl.reports.text import duration
from sqlflow_edl.session.interrupts import interrupting

if TYPE_CHECKING:
    from sqlflow_edl.notebook.live import Screen
    from sqlflow_edl.session.session import Session
    from sqlflow_edl.syntax import Statement


def run(session: Session, text: str, screen: Screen, show: Callable[[ResultSet], None]) -> ResultSet | None:
    """Run the statements of the text; the result of the last is returned, those before it are shown.

    SQLFlowError: of the first statement that fails, which ends it. Interrupted: so did the user.
    """
    statements = session.program(text)
    last: ResultSet | None = None
    session.observer = screen
    with interrupting(session.source.interrupt):
        for statement in statements:
            if last is not None:
                show(last)
            last = _execute(session, statement, screen)
    return last


def _execute(session: Session, statement: Statement, screen: Screen) -> ResultSet:
    name = title(statement, session.dialect)
    began = time.monotonic()
    how = "failed"
    try:
        result = session.execute(statement)
        found = ResultSet.read(result, screen.curve)
        how = "done"
    except KeyboardInterrupt:
        how = "cancelled"
        raise Interrupted(name) from None
    finally:
        screen.ended(f"{name}: {how} ({duration(time.monotonic() - began)})")
    return found
