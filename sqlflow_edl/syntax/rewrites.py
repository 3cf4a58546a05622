"""Statements as other systems write them, and frequent slips, each with the change that makes a statement of it.

A rewriting looks at the words of a statement outside parentheses and yields changes; whether one makes a valid
statement is for the parsers to say, so a rewriting need not know what else may stand there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from edl.errors import Span
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.keywords import CLAUSES, QUERY_CLAUSES
from sqlflow_edl.syntax.lexer import Token, code_tokens, quoted_name

_VERBS = frozenset(("TRAIN", "PREDICT", "EVALUATE", "EXPLAIN"))
_CURLY = re.compile("[‘’“”]")
_STRAIGHT = {"‘": "'", "’": "'", "“": "'", "”": "'"}
_JOINS_QUERIES = frozenset(
    ("ALL", "UNION", "EXCEPT", "INTERSECT", "MINUS", "DISTINCT", "AS", "BY", "NAME", ")")
)
_TRUTHS = frozenset(("NULL", "NOT", "TRUE", "FALSE", "UNKNOWN", "DISTINCT", "OF", "JSON"))
_COMPARES = frozenset("=<>!")
_WORD = re.compile(r"[^\W\d]\w*")
LABEL_NAME = re.compile(
    r"^(label|target|class|y|outcome|churned|churn|is_fraud|fraud|survived|species)$", re.IGNORECASE
)
_LABEL = "my_label"  # in a statement that names none
_UNLABELLED = re.compile(r"k_?means|cluster|isolation", re.IGNORECASE)


class Rewrite(NamedTuple):
    """Other text in place of parts of a statement, in ascending order. keyword: what was meant; or else why."""

    parts: tuple[tuple[Span, str], ...]
    keyword: str = ""
    why: str = ""

    def apply(self, text: str) -> str:
        for span, instead in reversed(self.parts):
            text = text[: span.start] + instead + text[span.end :]
        return text


def likely_label(columns: Sequence[str]) -> str:
    """Return the column that is probably predicted, as the clauses write it: one with such a name, or the last."""
    label = next(filter(LABEL_NAME.match, columns), columns[-1])
    return label if _WORD.fullmatch(label) else quoted_name(label)


def rewritings(text: str, dialect: Dialect, columns: Sequence[str] = ()) -> Iterator[Rewrite]:
    """Yield the changes of one statement for all that it may be, the likeliest first.

    columns: that the statement may mean.
    """
    tokens = list(code_tokens(text, 0, dialect))
    tokens = tokens[:-1] if tokens and tokens[-1].kind == "semicolon" else tokens
    if tokens:
        outer = _outside_parentheses(tokens)
        yield from _query_first(outer, text, columns)
        for rewriting in _REWRITINGS:
            yield from rewriting(outer, text)


def quoted_names(text: str, dialect: Dialect, names: Iterable[str]) -> Rewrite | None:
    """Return the change that quotes names that are not one word, such as `customer since`; None if there are none.

    names: of columns, as their tables write them.
    """
    tokens = list(code_tokens(text, 0, dialect))
    starts, ends = {token.start for token in tokens}, {token.end for token in tokens}
    parts = dict[int, tuple[Span, str]]()
    for name in sorted(
        {candidate for candidate in names if not _WORD.fullmatch(candidate)}, key=len, reverse=True
    ):
        for match in re.finditer(re.escape(name), text, re.IGNORECASE):
            span = Span(*match.span())
            is_bare = span.start in starts and span.end in ends and not _is_in(span, parts)
            if is_bare and not any(token.start == span.start and token.end >= span.end for token in tokens):
                parts[span.start] = (
                    span,
                    quoted_name(name) if not dialect.double_quotes_name else _double(name),
                )
    if not parts:
        return None
    return Rewrite(tuple(parts[at] for at in sorted(parts)), why="a name that is not one word has quotes")


def _is_in(span: Span, parts: Mapping[int, tuple[Span, str]]) -> bool:
    return any(other.start <= span.start and span.end <= other.end for other, _ in parts.values())


def _double(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _outside_parentheses(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens at depth 0, with parentheses themselves."""
    outer: list[Token] = []
    depth = 0
    for token in tokens:
        depth -= token.nesting < 0
        if depth <= 0:
            outer.append(token)
        depth += token.nesting > 0
    return outer


