"""Hints of DuckDB's errors that come from what the query has at their place: texts where numbers or quotes belong."""

from __future__ import annotations

import re

from edl.data.missing_files import missing_file_hint
from edl.data.names import quote_where_needed
from edl.errors import Advice, Span, did_you_mean

_NO_FUNCTION = re.compile(r"No function matches the given name and argument types '(\S+?)\((.*)\)'")
_NO_COMPARISON = re.compile(r"Cannot compare values of type (\w+)\S* and type (\w+)")
_NO_FILES = re.compile(r'No files found that match the pattern "(.+)"')
_NO_TABLE = re.compile(r'Table with name "?(.+?)"? does not exist')
_NOT_IN_LIST = re.compile(r'Column "(.+?)" in (?:EXCLUDE|REPLACE|RENAME) list not found')
_NO_COLUMN_OF_TABLE = re.compile(r'Table "(.+?)" does not have a column named "(.+?)"')
_BINDINGS = re.compile(r'Candidate bindings:(?: :)? ("[^\n]+)')
_BARE_FILE = re.compile(
    r"[\w./-]+\.(?:csv|tsv|txt|json|jsonl|parquet|xlsx)(?:\.gz|\.zst)?\?[^\s;)']*", re.IGNORECASE
)
_CURLY = re.compile("[‘’“”]")
_NAME = r'(?:\w+\.)*(?:"[^"]+"|[^\W\d]\w*)'
_OPERAND = rf"(?:{_NAME}|\d[\d.]*)"
_LEFT, _RIGHT = re.compile(rf"({_OPERAND})\s*\Z"), re.compile(rf"\s*({_OPERAND})(?![\w(.])")
_COMPARED = re.compile(rf"\s*({_NAME})\s*(<=|>=|<>|!=|==|[<>=])\s*(-?[\d.]+)\s*\Z")
_TEXTS = ("VARCHAR",)
_DATES = ("DATE", "TIMESTAMP")
_BARE_DATE = re.compile(r"(?<![\w'])\d{4}-\d{1,2}-\d{1,2}(?![\w'])")
_MEANS = re.compile("avg|mean|sum|median|stddev.*|var.*|corr|covar.*", re.IGNORECASE)


def place_of_name(message: str, query: str) -> Span | None:
    """Return the place of the name in an EXCLUDE; DuckDB reports none."""
    if match := _NOT_IN_LIST.search(message):
        places = [*re.finditer(rf"(?<!\w){re.escape(match[1])}(?!\w)", query)]
        return Span(*places[0].span()) if len(places) == 1 else None
    return None


def hint_at_place(message: str, query: str, span: Span | None) -> str | None:
    """Return the hint of an error by its whole message and the text of the query at its place, or None."""
    if match := _NO_FILES.search(message):
        return missing_file_hint(match[1], quote="'")
    text = query[span.start : span.end] if span else ""
    if _CURLY.search(text):
        instead = _CURLY.sub(chr(39), text)
        return Advice(f"write straight quotes: {instead}", instead)
    if (match := _NO_TABLE.search(message)) and text[:1] == "'":
        return missing_file_hint(match[1], quote="'")
    if span and (match := _NO_FUNCTION.search(message)):
        return _number_of(match[1], match[2].split(", "), query, span)
    if span and text == "?" and (match := _bare_file(query, span.start)):
        return missing_file_hint(match[0], quote="'")
    if span and query[span.start : span.start + 2] == "${":
        return "a variable of a program is {{ name }}, and sqlflow run --var name=… fills it in"
    if match := _NO_COMPARISON.search(message):
        return _comparison(match, text)
    if match := _NOT_IN_LIST.search(message) or _NO_COLUMN_OF_TABLE.search(message):
        bindings = _BINDINGS.search(message)
        names = re.findall(r'"([^"]+)"', bindings[1]) if bindings else []
        return did_you_mean(match[match.re.groups], names, write=quote_where_needed)
    return None


def _bare_file(query: str, mark: int) -> re.Match[str] | None:
    """Return the match of the file without quotes whose options begin at a question mark."""
    return next((match for match in _BARE_FILE.finditer(query) if match.start() < mark < match.end()), None)


def quoted_text_hint(name: str, query: str, span: Span | None) -> str | None:
    """Return the hint for a text in the quotes of names, if it names no column."""
    if span is None or query[span.start : span.end] != f'"{name}"':
        return None
    text = name.replace("'", "''")
    return Advice(f"a text has single quotes: '{text}'", f"'{text}'")


def _number_of(function: str, types: list[str], query: str, span: Span) -> str | None:
    """Return the hint for a text where a number is computed with; None for functions of other arguments."""
    if types == ["BOOLEAN"] and _MEANS.fullmatch(function):
        call = _only_argument(function, query, span)
        cast = f"{function}({call}::INT)"
        return Advice(f"{call} is a boolean: write {cast}", cast) if call else None
    if not any(type_name in _TEXTS for type_name in types):
        return None
    if re.fullmatch(r"[-+*/%^]+", function) and len(types) == 2:
        text = query[span.start : span.end]
        if text.count(function) != 1:
            return None
        at = span.start + text.index(function)
        left, right = _LEFT.search(query[:at]), _RIGHT.match(query, at + len(function))
        first, second = (match[1] if match else "…" for match in (left, right))
        wrong = first if types[0] in _TEXTS else second
        if re.fullmatch(_NAME, wrong):
            number = f"TRY_CAST({wrong} AS DOUBLE)"
            sides = (number, second) if wrong is first else (first, number)
            instead = f"{sides[0]} {function} {sides[1]}"
            whole = Span(left.start(1), right.end(1)) if left and right else None
            hint = f"{wrong} is a text: write {instead}"
            return Advice(hint, instead, whole) if whole else hint
        return None
    call = _only_argument(function, query, span)
    if call and len(types) == 1:
        instead = f"{function}(TRY_CAST({call} AS DOUBLE))"
        return Advice(f"{call} is a text: write {instead}", instead)
    return None


def _only_argument(function: str, query: str, span: Span) -> str | None:
    """Return the column that is the only argument of a function at a place, or None."""
    call = re.compile(rf"{re.escape(function)}\s*\(\s*({_NAME})\s*\)", re.IGNORECASE).match(query, span.start)
    return call[1] if call else None


def _comparison(types: re.Match[str], text: str) -> str | None:
    """Return the hint for a column of texts that is compared with a number, or for a date without quotes."""
    if types[1] in _DATES and (date := _BARE_DATE.search(text)):
        instead = f"{text[: date.start()]}'{date[0]}'{text[date.end() :]}"
        return Advice(f"a date has quotes: write {instead}", instead)
    match = _COMPARED.match(text)
    if types[1] not in _TEXTS or match is None:
        return None
    name, operator, number = match.groups()
    instead = f"TRY_CAST({name} AS DOUBLE) {operator} {number}"
    return Advice(f"{name} is a text: write {instead}, or {name} {operator} '{number}'", instead)
