"""Syntax of what is passed on to the database: ordinary SQL, and the SELECT of extended statements.

The database's own parser decides, before anything runs. Where a small change makes a valid statement of one that it
refuses, that statement is the hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from edl.data import Source
from edl.errors import Span, SQLFlowError, StatementSyntaxError
from edl.sources import syntax
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import name_value
from sqlflow_edl.syntax.lookalikes import find_correction
from sqlflow_edl.syntax.parse import read_statements
from sqlflow_edl.syntax.predict_calls import calls_predict, predict_calls, replace_parts
from sqlflow_edl.syntax.queries import place_of_error, trees

Parser = Callable[[str], SQLFlowError | None]  # returns the error of one statement of the database
_CALL = "edl_table"  # in place of a call of PREDICT, which is longer
# what changes how the database reads the statements behind it
_CHANGES_SYNTAX = re.compile(
    r"\A\s*(?:LOAD|INSTALL|CALL)\b|sql_mode|standard_conforming_strings|_parser", re.IGNORECASE
)
_PLACE = re.compile(r"\. Line \d+, Col: \d+")  # in sqlglot's messages


def changes_syntax(statement: Statement) -> bool:
    """Return True if the database may read later statements otherwise once this one has run."""
    return statement.kind == "sql" and _CHANGES_SYNTAX.search(statement.text) is not None


def parser_of(source: Source) -> Parser | None:
    """Return the parser of the source's database, or None if it does not tell what it would refuse."""
    return source.syntax_error if source.finds_syntax_errors else None


def parser_without_source(dialect: str) -> Parser | None:
    """Return the parser of an embedded database, or None for the dialect of a server."""
    return partial(syntax.syntax_error, dialect=dialect) if dialect in syntax.PARSERS else None


def tables_of(source: Source, text: str) -> list[str]:
    """Return the tables that a text names."""
    words = {word.casefold() for word in re.findall(r"\w+", text)}
    with suppress(SQLFlowError):
        return [table for table in map(name_value, source.tables()) if table.casefold() in words]
    return []


def names_of(source: Source, text: str) -> list[str]:
    """Return the columns of the tables that a text names."""
    words = {word.casefold() for word in re.findall(r"\w+", text)}
    names: list[str] = []
    with suppress(SQLFlowError):
        for table in source.tables():
            if table.casefold() in words:
                names += (name for name, _ in source.column_types(table))
    return names


def check_syntax(
    statement: Statement,
    dialect: str,
    parser: Parser | None,
    names: Callable[[], Iterable[str]] = tuple,
    tables: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Raise the error of SQL that the parser refuses, at its place in the program.

    names: returns the columns that the statement may mean. tables: returns the tables.
    """
    error = _first_error(statement, dialect, parser) if parser is not None else None
    if parser is None or error is None:
        return
    if statement.refused is not None:
        raise statement.refused
    _add_correction(error, statement, dialect, parser, names, tables)
    raise error


def find_doubt(statement: Statement, dialect: str, parser: Parser | None = None) -> SQLFlowError | None:
    """Return an error for a doubtful part of SQL that may be of another database than the dialect's, or None.
    The SELECT of an extended statement is read by the parser, if there is one; ordinary SQL by sqlglot, if there is
    none. sqlglot does not know every statement of a database: one of a kind that it does not know is doubted only if a
    small change makes it one that it knows.
    """
    if parser is not None:
        try:
            if statement.kind != "sql":
                check_syntax(statement, dialect, parser)
        except SQLFlowError as error:
            return error
        return None
    doubt = (
        _error(statement.text, dialect, partial(_find_parser_error, dialect=dialect))
        if statement.kind == "sql"
        else None
    )
    if doubt is None:
        return None
    is_placed = doubt.span is not None
    doubt.span = doubt.span.shift(statement.span.start) if doubt.span else None
    _add_correction(
        doubt, statement, dialect, partial(_find_parser_error, dialect=dialect), parser_knows=False
    )
    return doubt if is_placed or doubt.hint else None


def _passed_on(statement: Statement) -> Iterator[tuple[str, Span]]:
    """Yield the SQL of a statement that its database reads, with its place: its query, and VALIDATE ON's."""
    if statement.kind == "sql":
        yield statement.text, statement.span
        return
    yield statement.select, statement.select_span or statement.span
    held_out = statement.validate
    if held_out is not None and held_out.query:
        yield held_out.query, held_out.query_span or held_out.span


def _first_error(statement: Statement, dialect: str, parser: Parser) -> SQLFlowError | None:
    """Return the first error of the SQL that the database reads, at its place in the program, or None."""
    for sql, span in _passed_on(statement):
        if (error := _error(sql, dialect, parser)) is not None:
            error.span = error.span.shift(span.start) if error.span else span
            return error
    return None


def _add_correction(
    error: SQLFlowError,
    statement: Statement,
    dialect: str,
    parser: Parser,
    names: Callable[[], Iterable[str]] = tuple,
    tables: Callable[[], Iterable[str]] = tuple,
    *,
    parser_knows: bool = True,
) -> None:
    """Let the hint of an error be the statement that was meant, if one is found.

    The place of the error is in the program.
    """

    def refusal(text: str) -> SQLFlowError | None:
        return _refusal(text, dialect, parser)

    start = statement.span.start
    place = error.span.shift(-start) if error.span else None
    if correction := find_correction(statement.text, dialect_named(dialect), place, refusal, names, tables):
        error.hint = correction.hint
        if correction.place is not None:  # the database stumbles over a word behind the wrong one
            error.span = correction.place.shift(start)
            if parser_knows:
                error.message = f"unexpected {statement.text[correction.place.start : correction.place.end]}"


def _refusal(text: str, dialect: str, parser: Parser) -> SQLFlowError | None:
    """Return the first error of the syntax of statements, extended or not, or None."""
    for statement in read_statements(text, dialect, advise=False):
        if isinstance(statement, SQLFlowError):
            return statement
        if (error := _first_error(statement, dialect, parser)) is not None:
            return error
    return None


def _error(sql: str, dialect: str, parser: Parser) -> SQLFlowError | None:
    """Return the error of SQL, if there is any, with a table in place of each call of PREDICT: all places stay."""
    if not sql or not calls_predict(sql):
        return parser(sql) if sql else None
    try:
        calls = predict_calls(sql, dialect)
    except StatementSyntaxError:  # of a call, which the check of calls reports
        return None
    return parser(
        replace_parts(sql, [(call.span, _CALL.ljust(call.span.end - call.span.start)) for call in calls])
    )


def _find_parser_error(sql: str, dialect: str) -> StatementSyntaxError | None:
    """Return what sqlglot has against SQL; an error without a place if it knows no such kind of statement."""
    from sqlglot import exp

    dialect_of_name, message = dialect_named(dialect), "this is not SQL as sqlglot knows"
    try:
        parsed = trees(sql, dialect_of_name)
    except ValueError as error:
        why = _PLACE.sub("", str(error))
        return StatementSyntaxError(
            f"{message} {dialect_of_name.name} ({why}); the database decides",
            span=place_of_error(sql, dialect_of_name),
        )
    if any(isinstance(tree, exp.Command) for tree in parsed):
        return StatementSyntaxError(f"{message} {dialect_of_name.name}; the database decides")
    return None
