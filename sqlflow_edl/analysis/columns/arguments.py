"""Argument types of COLUMN functions: each converts a written value, or returns None if it does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from sqlflow_edl.syntax import ast

LARGEST_SIZE = 2**31 - 1
MOST_BUCKETS = 100_000
MOST_CHARACTERS = 20  # of a run of them
MOST_FREQUENCIES = 256
DELIMITERS = {"comma": ",", "semicolon": ";", "colon": ":", "tab": "\t", "space": " ", "pipe": "|"}
DTYPES = ("int", "int32", "int64", "float", "float32", "float64")


def _parse_whole(value: ast.Value) -> int | None:
    number = value.value if isinstance(value, ast.Constant) else None
    return (
        number
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= LARGEST_SIZE
        else None
    )


def _buckets(value: ast.Value) -> int | None:
    number = _parse_whole(value)
    return number if number is not None and 2 <= number <= MOST_BUCKETS else None


def _characters(value: ast.Value) -> int | None:
    number = _parse_whole(value)
    return number if number is not None and number <= MOST_CHARACTERS else None


def _frequencies(value: ast.Value) -> int | None:
    number = _parse_whole(value)
    return number if number is not None and number <= MOST_FREQUENCIES else None


def _parse_numbers(value: ast.Value) -> tuple[float, ...] | None:
    items = value.items if isinstance(value, ast.ListValue) else (value,)
    numbers = tuple(
        float(item.value)
        for item in items
        if isinstance(item, ast.Constant)
        and isinstance(item.value, int | float)
        and not isinstance(item.value, bool)
    )
    return numbers if numbers and len(numbers) == len(items) else None


def _text(value: ast.Value) -> str | None:
    if isinstance(value, ast.Name):
        return str(value)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _names(value: ast.Value) -> tuple[str, ...] | None:
    texts = [_text(item) for item in (value.items if isinstance(value, ast.ListValue) else (value,))]
    return tuple(text for text in texts if text) if texts and all(texts) else None


def _shape(value: ast.Value) -> int | None:
    """Return the number of elements; 0 means as many as there are (NONE).

    Several sizes are the dimensions of a matrix in one cell.
    """
    if value == ast.Constant(None, value.span) or (_text(value) or "").casefold() == "none":
        return 0
    sizes = [_parse_whole(item) for item in (value.items if isinstance(value, ast.ListValue) else (value,))]
    return math.prod(size for size in sizes if size) if sizes and None not in sizes else None


def _delimiter(value: ast.Value) -> str | None:
    text = _text(value)
    return DELIMITERS.get(text.casefold(), text) if text else None


def _dtype(value: ast.Value) -> str | None:
    """Check the type only: every number becomes float32 in the end."""
    name = (_text(value) or "").casefold()
    return name if name in DTYPES else None


def _scalar(value: ast.Value) -> object:
    return value.value if isinstance(value, ast.Constant) else value


CONVERTERS: Mapping[str, Callable[[ast.Value], object]] = {
    "whole": _parse_whole,
    "buckets": _buckets,
    "characters": _characters,
    "frequencies": _frequencies,
    "numbers": _parse_numbers,
    "text": _text,
    "names": _names,
    "scalar": _scalar,
    "shape": _shape,
    "delimiter": _delimiter,
    "dtype": _dtype,
}
TYPE_WORDS = {
    "whole": f"a whole number above 0, at most {LARGEST_SIZE:,}",
    "buckets": f"a whole number from 2 to {MOST_BUCKETS:,}",
    "characters": f"a whole number from 1 to {MOST_CHARACTERS}",
    "frequencies": f"a whole number from 1 to {MOST_FREQUENCIES}",
    "numbers": "a list of numbers, such as [10, 20.5]",
    "text": "a name or a text",
    "names": "a column, or a list of columns, such as [age, city]",
    "scalar": "a value",
    "shape": "a whole number above 0, a list of them, or NONE",
    "delimiter": "a text, such as ';', or COMMA, SEMICOLON, COLON, TAB, SPACE or PIPE",
    "dtype": "INT or FLOAT",
}
