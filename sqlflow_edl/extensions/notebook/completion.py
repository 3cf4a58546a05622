"""Completion in cells: SQL by the rules of the console, variables of the notebook in it, and options of the magics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from IPython.core.completer import SimpleCompletion, context_matcher

from sqlflow_edl.console.catalog import SourceCatalog, Unconnected
from sqlflow_edl.console.completion import fitting_offers
from sqlflow_edl.console.completion_rules import Offer, list_offers
from sqlflow_edl.console.context import context
from sqlflow_edl.extensions.notebook.arguments import format_option
from sqlflow_edl.extensions.notebook.frames import is_persistable
from sqlflow_edl.extensions.notebook.magics import OF_A_CELL, OF_A_CONNECTION
from sqlflow_edl.extensions.notebook.variables import sql_variable_names
from sqlflow_edl.syntax.dialects import dialect_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from IPython.core.completer import CompletionContext, SimpleMatcherResult

    from sqlflow_edl.extensions.notebook.connections import Connections
    from sqlflow_edl.session.session import Session

# Blank lines and magics that run the rest of the cell may stand above ours, as labextension/highlighting.js has it.
_CELL = re.compile(
    r"(?:[ \t]*(?:%%(?:capture|prun|time|timeit)(?!\S)[^\n]*)?\n)*[ \t]*%%sqlflow(?!\S)[^\n]*\n"
)
_MAGIC = re.compile(r"(?:.*=)?\s*%%?(sqlflow|sqlflow_connect|sqlflow_close)\s+(?:(.*)\s)?(\S*)")
_VARIABLE = re.compile(r".*(?:\{\{(?:(?!\}\}).)*?|[\s(,=<>+*/%|-]:)([^\W\d]\w*)?", re.DOTALL)
_LINE = re.compile(r".*%sqlflow\s+(?:--?[\w-]+\s+\S+\s+)*(?:\w+\s*<<)?")


class SessionNames:
    """Names of an open session; of tables and models as they were after the last cell."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._catalog = SourceCatalog()
        self._is_stale = True

    @property
    def dialect(self) -> str:
        return dialect_named(self.session.dialect).name

    def get_catalog(self) -> SourceCatalog:
        if self._is_stale:
            self._catalog.look(self.session)
            self._is_stale = False
        return self._catalog

    def columns(self, table: str) -> tuple[str, ...]:
        if table not in self.get_catalog().columns:
            self._catalog.look_into(table, self.session)
        return self._catalog.columns.get(table, ())

    def cell_has_run(self) -> None:
        self._is_stale = True


class CellCompletion:
    """Matcher of IPython's completer for the SQL in cells; it opens no data source.

    namespace: the variables of the notebook.
    """

    def __init__(self, connections: Connections, namespace: Mapping[str, Any]) -> None:
        self._connections = connections
        self._namespace = namespace
        self._names: SessionNames | None = None

    def matcher(self) -> Callable[[CompletionContext], SimpleMatcherResult]:
        """Return the function to register, which answers for SQL and the options before it."""

        def sqlflow(asked: CompletionContext) -> SimpleMatcherResult:
            word, offered = self._complete_word(asked)
            texts = _in_place_of(asked.token, word, fitting_offers(word, offered))
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

    def _complete_word(self, asked: CompletionContext) -> tuple[str, Iterable[Offer]]:
        """Return the word at the cursor and the offers in its place."""
        typed = _argument(asked.line_with_cursor[: asked.cursor_position])
        if typed is not None:
            return typed[-1], (Offer(text, "argument") for text in self._arguments(*typed))
        text_and_place = _statement(asked)
        if text_and_place is None:
            return "", ()
        text, at = text_and_place
        if variable := _VARIABLE.fullmatch(text[:at]):
            return variable[1] or "", (
                Offer(name, "variable") for name in sql_variable_names(self._namespace)
            )
        names = self._open_names() or Unconnected("duckdb")
        where = context(text, at, dialect_named(names.dialect))
        return (where.word, list_offers(where, names)) if where is not None else ("", ())

    def _arguments(self, magic: str, option: str, word: str) -> Iterable[str]:
        """Return options, or values of an option."""
        if option == "source" or magic == "sqlflow_close":
            return self._connections.names
        if option == "persist":
            return [
                name for name, value in self._namespace.items() if is_persistable(value) and name[0] != "_"
            ]
        if option or not word.startswith("-"):
            return ()
        return map(format_option, OF_A_CELL if magic == "sqlflow" else OF_A_CONNECTION)

    def _open_names(self) -> SessionNames | None:
        session = self._connections.current
        if session is None:
            return None
        if self._names is None or self._names.session is not session:
            self._names = SessionNames(session)
        return self._names


def _in_place_of(token: str, word: str, offered: Iterable[Offer]) -> list[tuple[str, str]]:
    """Return texts in place of the token, which IPython has cut by the rules of Python, and their kinds."""
    before = token.removesuffix(word) if token.endswith(word) else ""
    surplus = word.removesuffix(token) if not before and word.endswith(token) else ""
    return [
        (before + offer.text.removeprefix(surplus), offer.kind)
        for offer in offered
        if offer.text.startswith(surplus)
    ]


def _argument(line: str) -> tuple[str, str, str] | None:
    """Return the magic, the option that awaits its value, if any, and the word at the end; None elsewhere."""
    match = _MAGIC.fullmatch(line)
    if match is None:
        return None
    magic, before, word = match[1], (match[2] or "").split(), match[3]
    options = OF_A_CELL if magic == "sqlflow" else OF_A_CONNECTION
    option = ""
    for word_before in before:
        if option:  # this is its value
            option = ""
        elif word_before.startswith("-"):
            option = word_before.lstrip("-") if options.get(word_before.lstrip("-")) else ""
        elif magic == "sqlflow":  # SQL
            return None
    return (magic, option, word) if option or word.startswith("-") or magic == "sqlflow_close" else None


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
