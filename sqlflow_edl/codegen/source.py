"""Python source text from checked values: literals that cannot break out, and calls laid out to fit a line.

Text of a user enters a generated program in two ways only: as a literal made here, or in comment lines made here.
Neither can change the shape of the program's syntax tree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

WIDTH = 100


def literal(value: object) -> str:
    """Return the Python literal of a text, number, boolean or None, in double quotes unless that needs an escape."""
    if isinstance(value, str):
        # repr of a text with ' and without " is in double quotes and leaves the ' alone.
        return '"' + repr("'" + value)[2:] if '"' not in value else repr(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no literal")
        return repr(int(value)) + ".0" if value.is_integer() and abs(value) < 1e15 else repr(value)
    if value is None or isinstance(value, bool | int):
        return repr(value)
    raise TypeError(f"no literal for {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class CallExpression:
    """Call `function(arguments)`; a keyword argument is a pair of name and value.

    remarks: a comment on each argument, empty for none, or no comments at all. With comments each argument has a line.
    """

    function: str
    arguments: tuple[Expression | tuple[str, Expression], ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """List of literals. spread: one on each line unless all fit one, rather than as many as fit."""

    items: tuple[str, ...]
    spread: bool = False


Expression = str | CallExpression | Items


def layout(expression: Expression, *, indent: int = 0, prefix: str = "", suffix: str = "") -> str:
    """Return the source text of the expression: one line if it fits, else one argument per line with a trailing comma.

    prefix, suffix: text before and after it on its line; neither is part of the result. indent: in spaces.
    """
    text, remarks = line(expression), getattr(expression, "remarks", ())
    if isinstance(expression, str):
        return text
    if not any(remarks) and indent + len(prefix) + len(text) + len(suffix) <= WIDTH:
        return text
    inner = indent + 4
    pad = " " * inner
    if isinstance(expression, Items):
        rows = [f"{pad}{item}," for item in expression.items]
        text = "\n".join(rows) if expression.spread else _fill_lines(expression.items, pad)
        return "[\n" + text + "\n" + " " * indent + "]"
    rows = []
    for argument, remark in zip_longest(expression.arguments, remarks, fillvalue=""):
        keyword, value = (f"{argument[0]}=", argument[1]) if isinstance(argument, tuple) else ("", argument)
        if not isinstance(value, str):
            value = layout(value, indent=inner, prefix=keyword, suffix=",")
        row = f"{pad}{keyword}{value},"
        rows.append(_add_remark(row, remark, pad) if remark else row)
    return expression.function + "(\n" + "\n".join(rows) + "\n" + " " * indent + ")"


def line(expression: Expression) -> str:
    """Return the source text of the expression on one line."""
    if isinstance(expression, str):
        return expression
    if isinstance(expression, Items):
        return "[" + ", ".join(expression.items) + "]"
    parts = []
    for argument in expression.arguments:
        keyword, value = (f"{argument[0]}=", argument[1]) if isinstance(argument, tuple) else ("", argument)
        parts.append(keyword + (value if isinstance(value, str) else line(value)))
    return f"{expression.function}({', '.join(parts)})"


def _add_remark(row: str, remark: str, pad: str) -> str:
    """Return the argument with its comment, behind it on its line or else on a line before it."""
    text = comment(" ".join(remark.split()))
    if "\n" not in row and len(row) + 2 + len(text) <= WIDTH:
        return f"{row}  {text}"
    return f"{pad}{text}\n{row}"


def _fill_lines(items: Iterable[str], pad: str) -> str:
    """Arrange items in as few lines as possible, each item followed by a comma."""
    lines = [pad]
    for item in items:
        if lines[-1] != pad and len(lines[-1]) + len(item) + 2 > WIDTH:
            lines.append(pad)
        lines[-1] += item + "," if lines[-1] == pad else f" {item},"
    return "\n".join(lines)


# All line ends of any editor or parser, and the characters that no source file may contain.
_LINE_ENDS = re.compile("\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_TRAILING = re.compile(r"\s+$", re.MULTILINE)
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@lru_cache(maxsize=256)
def comment(text: str) -> str:
    """Return the text as comment lines; characters that hide or reorder text are replaced.

    Never place these in the first two lines of a file, where Python looks for an encoding.
    """
    lines = _LINE_ENDS.split(_UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n")))
    return _TRAILING.sub("", "# " + "\n# ".join(lines))
