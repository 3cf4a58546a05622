"""Language server: diagnostics, completion, help and layout for an editor, by the Language Server Protocol.

It runs no statement; with a data source it reads the names of tables, columns and models, and the columns of queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from edl.errors import Span, SQLFlowError
from edl.installation import VERSION
from sqlflow_edl.cli.program.lint import LintProblem, open_session, problems_of, problems_with_source
from sqlflow_edl.console.catalog import KnownNames, Unconnected
from sqlflow_edl.console.completion import fitting_offers
from sqlflow_edl.console.completion_rules import Offer, list_offers
from sqlflow_edl.console.connection import ConsoleConnection, UnopenedError
from sqlflow_edl.console.context import context
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.forms import STATEMENTS, line
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.layout import laid_out

_KINDS = {
    "keyword": types.CompletionItemKind.Keyword,
    "table": types.CompletionItemKind.Struct,
    "column": types.CompletionItemKind.Field,
    "model": types.CompletionItemKind.Module,
    "estimator": types.CompletionItemKind.Class,
    "program": types.CompletionItemKind.File,
    "attribute": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.Value,
    "function": types.CompletionItemKind.Function,
}
_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


def serving(options: argparse.Namespace) -> LanguageServer:
    """Make the server."""
    server = LanguageServer("sqlflow", VERSION)
    editor = Editor(server, options)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def changed(event: Any) -> None:
        editor.on_change(event)

    # Completion and help may ask the database: in a thread, so that typing goes on.
    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", " ", "="])
    )
    @server.thread()
    def completion(asked: types.CompletionParams) -> types.CompletionList:
        return editor.completion(asked)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    @server.thread()
    def hover(asked: types.HoverParams) -> types.Hover | None:
        return editor.hover(asked)

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(asked: types.DocumentFormattingParams) -> Sequence[types.TextEdit]:
        return editor.formatting(asked)

    return server


class Editor:
    """Answers to an editor about its open programs."""

    def __init__(self, server: LanguageServer, options: argparse.Namespace) -> None:
        self._server = server
        self._connection = (
            ConsoleConnection(lambda source, observer: open_session(options), options.source)
            if options.source
            else None
        )
        self._names: KnownNames = self._connection or Unconnected(options.dialect or "duckdb")

    def on_change(
        self,
        event: types.DidOpenTextDocumentParams
        | types.DidChangeTextDocumentParams
        | types.DidSaveTextDocumentParams,
    ) -> None:
        """Show the problems of a program; problems of columns and models only when it is opened or saved."""
        document = self._document(event.text_document.uri)
        with_source = self._connection is not None and not isinstance(
            event, types.DidChangeTextDocumentParams
        )
        shown = types.PublishDiagnosticsParams(
            uri=document.uri,
            version=document.version,
            diagnostics=[
                _diagnostic(document, problem) for problem in self._problems(document.source, with_source)
            ],
        )
        self._server.text_document_publish_diagnostics(shown)

    def completion(self, asked: types.CompletionParams) -> types.CompletionList:
        """Return the offers that fit the word before the cursor, best first."""
        document = self._document(asked.text_document.uri)
        offset = document.offset_at_position(asked.position)
        where = context(document.source, offset, dialect_named(self._names.dialect))
        if where is None:
            return types.CompletionList(is_incomplete=False, items=[])
        place = _range(document, Span(offset - len(where.word), offset))
        offers = fitting_offers(where.word, list_offers(where, self._names))
        items = [_item(number, offer, place) for number, offer in enumerate(offers)]
        # Keywords are offered for a typed beginning only: the editor must ask again.
        return types.CompletionList(is_incomplete=True, items=items)

    def hover(self, asked: types.HoverParams) -> types.Hover | None:
        """Return the line about the name at the cursor, or the form of the statement that a keyword begins."""
        document = self._document(asked.text_document.uri)
        span = _word_at(document.source, document.offset_at_position(asked.position))
        where = context(document.source, span.end, dialect_named(self._names.dialect))
        if where is None or not where.word:
            return None
        offer = next(
            (offer for offer in list_offers(where, self._names) if _is_named(offer, where.word)), None
        )
        if offer is not None and offer.doc:
            help_ = f"{offer.text}: {offer.doc}"
        elif forms := [
            form for name, form in STATEMENTS.items() if _is_form_of(name, where.word.upper(), where.verb)
        ]:
            help_ = "\n\n".join(f"{line(form)}\n  {form.example}" for form in forms)
        else:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, help_), _range(document, span))

    def formatting(self, asked: types.DocumentFormattingParams) -> Sequence[types.TextEdit]:
        """Lay the program out as `sqlflow fmt` does; a program with an error stays as it is."""
        document = self._document(asked.text_document.uri)
        try:
            text = laid_out(document.source, self._names.dialect)
        except SQLFlowError:  # the diagnostics show it
            return []
        whole = _range(document, Span(0, len(document.source)))
        return [] if text == document.source else [types.TextEdit(whole, text)]

    def _problems(self, text: str, with_source: bool) -> list[LintProblem]:
        try:
            if with_source and self._connection is not None:
                with self._connection.session() as session:
                    return list(problems_with_source(text, session))
            return list(problems_of(text, self._names.dialect))
        except UnopenedError as error:
            return [LintProblem(Span(0, 0), "error", error.error.message, error.error.hint or "")]

    def _document(self, uri: str) -> TextDocument:
        return self._server.workspace.get_text_document(uri)


def _diagnostic(document: TextDocument, problem: LintProblem) -> types.Diagnostic:
    hint = f" ({problem.hint})" if problem.hint else ""
    return types.Diagnostic(
        range=_range(document, problem.span),
        message=f"{problem.message}{hint}",
        severity=_SEVERITIES[problem.severity],
        source="sqlflow",
    )


def _item(number: int, offer: Offer, place: types.Range) -> types.CompletionItem:
    return types.CompletionItem(
        label=offer.text,
        kind=_KINDS[offer.kind],
        detail=offer.doc or offer.kind,
        sort_text=f"{number:05d}",
        filter_text=offer.text,
        text_edit=types.TextEdit(place, offer.text),
    )


def _range(document: TextDocument, span: Span) -> types.Range:
    start, end = (document.client_position_at_offset(offset) for offset in (span.start, span.end))
    return types.Range(start, end)


def _word_at(text: str, offset: int) -> Span:
    """Return the span of the name around an offset, with its dots."""
    inside = {*"._@"}
    start = end = offset
    while start and (text[start - 1].isalnum() or text[start - 1] in inside):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] in inside):
        end += 1
    return Span(start, end)


def _is_form_of(name: str, word: str, verb: str) -> bool:
    """Return True if a keyword begins this form of a statement, or is a clause in a statement of this verb."""
    words = name.removeprefix("TO ").split()
    return words[0] == verb if word in CLAUSES and verb else word in words


def _is_named(offer: Offer, word: str) -> bool:
    return offer.text.casefold().rstrip("(=, ") == word.casefold()
