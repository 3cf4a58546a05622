"""Calls of `PREDICT(model, query)` as tables of a query: where they stand, and what they predict.

    SELECT * FROM orders JOIN PREDICT(late, (SELECT * FROM orders WHERE open), threshold = 0.3) p USING (id)

All else is ordinary SQL of the database, and stays as it is written. A call is recognised by its place: sqlglot parses
the statement with a name in place of the call, which must be a table in the tree.
"""

from __future__ import annotations

import ast as python
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edl.errors import Span, StatementSyntaxError
from edl.models.registry.records import split_reference
from sqlflow_edl.syntax.ast import Attribute, Constant, Name
from sqlflow_edl.syntax.dialects import Dialect, dialect_named
from sqlflow_edl.syntax.lexer import Token, name_value, sql_tokens
from sqlflow_edl.syntax.queries import trees

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES")
_MARK = "sqlflow_edl_call_"
_CALL = re.compile(r"\bpredict\b", re.IGNORECASE)
_FORM = "write PREDICT(my_model, (SELECT …)) or PREDICT(my_model, my_table)"


@dataclass(frozen=True, slots=True)
class PredictCall:
    """Call of PREDICT.

    span: of the call in its text. query: a SELECT, or the name of a table, at `query_span`.
    """

    span: Span
    model: Name
    query: str
    query_span: Span
    is_table: bool
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """Word PREDICT with parentheses: the tokens between them."""

    span: Span
    inside: tuple[Token, ...]


def calls_predict(text: str) -> bool:
    """Return True if the text may have a call: a quick look."""
    return _CALL.search(text) is not None


def predict_calls(text: str, dialect: str, start: int = 0) -> list[PredictCall]:
    """Return the outermost calls of a statement, in order.

    start: place of the text in its program, to which spans in errors and names are relative. Raises
    StatementSyntaxError for a call without a model or a query.
    """
    known = dialect_named(dialect)
    found = list(_found(text, known))
    return [_call(each, text, start) for each in _tables(found, text, known)]


