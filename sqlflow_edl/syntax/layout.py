"""Layout of a program: each clause of an extended statement on a line of its own.

    SELECT age, income FROM employee
    TO TRAIN DNNRegressor
    WITH model.hidden_units = [100, 50], train.epoch = 10
    COLUMN age, VOCABULARIZE(department, max_size=100)
    LABEL income
    INTO salaries;

Queries, ordinary SQL and what stands between statements are not touched. A statement that is written on one line and
fits stays there. Of the clauses only white space, the case of keywords and commas without an item behind them change;
a clause that has a comment inside stays as it is written. The new text is read again, and must mean the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from lark import Token as Leaf
from lark import Tree

from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.clauses import parse_clauses
from sqlflow_edl.syntax.dialects import Dialect, dialect_named
from sqlflow_edl.syntax.lexer import Token, sql_tokens
from sqlflow_edl.syntax.parse import read_statements
from sqlflow_edl.syntax.split import Piece, split

WIDTH = 100  # characters of a line, which a longer item or query exceeds

_CLAUSES = {"attributes", "column", "label", "validate", "using", "into", "append", "command", "constraints"}
_LISTS = {"attributes", "column", "label", "into", "command", "constraints"}
_CONSTANTS = {"TRUE", "FALSE", "NULL", "AND", "OR", "NOT", "MAXIMIZE", "MINIMIZE"}  # words that are no names
_TIGHT_AFTER, _TIGHT_BEFORE = {"(", "[", "{", ".", "@", ""}, {")", "]", "}", ".", "@", ",", ":"}


def laid_out(text: str, dialect: str) -> str:
    """Return the program in its layout. Raises its errors together, or SemanticError for an unknown dialect."""
    dialect_of_name = dialect_named(dialect)
    statements = read_statements(text, dialect)
    raise_all([parsed for parsed in statements if isinstance(parsed, SQLFlowError)])
    program = [parsed for parsed in statements if isinstance(parsed, Statement)]
    numbers = iter(program)
    parts: list[str] = []
    for piece in split(text, dialect_of_name):
        statement = None if piece.empty else next(numbers)
        parts += _piece(piece, statement, text, dialect_of_name)
    result = "".join(parts).rstrip()
    result += _line_end(text) if result else ""
    again = read_statements(result, dialect)
    if list(map(_meaning, again)) != list(map(_meaning, program)):
        raise SemanticError("the layout would change what the program means, so it stays as it is")
    return result


def _piece(piece: Piece, statement: Statement | None, text: str, dialect: Dialect) -> Iterator[str]:
    """Yield a statement with all that surrounds it."""
    if statement is None or statement.kind == "sql" or piece.clauses is None:
        yield text[piece.raw.start : piece.raw.end]
        return
    before = text[piece.raw.start : piece.span.start]
    indented = (piece.raw.start == 0 or "\n" in before) and not before.rpartition("\n")[2].strip()
    yield before.rstrip(" \t") if indented else before
    extended = _Extended(piece, text, dialect)
    yield extended.on_one_line() or extended.on_lines()
    after = text[piece.span.end : piece.raw.end - piece.ended].strip()
    if after:  # comments
        line = _line_end(text)
        yield f"{_space_before(after, text, piece.span.end, line)}{after}{line if piece.ended else ''}"
    yield ";" if piece.ended else ""


@dataclass(frozen=True, slots=True)
class _ClausePart:
    """Verb or clause: its tokens, the places of its items, and the comments behind it."""

    tokens: Sequence[Token]
    items: Sequence[Span]
    is_list: bool
    comments: str
    verbatim: str = ""  # its text, if it has a comment inside


class _Extended:
    """Layout of one extended statement."""

    def __init__(self, piece: Piece, text: str, dialect: Dialect) -> None:
        assert piece.clauses is not None  # noqa: S101 - of an extended statement
        self._text = text
        self._dialect = dialect
        self._line = _line_end(text)
        self._span = piece.span
        self._query = text[piece.span.start : piece.query.end] if piece.query else ""
        tree = cast("Tree[Leaf]", parse_clauses(piece.clauses, dialect).children[0])
        leaves = (leaf for leaf in tree.scan_values(lambda _: True) if isinstance(leaf, Leaf))
        self._names = {leaf.start_pos for leaf in leaves if leaf.type not in _CONSTANTS}
        arguments = (subtree.children[0] for subtree in tree.iter_subtrees() if subtree.data == "keyword")
        self._named = {_place(argument).end for argument in arguments}  # ends of the names of arguments
        self._parts = list(self._divide_clauses(tree, piece))

    def on_one_line(self) -> str:
        """Return the statement on one line, or an empty text if it is not written so or does not fit."""
        if "\n" in self._text[self._span.start : self._span.end] or any(
            part.comments or part.verbatim for part in self._parts
        ):
            return ""
        line = " ".join(filter(None, (self._query, *(self._flat(part.tokens) for part in self._parts))))
        return line if len(line) <= WIDTH else ""

    def on_lines(self) -> str:
        """Return the statement with a line for each clause."""
        lines = [self._query] if self._query else []
        joined = ""  # a verb without an object, as in TO PREDICT USING m
        for part in self._parts:
            content = joined + (part.verbatim or self._wrap_clause(part, len(joined)))
            joined = ""
            if part is self._parts[0] and not part.items and not part.comments and len(self._parts) > 1:
                joined = content + " "
                continue
            lines.append(content + part.comments)
        return self._line.join(lines)

    def _divide_clauses(self, tree: Tree[Leaf], piece: Piece) -> Iterator[_ClausePart]:
        """Yield the verb with its object, and each clause."""
        tokens = _tokens(piece)
        clauses = [node for node in tree.children if isinstance(node, Tree) and node.data in _CLAUSES]
        groups = [(node.meta.start_pos, node.children, node.data in _LISTS) for node in clauses]
        if not clauses or groups[0][0] > tokens[0].start:  # the verb of the short form is a clause
            object_ = [node for node in tree.children if node not in clauses]
            groups.insert(0, (tokens[0].start, object_, False))
        ends = [start for start, _, _ in groups[1:]] + [tokens[-1].end]
        for (start, items, is_list), end in zip(groups, ends, strict=True):
            tokens_here = [token for token in tokens if start <= token.start < end]
            yield self._part(tokens_here, [_place(item) for item in items], is_list, end)

    def _part(self, tokens: list[Token], items: list[Span], is_list: bool, end: int) -> _ClausePart:
        stop = tokens[-1].end
        comments = self._text[stop:end].strip()
        verbatim = self._text[tokens[0].start : stop] if self._has_comment(tokens) else ""
        if not verbatim and tokens[-1].text == "," and is_list:
            tokens = tokens[:-1]
        if comments:
            comments = (
                _space_before(comments, self._text, stop, self._line, as_written=bool(verbatim)) + comments
            )
        return _ClausePart(tokens, items, is_list, comments, verbatim)

    def _has_comment(self, tokens: Sequence[Token]) -> bool:
        """Return True if there is more than white space between the tokens, or a comment in a query."""
        between = itertools.pairwise(tokens)
        if any(self._text[one.end : other.start].strip() for one, other in between):
            return True
        queries = (token.text for token in tokens if token.kind == "query")
        return any(
            token.kind == "comment" for query in queries for token in sql_tokens(query, 0, self._dialect)
        )

    def _wrap_clause(self, part: _ClausePart, indent: int) -> str:
        """Return a clause, with the items that do not fit on a line below its first one."""
        line = self._flat(part.tokens)
        if not part.is_list or indent + len(line) <= WIDTH:
            return line
        head = self._flat([token for token in part.tokens if token.start < part.items[0].start]) + " "
        lines = [head]
        for place, item in enumerate(part.items):
            tokens = [token for token in part.tokens if item.start <= token.start < item.end]
            added = self._flat(tokens) + ("," if place + 1 < len(part.items) else "")
            if lines[-1].strip() and len(lines[-1]) + len(added) > WIDTH and place:
                lines.append(" " * (indent + len(head)))
            lines[-1] += added + " "
        return self._line.join(text.rstrip() for text in lines)

    def _flat(self, tokens: Sequence[Token]) -> str:
        """Return the tokens on one line."""
        parts: list[str] = []
        before, operand, sign = Token("", 0, 0, ""), False, False
        for token, following in zip(tokens, [*tokens[1:], before], strict=True):
            keyword = token.kind == "word" and token.start not in self._names
            call = token.text == "(" and operand and following.kind != "query"
            names = before.end in self._named and token.text == "="  # an argument: min_count=2
            tight = before.text in _TIGHT_AFTER or token.text in _TIGHT_BEFORE or call or names or sign
            parts.append(("" if tight else " ") + (token.text.upper() if keyword else token.text))
            sign = names or (token.text in ("+", "-") and not operand)
            star = token.text == "*" and not operand
            operand = not keyword and (token.kind != "symbol" or token.text in (")", "]", "}") or star)
            before = token
        return "".join(parts)


def _tokens(piece: Piece) -> list[Token]:
    """Return the tokens of the clauses without the end."""
    assert piece.clauses is not None  # noqa: S101 - of an extended statement
    tokens: list[Token] = []
    while (token := piece.clauses[len(tokens)]).kind != "end":
        tokens.append(token)
    return tokens


def _place(child: Tree[Leaf] | Leaf) -> Span:
    if isinstance(child, Tree):
        return Span(child.meta.start_pos, child.meta.end_pos)
    return Span(child.start_pos or 0, child.end_pos or 0)


def _space_before(comments: str, text: str, end: int, line: str, *, as_written: bool = False) -> str:
    """Return the space between a clause that ends at `end` and the comments behind it: a line break if there is one."""
    space = text[end : text.index(comments, end)]
    return line if "\n" in space else space if as_written else "  "


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _meaning(value: Any) -> Any:
    """Return a part of a statement without its text and its places."""
    if isinstance(value, tuple):
        return tuple(map(_meaning, value))
    if not is_dataclass(value):
        return str(value) if isinstance(value, SQLFlowError) else value
    names = (field.name for field in fields(value))
    return {
        name: _meaning(getattr(value, name))
        for name in names
        if name not in ("text", "refused") and not name.endswith("span")
    }
