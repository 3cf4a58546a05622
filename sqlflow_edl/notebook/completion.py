"""Completion in cells: keywords, tables, columns, models and attributes, by the rules of the console."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from IPython.core.completer import SimpleCompletion, context_matcher

from sqlflow_edl.console.catalog import Catalog, Unconnected
from sqlflow_edl.console.completion import fitting
from sqlflow_edl.console.completion_rules import offers
from sqlflow_edl.console.context import context
from sqlflow_edl.syntax.dialects import dialect_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from sqlflow_edl.notebook.connections import Connections
    from sqlflow_edl.session.session import Session

# Blank lines and magics that run the rest of the cell may stand above ours, as labextension/highlighting.js has it.
_CELL = re.compile(
    r"(?:[ \t]*(?:%%(?:capture|prun|time|timeit)(?!\S)[^\n]*)?\n)*[ \t]*%%sqlflow(?!\S)[^\n]*\n"
)
_LINE = re.compile(r".*%sqlflow\s+(?:--?[\w-]+\s+\S+\s+)*(?:\w+\s*<<)?")


class SessionNames:
    """Names of an open session; of tables and models as they were after the last cell."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._catalog = Catalog()
        self._is_stale = True

    @property
    def dialect(self) -> str:
        return dialect_named(self.session.dialect).name

    def known(self) -> Catalog:
        if self._is_stale:
            self._catalog.look(self.session)
            self._is_stale = False
        return self._catalog

    def columns(self, table: str) -> tuple[str, ...]:
        if table not in self.known().columns:
            self._catalog.look_into(table, self.session)
        return self._catalog.columns.get(table, ())

    def cell_has_run(self) -> None:
        self._is_stale = True


class CellCompletion:
    """Matcher of IPython's completer for the SQL in cells; it opens no data source."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._names: SessionNames | None = None

    def matcher(self) -> Callable[[CompletionContext], SimpleMatcherResult]:
        """Return the function to register, which answers for SQL alone."""

        def sqlflow(asked: CompletionContext) -> SimpleMatcherResult:
            found = _statement(asked)
            if found is None:
                return {"completions": []}
            texts = self._offered(*found, asked.token)
            completions = [SimpleCompletion(text, type=kind) for text, kind in texts]
            return {"completions": completions, "suppress": True, "ordered": True}

        marked: Callable[[CompletionContext], SimpleMatcherResult] = context_matcher(identifier="sqlflow")(
            sqlflow
        )
        return marked

    def cell_has_run(self, _: object = None) -> None:
        """Read the names again when they are asked for next."""
        if self._names is not None:
            self._names.cell_has_run()

    def _offered(self, text: str, at: int, token: str) -> list[tuple[str, str]]:
        """Return texts in place of the token, which IPython has cut by the rules of Python, and their kinds."""
        names = self._open_names() or Unconnected("duckdb")
        where = context(text, at, dialect_named(names.dialect))
        if where is None:
            return []
        before = token.removesuffix(where.word) if token.endswith(where.word) else ""
        surplus = where.word.removesuffix(token) if not before and where.word.endswith(token) else ""
        return [
            (before + each.text.removeprefix(surplus), each.kind)
            for each in fitting(where.word, offers(where, names))
            if each.text.startswith(surplus)
        ]

    def _open_names(self) -> SessionNames | None:
        session = self._connections.current
        if session is None:
            return None
        if self._names is None or self._names.session is not session:
            self._names = SessionNames(session)
        return self._names


def _statement(asked: CompletionContext) -> tuple[str, int] | None:
    """Return the SQL around the cursor and the cursor's place in it; None outside of SQL."""
    lines = asked.full_text.split("\n")
    place = sum(len(line) + 1 for line in lines[: asked.cursor_line]) + asked.cursor_position
    cell = _CELL.match(asked.full_text)
    if cell is not None:
        return (asked.full_text[cell.end() :], place - cell.end()) if place >= cell.end() else None
    line = _LINE.match(asked.line_with_cursor)
    if line is None or asked.cursor_position < line.end():
        return None
    return asked.line_with_cursor[line.end() :], asked.cursor_position - line.end()
