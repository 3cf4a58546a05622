"""Two lexers for one text: `sql_tokens` in the database's dialect, `clause_tokens` in the extended clauses.

Each sees only its own part of a program: the strings of a SELECT follow the database's rules, the strings of clauses
follow ours (both quotes, backslash escapes, doubled quotes). Both are total: for any text, they yield tokens in
ascending order without an error, and stop at the end. Faulty text becomes a token of kind "unclosed" or "unknown",
which the parser reports. Time is linear in the text.

- SQL tokens: comment string name word open close semicolon symbol unclosed
- clause tokens: string quoted path number word symbol query unclosed unknown end
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from sqlflow_edl.syntax.dialects import Dialect

# A character of an unquoted name: a letter, digit or underscore, and everything beyond ASCII that is no space.
_CHAR = r"[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f\s\ufeff]"
# The same in the clauses, where typographic quotes, pasted from a document, must not become a name.
_LETTER = r"[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f\s\ufeff‘’“”]"


class Token(NamedTuple):
    """Token: the characters [start, end) of the program's text."""

    kind: str
    start: int
    end: int
    text: str

    @property
    def word(self) -> str:
        """Token as a keyword, in capitals; empty if it cannot be one."""
        return self.text.upper() if self.kind == "word" and self.text.isascii() else ""

    @property
    def nesting(self) -> int:
        """Change of the number of open parentheses: 1, -1 or 0."""
        return (self.kind == "open") - (self.kind == "close")


# -------------------------------------------------------------------------------------------------- SQL


def sql_tokens(text: str, start: int, dialect: Dialect) -> Iterator[Token]:
    """Yield the tokens of `text` from `start` in the dialect, comments included."""
    search = _sql_pattern(dialect).search
    while match := search(text, start):
        kind = str(match.lastgroup)
        begin, start = match.span()
        if kind == "block":
            kind, start = _block_comment(text, begin, dialect)
        elif kind == "unclosed":
            start = len(text)
        yield Token(kind, begin, start, text[begin:start])


def code_tokens(text: str, start: int, dialect: Dialect) -> Iterator[Token]:
    """Yield the tokens of `text` from `start` in the dialect, without comments."""
    return (token for token in sql_tokens(text, start, dialect) if token.kind != "comment")


@cache
def with_hash_comments(dialect: Dialect) -> Dialect:
    """Return the dialect in which # begins a comment, as it does in our clauses and in statements of BigQuery."""
    return replace(dialect, hash_comments=True)


@cache
def _sql_pattern(dialect: Dialect) -> re.Pattern[str]:
    """Return one alternative per kind of token; an opening quote without an end is "unclosed"."""
    line = r"[^\n\r]*" if dialect.return_ends_comment else r"[^\n]*"
    dashes = r"--(?=[\s\x00-\x20]|\Z)" if dialect.dash_needs_space else "--"
    comments = [dashes + line] + (["#" + line] if dialect.hash_comments else [])
    comments += ["//" + line] if dialect.slash_comments else []
    strings = [_quoted_pattern(quote, backslash=dialect.backslash_escapes) for quote in dialect.string_quotes]
    if dialect.e_strings:
        strings.append("[eE]" + _quoted_pattern("'", backslash=True))
    if dialect.raw_strings:
        strings[:0] = [rf"[rR]{quote}[^{quote}]*+{quote}" for quote in dialect.string_quotes]
    if dialect.triple_quotes:
        strings[:0] = [
            form
            for quote in dialect.string_quotes
            for form in (
                rf"[rR]{quote * 3}.*?{quote * 3}",
                rf"{quote * 3}(?:[^{quote}\\]|\\.|{quote}{{1,2}}(?!{quote}))*+{quote * 3}",
            )
        ]
    if dialect.dollar_quotes:
        tag = rf"(?!\d)(?:{_CHAR})*+" if dialect.dollar_tags else ""
        strings.append(rf"\$(?P<tag>{tag})\$.*?\$(?P=tag)\$")
    names = [_quoted_pattern(quote) for quote in dialect.name_quotes.replace("[", "")]
    if dialect.bracket_quotes_name:
        names.append(r"\[[^\]]*+\]")
    unclosed = ["[" + re.escape(dialect.string_quotes + dialect.name_quotes) + "]"]
    if dialect.dollar_quotes:
        unclosed.append(rf"\${tag}\$")
    kinds = {
        "comment": comments,
        "block": [r"/\*"],
        "string": strings,
        "name": names,
        "unclosed": unclosed,
        "word": [rf"[@$:]*{_CHAR}(?:{_CHAR}|\$)*+"],
        "open": [r"[(\[{]"],
        "close": [r"[)\]}]"],
        "semicolon": [";"],
        "symbol": [r"[^\s\ufeff]"],
    }
    return _alternatives(kinds)


