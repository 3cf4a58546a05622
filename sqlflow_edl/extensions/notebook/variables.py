"""Variables of a notebook in the SQL of its cells.

`{{ name }}` makes the cell a template, as `--var` does: the text of the value is inserted, be it a number, a
table's name or a piece of SQL. `:name` in a query is a value: it becomes a quoted literal of the database.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Iterator, Mapping
from typing import Any

from edl.errors import SemanticError, Span, did_you_mean
from sqlflow_edl.session.texts.templates import literal, render_template
from sqlflow_edl.syntax import Statement, parse
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import Token, sql_tokens

# bool is an int, datetime a date
_PLAIN = (str, int, float, decimal.Decimal, datetime.date, datetime.time, type(None))
_SHELLS = frozenset(("In", "Out", "exit", "quit", "open", "get_ipython"))
_PARAMETER = re.compile(r":[^\W\d]\w*")
_BEFORE = frozenset(" \t\r\n(,=<>+-*/%|")  # characters before a parameter; else the colon belongs to the SQL


class _Refused:
    """Variable without a text for SQL. Using it is an error, its existence is not."""

    def __init__(self, name: str, value: object) -> None:
        self.why = (
            f"{name} is a {type(value).__name__}, and SQL takes numbers, texts, dates, and lists of them"
        )

    def __str__(self) -> str:
        raise SemanticError(self.why)


def fill_variables(text: str, namespace: Mapping[str, Any], dialect: str) -> str:
    """Replace the variables of the text.

    Raises SQLFlowError with the place in `text` for an unknown one or a wrong value.
    """
    if "{{" in text:
        text = render_template(text, _variables(namespace), dialect, "set {name} in a cell before this one")
    return _bound(text, namespace, dialect)


def _variables(namespace: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _python(value) if _is_plain(_python(value)) else _Refused(name, value)
        for name, value in namespace.items()
        if not name.startswith("_") and name not in _SHELLS
    }


def sql_variable_names(namespace: Mapping[str, Any]) -> list[str]:
    """Return the names of variables that SQL may use."""
    return [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and name not in _SHELLS and _is_plain(_python(value))
    ]


def _python(value: Any) -> Any:
    """Convert a number of NumPy or pandas to Python's own type."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "shape", None) == () else value


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, _PLAIN)


# Parameters ------------------------------------------------------------------------------------------------


def _bound(text: str, namespace: Mapping[str, Any], dialect: str) -> str:
    if not _PARAMETER.search(text):
        return text
    tokens = [token for statement in parse(text, dialect) for token in _parameters(text, statement, dialect)]
    for token in reversed(tokens):
        text = text[: token.start] + _literal(token, namespace, dialect) + text[token.end :]
    return text


def _parameters(text: str, statement: Statement, dialect: str) -> Iterator[Token]:
    """Yield the parameters of its query, outside of strings, comments, lists, slices and maps."""
    span = statement.span if statement.kind == "sql" else statement.select_span
    if span is None:
        return
    brackets: list[str] = []
    for token in sql_tokens(text[: span.end], span.start, dialect_named(dialect)):
        if token.kind == "open":
            brackets.append(token.text)
        elif token.kind == "close" and brackets:
            brackets.pop()
        elif _is_parameter(text, token) and brackets[-1:] in ([], ["("]):
            yield token


def _is_parameter(text: str, token: Token) -> bool:
    return (
        token.kind == "word"
        and _PARAMETER.fullmatch(token.text) is not None
        and text[token.start - 1 : token.start] in _BEFORE
    )


def _literal(token: Token, namespace: Mapping[str, Any], dialect: str) -> str:
    """Format the value in the database's SQL; a list in parentheses, as IN takes it."""
    name, span = token.text[1:], Span(token.start, token.end)
    if name not in namespace:
        hint = (
            did_you_mean(name, sql_variable_names(namespace), list_up_to=0)
            or f"set {name} in a cell before this one"
        )
        raise SemanticError(f"the variable {name} is not given", span=span, hint=hint)
    value = _python(namespace[name])
    if isinstance(value, dict) or not _is_plain(value):
        raise SemanticError(_Refused(name, value).why, span=span)
    value = tuple(value) if isinstance(value, list) else value
    return literal(value, dialect)
