"""Parser of programs: split the text into statements, parse the clauses, build the tree.

* parse(text, dialect) -> [Statement, …]
* read_statements(text, dialect) -> [Statement or error, …]
* is_complete(text, dialect) -> bool

The SELECT is cut out byte for byte, including its leading and trailing comments (to put it in parentheses, add a line
break after it). Ordinary SQL becomes a statement of kind "sql", unparsed. If sqlglot cannot parse the SELECT of an
extended statement, that is a warning: the database decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from edl.errors import ErrorList, Span, SQLFlowError, StatementSyntaxError, raise_all
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import Dialect, dialect_named
from sqlflow_edl.syntax.error_messages import NoLabelError
from sqlflow_edl.syntax.foreign_statements import find_reader
from sqlflow_edl.syntax.keywords import LazyTokens
from sqlflow_edl.syntax.lookalikes import correct_statement, find_quoted_names, find_rewriting, one_line
from sqlflow_edl.syntax.predict_calls import calls_predict, explains, predict_calls, refuse_functions
from sqlflow_edl.syntax.split import Piece, split

DOUBT = "the SELECT is not SQL as sqlglot knows"  # beginning of a warning


def parse(text: str, dialect: str = "duckdb") -> list[Statement]:
    """Return the statements of a program, in order; pieces with only comments are left out.

    Raises StatementSyntaxError, or an ErrorList if several statements have errors; SemanticError for an unknown
    dialect.
    """
    items = read_statements(text, dialect)
    raise_all([item for item in items if isinstance(item, SQLFlowError)])
    return [item for item in items if isinstance(item, Statement)]


def read_statements(
    text: str,
    dialect: str = "duckdb",
    *,
    advise: bool = True,
    names: Callable[[str], Iterable[str]] = lambda statement: (),
) -> list[Statement | SQLFlowError]:
    """Return the statements of a program, in order, with the error in place of each faulty statement.

    advise: let the hint of an error be the statement that was probably meant, if one is found. names: returns the
    columns that a statement may mean. Raises SemanticError
    for an unknown dialect.
    """
    dialect_of_name = dialect_named(dialect)
    items: list[Statement | SQLFlowError] = []
    for piece in split(text, dialect_of_name):
        if not piece.empty:
            try:
                items.append(_statement(piece, text, dialect_of_name))
            except SQLFlowError as error:
                if advise and isinstance(error, StatementSyntaxError):
                    _add_advice(error, piece, text, dialect_of_name, names)
                elif advise and isinstance(error, ErrorList):
                    _add_correction(error, error.errors[-1], _slice(text, piece.span), piece, dialect_of_name)
                items.append(error)
    return items


def _add_advice(
    error: StatementSyntaxError,
    piece: Piece,
    text: str,
    dialect: Dialect,
    names: Callable[[str], Iterable[str]],
) -> None:
    """Let the hint of an error be the statement that was probably meant, or add it to the hint, if one is found."""

    refusal = partial(_find_refusal, dialect=dialect)
    statement = text[piece.span.start : piece.raw.end]
    columns = [*names(statement)]
    if isinstance(error, NoLabelError):
        error.suggest(columns)
    hint = find_quoted_names(statement, dialect, refusal, columns)
    error.hint = hint or find_rewriting(statement, dialect, refusal, columns) or error.hint
    _add_correction(error, error, _slice(text, piece.span), piece, dialect)


def _add_correction(
    error: SQLFlowError, last: SQLFlowError, statement: str, piece: Piece, dialect: Dialect
) -> None:
    """Let the last error show the whole statement with the advice of all errors, if nothing is wrong with it."""
    corrected = correct_statement(error, statement, piece.span.start)
    if corrected is not None and _find_refusal(corrected, dialect) is None:
        last.corrected = one_line(corrected, dialect)


def _find_refusal(text: str, dialect: Dialect) -> SQLFlowError | None:
    items = read_statements(text, dialect.name, advise=False)
    return next((item for item in items if isinstance(item, SQLFlowError)), None)


def is_complete(text: str, dialect: str = "duckdb") -> bool:
    """Return True if the text ends a statement: with a semicolon, outside strings, comments and routine bodies."""
    complete = False
    for piece in split(text, dialect_named(dialect)):
        complete = piece.ended or (complete and piece.empty)
    return complete


def _statement(piece: Piece, text: str, dialect: Dialect) -> Statement:
    if piece.error:
        raise piece.error
    if piece.clauses is None and (read := find_reader(_slice(text, piece.span))) is not None:
        statement = read(text, piece.span, dialect)
        query = statement.select_span or piece.span
        return replace(statement, warnings=(*statement.warnings, *_warnings(query, text, dialect)))
    if piece.clauses is None or (
        piece.bare and piece.query and _is_ordinary(piece, piece.query, text, dialect)
    ):
        _raise_doubts(piece, piece.span.end, text, dialect)
        sql = _slice(text, piece.span)
        planned = (
            calls_predict(sql)
            and explains(sql, dialect)
            and predict_calls(sql, dialect.name, piece.span.start) != []
        )
        refused = piece.refused or refuse_functions(sql, dialect.name, piece.span.start)
        return Statement("sql", sql, piece.span, plan=planned, refused=refused)
    if piece.query:
        _raise_doubts(piece, piece.query.end, text, dialect)
    return _build_extended(piece, piece.clauses, text, dialect)


def _is_ordinary(piece: Piece, query: Span, text: str, dialect: Dialect) -> bool:
    """Return True if apparent clauses without TO are ordinary SQL: the query is incomplete without them."""
    whole = Span(query.start, piece.span.end)
    return _objection(text, query, dialect) is not None and _objection(text, whole, dialect) is None


def _raise_doubts(piece: Piece, end: int, text: str, dialect: Dialect) -> None:
    """Raise the error of a doubtful extended statement, if the SQL up to `end` is invalid."""
    for doubt in piece.doubts:
        before = doubt.query
        if before.start == before.end or not _objection(text, Span(before.start, end), dialect):
            return
        if not _objection(text, before, dialect):
            raise doubt.error


def _build_extended(piece: Piece, clauses: LazyTokens, text: str, dialect: Dialect) -> Statement:
    from sqlflow_edl.syntax.ast_builder import build_statement
    from sqlflow_edl.syntax.clauses import parse_clauses

    tree = piece.tree or parse_clauses(clauses, dialect)
    statement = replace(
        build_statement(tree, text, dialect), text=_slice(text, piece.span), span=piece.span, plan=piece.plan
    )
    if piece.query is None:
        return statement
    return replace(
        statement,
        select=_slice(text, piece.query),
        select_span=piece.query,
        warnings=_warnings(piece.query, text, dialect),
    )


def _warnings(query: Span, text: str, dialect: Dialect) -> tuple[str, ...]:
    objection = _objection(text, query, dialect)
    if objection is None:
        return ()
    return (f"{DOUBT} {dialect.name} ({objection}); the database decides",)


def _objection(text: str, span: Span, dialect: Dialect) -> str | None:
    from sqlflow_edl.syntax.queries import objection

    return objection(_slice(text, span), dialect)


def _slice(text: str, span: Span) -> str:
    return text[span.start : span.end]
