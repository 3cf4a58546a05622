"""Confirmation of destructive statements before they run."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlflow_edl.analysis.programs.outline import Thing, effects, title
from sqlflow_edl.syntax import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import name_value, sql_tokens

_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "DROP", "TRUNCATE", "MERGE", "VALUES", "FROM")


def question(statement: Statement, dialect: str, tables: Collection[str]) -> str:
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
