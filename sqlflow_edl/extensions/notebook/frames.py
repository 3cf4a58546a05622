"""Data frames of the notebook as tables: by their names in a cell, and by `--persist frame AS table`."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from edl.data.retry import insisting
from edl.errors import SemanticError, SQLFlowError
from edl.jobs.job_folder import new_id
from sqlflow_edl.session.frames import arrow_table
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import code_tokens

if TYPE_CHECKING:
    from edl.data import Source
    from sqlflow_edl.session.session import Session

_AS = re.compile(r"\s*AS\s+(\S+)\s*", re.IGNORECASE)


def target(text: str, frame: str) -> str:
    """Parse the table's name after the option; by default it is the frame's."""
    match = _AS.fullmatch(text)
    if match is None and text.strip():
        raise SemanticError(
            f"unexpected {text.strip()!r} after --persist {frame}", hint=f"--persist {frame} AS table"
        )
    return match[1] if match else frame


def is_persistable(value: Any) -> bool:
    """Return True for what `persist` takes: data frames, Arrow tables, results."""
    return hasattr(value, "iloc") or hasattr(type(value), "__arrow_c_stream__")


@contextmanager
def named_frames(session: Session, text: str, variables: Mapping[str, Any]) -> Iterator[list[str]]:
    """Make the data frames that the statements name behind FROM or JOIN tables of the session, inside the context.

    A table of the data source comes first. Yield the names of the frames.
    """
    named = _tables_named(text, session.dialect)
    frames = {
        name: variables[name] for name in named if name in variables and is_persistable(variables[name])
    }
    if frames:
        tables = {table.rpartition(".")[2].strip('"`').casefold() for table in session.source.tables()}
        frames = {name: frame for name, frame in frames.items() if name.casefold() not in tables}
    registered: list[str] = []
    try:
        for name, frame in frames.items():
            session.register(name, frame)
            registered.append(name)
        yield registered
    finally:
        for name in registered:
            with contextlib.suppress(SQLFlowError):  # of a session that is lost
                session.unregister(name)


def _tables_named(text: str, dialect: str) -> dict[str, None]:
    tokens = code_tokens(text, 0, dialect_named(dialect))
    return {
        name.text: None
        for before, name in itertools.pairwise(tokens)
        if name.kind == "word" and (before.word in ("FROM", "JOIN") or before.text == ",")
    }


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