def _block_comment(text: str, start: int, dialect: Dialect) -> tuple[str, int]:
    """Return the kind and end of the comment that begins at `start`; "unclosed" if it has no end."""
    if not dialect.nested_comments:
        end = text.find("*/", start + 2)
        return ("comment", end + 2) if end >= 0 else ("unclosed", len(text))
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return "comment", mark.end()
    return "unclosed", len(text)


def _quoted_pattern(quote: str, *, backslash: bool = False) -> str:
    """Return a regular expression of a text in these quotes; a doubled quote stands for itself."""
    if backslash:
        return rf"{quote}[^{quote}\\]*+(?:(?:\\.|{quote}{quote})[^{quote}\\]*+)*+{quote}"
    return rf"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"


def _alternatives(kinds: dict[str, list[str]]) -> re.Pattern[str]:
    groups = (f"(?P<{kind}>{'|'.join(patterns)})" for kind, patterns in kinds.items())
    return re.compile("|".join(groups), re.DOTALL)


# ---------------------------------------------------------------------------------------------- clauses

_PART = rf"{_LETTER}++(?:[.\-]{_LETTER}++)*+"  # of a registry path: host.name, my-image, v0.2
_SLASHES = rf"(?:/{_PART}(?::{_PART})?)++(?:@sha256:[0-9a-f]+)?"


def _clause_pattern(path: str) -> re.Pattern[str]:
    return _alternatives(
        {
            "comment": [r"--[^\n\r]*", r"\#[^\n\r]*"],
            "block": [r"/\*"],
            "string": [_quoted_pattern("'", backslash=True), _quoted_pattern('"', backslash=True)],
            "quoted": [_quoted_pattern("`")],
            "unclosed": ["['\"`]"],
            "path": [path],
            "number": [rf"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!{_LETTER})"],
            "word": [rf"{_LETTER}(?:{_LETTER}|\$)*+"],
            "semicolon": [";"],
            "symbol": [r"<=|>=|<>|!=|==|[-+*/%^<>=(),.:@{}\[\]]"],
            "unknown": [r"[^\s\ufeff]"],
        }
    )


_CLAUSES = _clause_pattern(rf"{_PART}(?::{_PART})?{_SLASHES}|{_PART}(?::{_PART})++")
_IN_A_MAP = _clause_pattern(_PART + _SLASHES)  # {a:b}: there a colon separates
_BRACKETED = re.compile(r"\[[^\]]*+\]")
_BRACKETED_WORDS = re.compile(rf"\[{_LETTER}++(?:[ ]++{_LETTER}++)++\]")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def clause_tokens(text: str, start: int, dialect: Dialect) -> Iterator[Token]:
    """Yield the tokens of the extended clauses from `start` up to the semicolon or the end of the text.

    Comments are left out. The last token is always of kind "end", before the semicolon. The query of VALIDATE ON (…)
    and of SHOW FEATURES FOR m (…) is one token, found by the dialect's own lexer.
    """
    open_brackets: list[str] = []
    before = ("", "")  # the two previous tokens
    shows = False  # SHOW FEATURES FOR model (query)
    while match := (_IN_A_MAP if "{" in open_brackets else _CLAUSES).search(text, start):
        token = _clause_token(text, match, dialect, list_or_name=bool(open_brackets) or before[1] == "=")
        start = token.end
        if token.kind == "semicolon":
            yield Token("end", token.start, token.start, "")
            return
        if token.kind == "comment":
            continue
        yield token
        shows = shows or before == ("SHOW", "FEATURES")
        if token.text == "(" and (before == ("VALIDATE", "ON") or shows):
            query = _query(text, token, dialect)
            start = query.end
            if query.text:
                yield query
        if token.kind == "symbol":
            _follow_brackets(open_brackets, token.text)
        before = (before[1], token.word or token.text)
    yield Token("end", len(text), len(text), "")