def _straight_quotes(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """Yield the statement with straight quotes; a name in a clause gets double ones."""
    parts, before = [], ""
    quoted = [token for token in tokens if token.kind in ("string", "name")]
    for match in _CURLY.finditer(text):
        if any(token.start < match.start() < token.end for token in quoted):
            continue
        is_opening = match[0] in "‘“"
        words = text[: match.start()].split()
        if is_opening:
            before = words[-1].upper() if words else ""
        is_name = before in CLAUSES and match[0] in "“”"
        parts.append((Span(*match.span()), '"' if is_name else _STRAIGHT[match[0]]))
    if parts:
        yield Rewrite(tuple(parts), why="write straight quotes")


def _without_assignment(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`df = SELECT …`: the name has no meaning."""
    if len(tokens) > 2 and tokens[1].text == "=" and tokens[2].word in ("SELECT", "WITH", "FROM", "TO"):
        name = text[tokens[0].start : tokens[1].end]
        yield Rewrite(((Span(tokens[0].start, tokens[2].start), ""),), why=f"leave out {name}")


def _decimal_point(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`learning_rate = 0,01`: a decimal has a point."""
    for before, whole, comma, digits in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        is_number = before.text == "=" and whole.text.isdecimal() and digits.text.isdecimal()
        if is_number and comma.text == "," and (whole.text == "0" or digits.text[0] == "0"):
            parts = ((Span(comma.start, digits.start), "."),)
            yield Rewrite(parts, why="a decimal has a point")


def _model_alone(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`TO EXPLAIN USING m`: the model stands behind the verb."""
    for verb, using, model in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if verb.word in ("EVALUATE", "EXPLAIN") and using.word == "USING":
            yield Rewrite(((Span(using.start, model.start), ""),), why=f"leave out USING behind {verb.word}")


def _list(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`model.hidden_units = 10, 20`: a list has brackets."""
    for at, token in enumerate(tokens):
        if token.text != "=" or at + 3 >= len(tokens):
            continue
        last = at + 1
        while last + 2 < len(tokens) and tokens[last + 1].text == "," and _is_value(tokens[last + 2]):
            last += 2
        if last > at + 1 and _is_value(tokens[at + 1]):
            first = tokens[at + 1].start
            listed = f"[{text[first : tokens[last].end]}]"
            yield Rewrite(((Span(first, tokens[last].end), listed),), why="write a list in brackets")


def _is_value(token: Token) -> bool:
    return token.kind == "string" or token.text[0].isdigit()


def _query_first(tokens: Sequence[Token], text: str, columns: Sequence[str]) -> Iterator[Rewrite]:
    """`PREDICT y USING m FROM t`, `TRAIN DNNClassifier ON t`: the query comes first, the label and the model last."""
    start = 1 if tokens[0].word == "TO" and len(tokens) > 1 else 0
    verb = tokens[start]
    where = next((at for at, token in enumerate(tokens) if token.word in ("FROM", "ON") and at > start), None)
    if verb.word not in _VERBS or where is None or where + 1 >= len(tokens):
        return
    behind = next((at for at in range(where + 1, len(tokens)) if tokens[at].word in CLAUSES), len(tokens))
    query = f"SELECT * FROM {text[tokens[where + 1].start : tokens[behind - 1].end]}"
    middle = text[verb.end : tokens[where - 1].end] if where - 1 > start else ""
    if verb.word == "PREDICT" and len(tokens) > start + 2 and tokens[start + 2].word == "USING":
        middle = text[tokens[start + 1].end : tokens[where - 1].end]  # a name of the label would name a table
    rest = f" {text[tokens[behind].start : tokens[-1].end]}" if behind < len(tokens) else ""
    why = "the query comes first"
    if verb.word == "TRAIN":
        words = {token.word for token in tokens[behind:]}
        if not words & {"LABEL", "TARGET"} and not _UNLABELLED.search(middle):
            label = f" LABEL {likely_label(columns) if columns else _LABEL}"
            into = rest.upper().find(" INTO ") if "INTO" in words else len(rest)
            rest, why = f"{rest[:into]}{label}{rest[into:]}", f"{why}, the label behind it"
        if "INTO" not in words:
            rest, why = f"{rest} INTO my_model", f"{why}, and the name of the model last"
    statement = f"{query} TO {verb.word}{middle.rstrip()}{rest}"
    yield Rewrite(((Span(tokens[0].start, tokens[-1].end), statement),), why=why)


def _validation_query(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`VALIDATE ON t`: its rows are a query."""
    for verb, on, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if verb.word == "VALIDATE" and on.word == "ON" and name.kind in ("word", "name"):
            query = f"(SELECT * FROM {name.text})"
            yield Rewrite(((Span(name.start, name.end), query),), why="the rows are a query in parentheses")


def _two_statements(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`SELECT … SELECT …`, `… INTO m TO EVALUATE m`: a semicolon stands between statements."""
    for at in range(1, len(tokens)):
        token, before = tokens[at], tokens[at - 1]
        if token.word == "SELECT" and before.word not in _JOINS_QUERIES:
            yield Rewrite(((Span(before.end, token.start), "; "),), why="put a semicolon before SELECT")
    into = next((at for at, token in enumerate(tokens) if token.word == "INTO"), None)
    first = next((at for at, token in enumerate(tokens) if token.word in ("LABEL", "TARGET", "TO")), None)
    if into is None or not first or first > into or tokens[0].word not in ("SELECT", "FROM", "WITH"):
        return
    for at in range(into + 1, len(tokens) - 1):
        if tokens[at].word == "TO" and tokens[at + 1].word in _VERBS:
            query = text[tokens[0].start : tokens[first - 1].end]
            gap = Span(tokens[at - 1].end, tokens[at].start)
            yield Rewrite(((gap, f"; {query} "),), why="write two statements")


def _with_behind_label(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`SELECT … WITH train.epoch = 3 LABEL y INTO m`: WITH stands behind LABEL."""
    start = next(
        (
            at
            for at in range(1, len(tokens) - 3)
            if tokens[at].word == "WITH" and tokens[at + 2].text in ("=", ".") and tokens[at - 1].word != "AS"
        ),
        None,
    )
    if start is None:
        return
    label = next(
        (at for at in range(start, len(tokens)) if tokens[at].word in ("LABEL", "TARGET", "TO")), None
    )
    if label is None:
        return
    behind = next((at for at in range(label, len(tokens)) if tokens[at].word == "INTO"), len(tokens) - 1)
    place = tokens[behind].start if tokens[behind].word == "INTO" else tokens[behind].end
    clause = text[tokens[start].start : tokens[label - 1].end]
    moved = f"{clause} " if tokens[behind].word == "INTO" else f" {clause}"
    parts = ((Span(tokens[start].start, tokens[label].start), ""), (Span(place, place), moved))
    yield Rewrite(parts, why=f"put WITH behind {tokens[label].word}")


def _limit(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`SELECT TOP 5 *`: LIMIT stands behind the query."""
    if (
        len(tokens) > 3
        and tokens[0].word == "SELECT"
        and tokens[1].word == "TOP"
        and tokens[2].text.isdecimal()
    ):
        behind = next(
            (at for at, token in enumerate(tokens) if token.word in ("LABEL", "TARGET", "TO")), len(tokens)
        )
        end = tokens[behind - 1].end
        parts = ((Span(tokens[1].start, tokens[3].start), ""), (Span(end, end), f" LIMIT {tokens[2].text}"))
        yield Rewrite(parts, why="TOP is written LIMIT, behind the query")


def _and(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`x > 3 && y < 4`: AND joins conditions."""
    pairs = itertools.pairwise(tokens)
    parts = [
        (Span(first.start, second.end), "AND")
        for first, second in pairs
        if first.text == second.text == "&" and first.end == second.start
    ]
    if parts:
        yield Rewrite(tuple(parts), why="&& is written AND")


def _commas(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`SELECT a b c FROM t`: commas stand between columns."""
    last = next((at for at, token in enumerate(tokens) if token.word == "FROM"), 0)
    inside = tokens[1:last]
    are_names = all(each.kind in ("word", "name") and each.word not in _JOINS_QUERIES for each in inside)
    if tokens[0].word == "SELECT" and len(inside) > 2 and are_names:
        parts = tuple((Span(each.end, each.end), ",") for each in inside[:-1])
        yield Rewrite(parts, why="put commas between columns")


def _comparison(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`WHERE answer IS yes`: a text is compared by =, in quotes."""
    for verb, value in itertools.pairwise(tokens):
        if verb.word == "IS" and value.kind in ("word", "string") and value.word not in _TRUTHS:
            instead = value.text if value.kind == "string" or value.text[0].isdigit() else f"'{value.text}'"
            yield Rewrite(((Span(verb.start, value.end), f"= {instead}"),), why="compare with =")


def _late_query_clause(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`LABEL y WHERE x > 1`: a clause of the query stands before the verb or LABEL."""
    pairs = enumerate(itertools.pairwise(tokens))
    start = next((at for at, (token, following) in pairs if _begins_extension(token, following)), None)
    if start is None:
        return
    late = next((at for at in range(start, len(tokens)) if tokens[at].word in QUERY_CLAUSES), None)
    if late is None or any(token.word == tokens[late].word for token in tokens[:start]):
        return
    if tokens[late].word == "GROUP" and "EVALUATE" in [token.word for token in tokens[start : start + 2]]:
        group = Span(tokens[late].start, tokens[late].end + 1)
        yield Rewrite(((group, ""),), why="BY alone measures each group of rows")
        return
    of_clauses = (at for at in range(late + 2, len(tokens)) if tokens[at].word in CLAUSES)  # after GROUP BY
    end = next(of_clauses, len(tokens))
    clause = text[tokens[late].start : tokens[end - 1].end]
    parts = (
        (Span(tokens[start].start, tokens[start].start), f"{clause} "),
        (Span(tokens[late - 1].end, tokens[end - 1].end), ""),
    )
    yield Rewrite(parts, why=f"{tokens[late].word} is of the query")


def _begins_extension(token: Token, following: Token) -> bool:
    return token.word == "LABEL" or (token.word == "TO" and following.word in _VERBS)


def _computed_label(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """`LABEL answer = 'yes'`: a label is a column, which the query computes."""
    at = next((at for at, token in enumerate(tokens) if token.word in ("LABEL", "TARGET")), None)
    start = next((at for at, token in enumerate(tokens) if token.word == "FROM"), None)
    if at is None or start is None or not 0 < start < at or tokens[0].word != "SELECT":
        return
    behind = next(
        (place for place in range(at + 2, len(tokens)) if tokens[place].word in CLAUSES), len(tokens)
    )
    inside = tokens[at + 1 : behind]
    if len(inside) < 3 or not any(token.text[0] in _COMPARES for token in inside):
        return
    label_span = Span(inside[0].start, inside[-1].end)
    column = inside[0].text if inside[0].kind in ("word", "name") else ""
    items = text[tokens[1].start : tokens[start - 1].end]
    instead = f"* EXCLUDE ({column})" if items == "*" and column else items
    computed = f"{instead}, {text[label_span.start : label_span.end]} AS y"
    for select_list in dict.fromkeys((computed, computed.replace(instead, items, 1))):
        parts = ((Span(tokens[1].start, tokens[start - 1].end), select_list), (label_span, "y"))
        yield Rewrite(parts, why="compute the label in the SELECT")


_REWRITINGS: tuple[Callable[[Sequence[Token], str], Iterator[Rewrite]], ...] = (
    _straight_quotes,
    _without_assignment,
    _decimal_point,
    _model_alone,
    _list,
    _validation_query,
    _two_statements,
    _with_behind_label,
    _limit,
    _and,
    _commas,
    _comparison,
    _late_query_clause,
    _computed_label,
)
