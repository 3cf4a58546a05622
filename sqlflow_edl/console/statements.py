"""Execution of statements in a console: confirmed if destructive, reported, shown and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from edl.jobs.termination import TerminatedError
from sqlflow_edl.analysis.programs.outline import Thing, effects, title
from sqlflow_edl.console.connection import ConsoleConnection
from sqlflow_edl.console.keys import statements
from sqlflow_edl.console.screen import Screen
from sqlflow_edl.display.final_report import final_report
from sqlflow_edl.errors.render import render, traceback_of
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import duration
from sqlflow_edl.session.interrupts import stop_on_interrupt
from sqlflow_edl.syntax import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import code_tokens, name_value, sql_tokens

if TYPE_CHECKING:
    from sqlflow_edl.session.session import Session

# First words of ordinary SQL that may change the set of tables.
_MAKES = frozenset(("CREATE", "DROP", "ALTER", "RENAME", "ATTACH", "DETACH", "USE", "IMPORT"))


class Statements:
    """Runner of statements. agrees: asks the user a question. debug: show errors with tracebacks."""

    def __init__(self, screen: Screen, agrees: Callable[[str], bool], *, debug: bool = False) -> None:
        self._screen = screen
        self._agrees = agrees
        self._debug = debug

    def run(self, text: str, connection: ConsoleConnection, name: str = "") -> bool:
        """Run the statements of the text until one fails, is cancelled or is declined; return True if none is.

        name: name of the file with the text. Raises UnopenedError if there is no session.
        """
        program, vertical = statements(text)
        try:
            with connection.session() as session:
                session.observer = self._screen.narrator
                return all(
                    self._one(statement, session, connection, vertical)
                    for statement in session.program(program)
                )
        except SQLFlowError as error:
            if self._debug:
                self._screen.say(traceback_of(error))
            self._screen.complain(render(error, text, name))
        except TerminatedError:
            raise
        except KeyboardInterrupt:
            self._screen.narrator.erase_echo()
            self._screen.say("cancelled")
        return False

    def _one(
        self, statement: Statement, session: Session, connection: ConsoleConnection, vertical: bool
    ) -> bool:
        """Run a statement; return False if the user declines."""
        asked = confirmation_question(statement, session.dialect, connection.catalog.tables)
        if asked and not self._agrees(asked):
            self._screen.say("not run")
            return False
        began = time.monotonic()
        try:
            with stop_on_interrupt(session.source.interrupt):
                self._show(session.execute(statement), began, vertical, types=_gives_data(statement))
        finally:
            if _makes(statement, session.dialect):
                connection.refresh()
        return True

    def _show(self, result: Result, began: float, vertical: bool, *, types: bool) -> None:
        page, footer = None, ""
        if result.reader is not None:
            page, footer = self._screen.rows(result, vertical=vertical, types=types)
        seconds = time.monotonic() - began  # time of the last row, not of the pager's end
        if page is not None and page.tell():
            self._screen.show(page)
        for line in final_report(result):
            self._screen.say(line)
        message = "" if result.model else result.message  # a training's message is in the final report
        did = "; ".join(part for part in (message, footer) if part) or "done"
        self._screen.say(f"{did} ({duration(seconds)})" if self._screen.timing else did)


def _gives_data(statement: Statement) -> bool:
    """Return True if its rows are data, rather than facts about a plan or a model."""
    return not statement.plan and (statement.kind == "sql" or statement.traits.makes == "table")


def _makes(statement: Statement, dialect: str) -> bool:
    """Return True if the statement may change the set of tables or models."""
    if statement.kind == "sql":
        tokens = code_tokens(statement.text, 0, dialect_named(dialect))
        return next((token.word for token in tokens), "") in _MAKES
    return not statement.plan and bool(statement.traits.job or statement.traits.changes_model)


_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "DROP", "TRUNCATE", "MERGE", "VALUES", "FROM")


def confirmation_question(statement: Statement, dialect: str, tables: Collection[str]) -> str:
    """Return the question to ask before the statement runs, or an empty string.

    tables: names of the existing tables.
    """
    if statement.plan or statement.append:
        return ""
    if statement.kind == "sql":
        lost = _describe_loss(statement.text, dialect)
        return f"{title(statement, dialect)}: {lost}. Run it?" if lost else ""
    if statement.traits.final:
        return f"{title(statement, dialect)}: this cannot be undone. Run it?"
    if statement.traits.makes == "table":
        existing = [thing for thing in effects(statement, dialect).makes if _is_there(thing, tables, dialect)]
        return f"{title(statement, dialect)} replaces {existing[0]}. Run it?" if existing else ""
    return ""


def _describe_loss(text: str, dialect: str) -> str:
    """Describe the loss that ordinary SQL causes; empty if it needs no confirmation."""
    words = list(_outer_words(text, dialect))
    verb = next((word for word in words if word in _VERBS), "")
    if verb == "DROP":
        return "this cannot be undone"
    if verb == "TRUNCATE" or (verb == "DELETE" and "WHERE" not in words):
        return "all rows are deleted"
    if verb == "UPDATE" and "WHERE" not in words:
        return "all rows are changed"
    return ""


def _outer_words(text: str, dialect: str) -> Iterator[str]:
    """Yield the words outside of parentheses."""
    depth = 0
    for token in sql_tokens(text, 0, dialect_named(dialect)):
        depth += token.nesting
        if not depth and token.word:
            yield token.word


def _is_there(thing: Thing, tables: Collection[str], dialect: str) -> bool:
    return any(thing.is_same(Thing("table", _parts(table, dialect))) for table in tables)


def _parts(table: str, dialect: str) -> tuple[str, ...]:
    return tuple(
        name_value(token.text)
        for token in sql_tokens(table, 0, dialect_named(dialect))
        if token.kind in ("word", "name")
    )