def _clause_token(text: str, match: re.Match[str], dialect: Dialect, *, list_or_name: bool) -> Token:
    """Return the token at `match`. list_or_name: a bracket here may also begin a list."""
    kind = str(match.lastgroup)
    start, end = match.span()
    if kind == "block":
        kind, end = _block_comment(text, start, dialect)
    elif kind == "unclosed":
        end = len(text)
    elif text[start] == "[" and dialect.bracket_quotes_name:
        # Where a list is allowed too, [x] is a list; only text that cannot be one, such as [two words], is a name.
        name = (_BRACKETED_WORDS if list_or_name else _BRACKETED).match(text, start)
        kind, end = ("quoted", name.end()) if name else (kind, end)
    return Token(kind, start, end, text[start:end])


def _query(text: str, opening: Token, dialect: Dialect) -> Token:
    """Return the query after the parenthesis `opening`; "unclosed" if the statement ends before it closes."""
    depth = 1
    start = end = opening.end
    for token in sql_tokens(text, opening.end, dialect):
        depth += token.nesting
        if not depth:
            return Token("query", start, end, text[start:end])
        if token.kind == "semicolon":
            return Token("unclosed", opening.start, token.start, "(")
        start, end = (start if end > start else token.start), token.end
    return Token("unclosed", opening.start, len(text), "(")


def _follow_brackets(open_brackets: list[str], symbol: str) -> None:
    if symbol in _CLOSING.values():
        open_brackets.append(symbol)
    elif open_brackets and _CLOSING.get(symbol) == open_brackets[-1]:
        open_brackets.pop()


# --------------------------------------------------------------------------------------- quoted and bare

_ESCAPE = re.compile(
    r"""\\(?:(?P<self>[\\'"`]) | (?P<letter>[ntr0](?![0-7])) | (?P<octal>[0-3][0-7]{2})
        | x(?P<hex>[0-9a-fA-F]{2}) | u(?P<unicode>(?![dD][89a-fA-F])[0-9a-fA-F]{4}))""",
    re.VERBOSE,
)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_BASES = {"octal": 8, "hex": 16, "unicode": 16}


def string_value(token_text: str) -> str:
    r"""Return the text that a string of the clauses stands for.

    \\ \' \" \` \n \t \r \0, \001, \x01 and \u0001 are escapes, a doubled quote is one quote; every other backslash
    stays, because strings are also regular expressions over column names ("f\d+").
    """
    quote, inner = token_text[0], token_text[1:-1]
    if quote not in inner and "\\" not in inner:
        return inner
    plain = (part.replace(quote * 2, quote) for part in _ESCAPE.split(inner)[:: _ESCAPE.groups + 1])
    escapes = (_unescape(match) for match in _ESCAPE.finditer(inner))
    return "".join(piece for pair in zip(plain, (*escapes, ""), strict=True) for piece in pair)


def _unescape(match: re.Match[str]) -> str:
    kind = str(match.lastgroup)
    if kind == "self":
        return match["self"]
    return _LETTERS[match["letter"]] if kind == "letter" else chr(int(match[kind], _BASES[kind]))


def name_value(token_text: str) -> str:
    """Return the name that a word, or a name in double quotes, backticks or brackets, stands for."""
    quote = token_text[0]
    if quote == "[":
        return token_text[1:-1]
    return token_text[1:-1].replace(quote * 2, quote) if quote in "\"'`" else str(token_text)


def quoted_name(name: str) -> str:
    """Quote `name` in backticks, which is valid in any clause of any dialect."""
    return "`" + name.replace("`", "``") + "`"


def quoted_string(value: str) -> str:
    """Quote `value` as a string of the clauses."""
    return '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'
