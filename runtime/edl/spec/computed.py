"""Columns that are computed from columns of the table, as data: `x / (y + 1)`.

An operator yields NULL where an operand is NULL and where its result is not a finite number: a division by zero, the
logarithm of a number that is not above zero, the root of a negative one, an overflow. COALESCE alone takes the first
operand that is not NULL. Numbers are float64; a boolean is 1 or 0, a date or time counts in seconds.

JSON is the number at a path of a JSON text, and JSON_TEXT the text there, for a category; NULL where there is none.
TO_NUMBER is the number in a text such as `$1,003.50`, NULL where there is none.

`edl.features.computed` evaluates them; `edl.frameworks.onnx.columns` and `sqlflow_edl.extensions.model_sql.columns`
write them in ONNX and in SQL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

import msgspec

OPERATORS: Mapping[str, int] = {  # operator -> its operands; 0 is two or more
    "+": 0,
    "-": 1,
    "*": 2,
    "/": 2,
    "LN": 1,
    "EXP": 1,
    "SQRT": 1,
    "ABS": 1,
    "LEAST": 2,
    "GREATEST": 2,
    "COALESCE": 2,
}
# Number of columns of the operators that read a JSON text at a path.
OF_JSON: Mapping[str, int] = {"JSON": 1, "JSON_TEXT": 1}
TO_NUMBER = "TO_NUMBER"
SYMBOLS = "$€£¥₹%"  # beside a number in a text, without an effect on its value: 12 % is 12
OF_TEXT: Mapping[str, int] = {**OF_JSON, TO_NUMBER: 1}  # all that read a text
FUNCTION = "FUNCTION"  # of a user's own
# DuckDB reads "*" as a wildcard, with quotation marks too
JSON_PATH = re.compile(r"""\$(?:\.\w+|\."(?!\*")[^"\\]+"|\[[0-9]{1,9}\])+""")
DEEPEST = 20  # operators within one another
MOST_OPERATORS = 50  # of one expression
_BINDING = {"+": 1, "*": 2, "/": 2, "-": 3}
_CALL = 4
_WORD = re.compile(r"[^\W\d]\w*")


class Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Class of a user's own with `fit` and `transform`, by its dotted name.

    digest: SHA-256 of the source that defines it. params: keyword arguments of the class. state: what `fit` returned
    for the training rows, as JSON; None before the rows are known. columns: names of the operands in the training;
    empty if the query has the same.
    """

    name: str
    digest: str
    params: tuple[tuple[str, str | bool | int | float], ...] = ()
    state: str | None = None
    columns: tuple[str, ...] = ()


class Computed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operator of OPERATORS with its operands: columns of the table by name, numbers, and other operators.

    path: in a JSON text, such as `$.user.ages[0]`; of TO_NUMBER the mark before a fraction, a comma or nothing, which
    is a point. function: of a user's own; the operator is FUNCTION.
    """

    operator: str
    operands: tuple[Computed | str | float, ...]
    path: str = ""
    function: Function | None = None

    def __str__(self) -> str:
        """Return the expression as COLUMN has it, with LN for a natural logarithm."""
        return _format_source(self)


Source = str | Computed  # of a feature: a column of the table, or what is computed from some


def depth(source: Source | float) -> int:
    """Return the number of operators that are within one another; 0 of a column or a number."""
    return 1 + max(map(depth, source.operands)) if isinstance(source, Computed) else 0


def functions(source: Source | float) -> Iterator[Computed]:
    """Yield the functions of a user's own in the source, those in the operands of a function before it."""
    if isinstance(source, Computed):
        for operand in source.operands:
            yield from functions(operand)
        if source.function is not None:
            yield source


def is_portable(source: Source | float) -> bool:
    """Return True if other programs can compute the source: it reads no text and has no function of a user's own."""
    return not any(_operators_of_text(source)) and not any(functions(source))


def _operators_of_text(source: Source | float) -> Iterator[str]:
    if isinstance(source, Computed):
        if source.operator in OF_TEXT:
            yield source.operator
        for operand in source.operands:
            yield from _operators_of_text(operand)


def json_columns(source: Source | float) -> Iterator[str]:
    """Yield the columns of the table that the source reads as JSON texts."""
    if isinstance(source, Computed):
        for operand in source.operands:
            yield from table_columns(operand) if source.operator in OF_JSON else json_columns(operand)


def table_columns(source: Source | float) -> Iterator[str]:
    """Yield the columns of the table that the source reads, in order; one may come several times."""
    if isinstance(source, str):
        yield source
    elif isinstance(source, Computed):
        for operand in source.operands:
            yield from table_columns(operand)


def rename_columns(source: Source, names: Mapping[str, Source]) -> Source:
    """Return the source with other columns (old name -> column); others stay, as do the names that functions see."""
    if isinstance(source, str):
        return names.get(source, source)
    operands = tuple(
        operand if isinstance(operand, float) else rename_columns(operand, names)
        for operand in source.operands
    )
    function = source.function
    if function is not None and not function.columns and operands != source.operands:
        function = msgspec.structs.replace(function, columns=tuple(map(str, source.operands)))
    return msgspec.structs.replace(source, operands=operands, function=function)


def _format_source(source: Source | float) -> str:
    if isinstance(source, str):
        return source if _WORD.fullmatch(source) else "`" + source.replace("`", "``") + "`"
    if not isinstance(source, Computed):
        return f"{source:.17g}" if float(f"{source:.15g}") != source else f"{source:.15g}"
    operator, operands = source.operator, source.operands
    if operator == TO_NUMBER and not source.path:
        return f"{operator}({_format_source(operands[0])})"
    if operator in OF_TEXT:
        return f"{operator}({_format_source(operands[0])}, '{source.path}')"
    if source.function is not None:
        params = (f"{name}={json.dumps(value)}" for name, value in source.function.params)
        return f"{source.function.name}({', '.join([*map(_format_source, operands), *params])})"
    if operator == "-":
        return f"-{_format_operand(operands[0], _BINDING['-'] + 1)}"  # two of them would begin a comment
    if operator == "+":
        first, *rest = operands
        return _format_operand(first, _BINDING["+"]) + "".join(map(_format_term, rest))
    if operator in _BINDING:
        left, right = operands
        least = _BINDING[operator]
        return f"{_format_operand(left, least)} {operator} {_format_operand(right, least + 1)}"
    return f"{operator}({', '.join(map(_format_source, operands))})"


def _format_term(term: Source | float) -> str:
    if isinstance(term, Computed) and term.operator == "-":
        return f" - {_format_operand(term.operands[0], _BINDING['+'] + 1)}"
    return f" + {_format_operand(term, _BINDING['+'] + 1)}"


def _format_operand(source: Source | float, least: int) -> str:
    """Return the text of an operand, in parentheses if its operator binds more loosely than `least`."""
    binding = _CALL
    if isinstance(source, Computed):
        binding = _BINDING.get(source.operator, _CALL)
    elif isinstance(source, float) and source < 0:
        binding = _BINDING["-"]
    return _format_source(source) if binding >= least else f"({_format_source(source)})"