def _found(text: str, dialect: Dialect) -> Iterator[_Found]:
    """Yield the outermost words PREDICT with parentheses."""
    tokens = [token for token in sql_tokens(text, 0, dialect) if token.kind != "comment"]
    at = 0
    while at < len(tokens) - 1:
        end = _closing(tokens, at + 1)
        is_call = tokens[at].word == "PREDICT" and tokens[at + 1].text == "("
        if not is_call or end is None or (at and tokens[at - 1].text == "."):
            at += 1
            continue
        yield _Found(Span(tokens[at].start, tokens[end].end), tuple(tokens[at + 2 : end]))
        at = end + 1


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the position of the parenthesis that closes the one at `opening`, or None."""
    depth = 0
    for at in range(opening, len(tokens)) if tokens[opening].kind == "open" else ():
        depth += (tokens[at].kind == "open") - (tokens[at].kind == "close")
        if depth == 0:
            return at
    return None


def _tables(found: Sequence[_Found], text: str, dialect: Dialect) -> list[_Found]:
    """Return those that stand where a table stands; all behind FROM and JOIN if sqlglot cannot parse the text."""
    if not found:
        return []
    from sqlglot import exp

    marked = replaced(text, [(each.span, f"{_MARK}{number}") for number, each in enumerate(found)])
    try:
        names = {table.name for tree in trees(marked, dialect) for table in tree.find_all(exp.Table)}
    except ValueError:
        return [each for each in found if _word_before(text, each.span.start, dialect) in ("FROM", "JOIN")]
    return [each for number, each in enumerate(found) if f"{_MARK}{number}" in names]


def _word_before(text: str, place: int, dialect: Dialect) -> str:
    tokens = [token for token in sql_tokens(text[:place], 0, dialect) if token.kind != "comment"]
    return tokens[-1].word if tokens else ""


def replaced(text: str, parts: Sequence[tuple[Span, str]]) -> str:
    """Return the text with other text in place of some spans, which are in ascending order."""
    found, at = [], 0
    for span, instead in parts:
        found += [text[at : span.start], instead]
        at = span.end
    return "".join([*found, text[at:]])


# Arguments -------------------------------------------------------------------------------------------------


def _call(found: _Found, text: str, start: int) -> PredictCall:
    place = found.span.shifted(start)
    arguments = _arguments(found.inside)
    if len(arguments) < 2 or not all(arguments):
        what = "a model and a query" if not found.inside else "a query behind the model"
        raise StatementSyntaxError(f"PREDICT needs {what}", span=place, hint=_FORM)
    model = _model(arguments[0], text, start)
    query = arguments[1]
    if query[0].text == "(" and _closing(query, 0) == len(query) - 1 and len(query) > 2:
        query = query[1:-1]
    span = Span(query[0].start, query[-1].end)
    is_table = query[0].word not in _QUERIES and query[0].text != "("
    if is_table and any(
        token.kind not in ("word", "name", "string") and token.text != "." for token in query
    ):
        raise StatementSyntaxError(
            "PREDICT takes a query or the name of a table", span=span.shifted(start), hint=_FORM
        )
    attributes = tuple(_attribute(each, text, start) for each in arguments[2:])
    return PredictCall(found.span, model, text[span.start : span.end], span, is_table, attributes)


def _arguments(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside of parentheses; a query without parentheses keeps its own."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.kind == "open") - (token.kind == "close")
        of_query = len(found) == 2 and found[1] and found[1][0].word in _QUERIES
        if token.text == "," and depth == 0 and not of_query:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _model(tokens: Sequence[Token], text: str, start: int) -> Name:
    """Return the name of a model: a dotted name, possibly with @version, or a string of it."""
    span = Span(tokens[0].start, tokens[-1].end)
    written = text[span.start : span.end]
    if len(tokens) == 1 and tokens[0].kind in ("string", "name"):
        joined = name_value(written)
    else:
        joined = "".join(name_value(token.text) if token.kind == "name" else token.text for token in tokens)
    is_name = all(token.kind in ("word", "name", "string") or token.text in (".", "@") for token in tokens)
    if not is_name or not joined:
        raise StatementSyntaxError("this is no name of a model", span=span.shifted(start), hint=_FORM)
    name, version = split_reference(joined)
    return Name((name,), written, span.shifted(start), version)


def _attribute(tokens: Sequence[Token], text: str, start: int) -> Attribute:
    """Return a setting such as `threshold = 0.3`, in the form of a WITH attribute: `predict.threshold`."""
    span = Span(tokens[0].start, tokens[-1].end)
    key, sign, value = text[span.start : span.end].partition("=")
    key, value = key.rstrip(" :\t\n"), value.lstrip("> \t\n")
    try:
        number = python.literal_eval(value) if sign else None
    except (ValueError, SyntaxError):
        number = None
    if not isinstance(number, int | float) or not key:
        raise StatementSyntaxError(
            "a setting of PREDICT is a name and a number",
            span=span.shifted(start),
            hint="such as threshold = 0.3 or interval = 0.9",
        )
    name = key if key.lower().startswith("predict.") else f"predict.{key}"
    of_value = Span(span.end - len(value), span.end).shifted(start)
    return Attribute(name, Constant(number, of_value), Span(span.start, span.start + len(key)).shifted(start))


# CTEs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shared:
    """Common table expression in front of a statement: its name, and the span of `name AS (…)`."""

    name: str
    span: Span


def shared_queries(text: str, dialect: str) -> tuple[str, list[Shared]]:
    """Return WITH or WITH RECURSIVE and the common table expressions of the statement's first WITH, if it has one."""
    tokens = [token for token in sql_tokens(text, 0, dialect_named(dialect)) if token.kind != "comment"]
    depth, at = 0, 0
    while at < len(tokens) and not (depth == 0 and tokens[at].word == "WITH"):
        depth += (tokens[at].kind == "open") - (tokens[at].kind == "close")
        at += 1
    if at == len(tokens):
        return "", []
    at += 1
    recursive = at < len(tokens) and tokens[at].word == "RECURSIVE"
    at += recursive
    found = []
    while at < len(tokens) and tokens[at].kind in ("word", "name"):
        first = tokens[at]
        while at < len(tokens) and tokens[at].word != "AS":
            at += 1
        while at < len(tokens) and tokens[at].kind != "open":
            at += 1
        end = _closing(tokens, at) if at < len(tokens) else None
        if end is None:
            break
        found.append(Shared(name_value(first.text), Span(first.start, tokens[end].end)))
        at = end + 1
        if at == len(tokens) or tokens[at].text != ",":
            break
        at += 1
    return "WITH RECURSIVE" if recursive else "WITH", found
