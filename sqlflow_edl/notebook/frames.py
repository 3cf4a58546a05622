"""`--persist frame AS table`: a data frame of the notebook as a table of the data source."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from edl.data.retry import insisting
from edl.errors import SemanticError, SQLFlowError
from edl.jobs.job_folder import new_id
from sqlflow_edl.session.frames import arrow_table

if TYPE_CHECKING:
    from edl.data import Source

_AS = re.compile(r"\s*AS\s+(\S+)\s*", re.IGNORECASE)


def target(text: str, frame: str) -> str:
    """Parse the table's name after the option; by default it is the frame's."""
    found = _AS.fullmatch(text)
    if found is None and text.strip():
        raise SemanticError(
            f"unexpected {text.strip()!r} after --persist {frame}", hint=f"--persist {frame} AS table"
        )
    return found[1] if found else frame


def is_frame(value: Any) -> bool:
    """Return True for what `persist` takes: data frames, Arrow tables, results."""
    return hasattr(value, "iloc") or hasattr(type(value), "__arrow_c_stream__")


def persist(source: Source, frame: Any, table: str) -> int:
    """Write the frame to the table in one step and return the number of rows.

    For the frame see `arrow_table`. Raises SQLFlowError if it is not a data frame, a
    column of it has no SQL type, or the table exists and was not made by a job of ours.
    """
    rows = arrow_table(frame)
    job = new_id()  # identifies leftovers for a later session if this process dies
    source.check_target(table)
    try:
        insisting(lambda attempt: source.stage(table, job, 0, attempt, rows.to_batches(65_536)))
        return insisting(lambda _: source.commit(table, job, 1))
    except BaseException:
        with contextlib.suppress(SQLFlowError):
            source.abort(table, job)
        raise
