"""Types of WITH attributes: conversion of written values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from edl.cluster.kubernetes import quantities
from edl.spec.calibration import THRESHOLD_METRICS
from edl.spec.job import Device, Parameter
from edl.spec.priorities import priority
from sqlflow_edl.syntax import ast

Type = Literal[
    "integer",
    "number",
    "boolean",
    "text",
    "integers",
    "numbers",
    "texts",
    "pairs",
    "directions",
    "column groups",
    "class weights",
    "class columns",
    "threshold",
    "priority",
    "processors",
    "processors or none",
    "memory",
    "memory or none",
    "taints",
    "anything",
]
Setting = Parameter
DEEPEST = 3  # lists within one another

LEAST_MEMORY = 16 << 20  # bytes; a smaller number lacks its unit
_TAINT = re.compile(r"[^=:\s]+(=[^=:\s]*)?(:(NoSchedule|PreferNoSchedule|NoExecute))?")

WORDS: Mapping[Type, str] = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "TRUE or FALSE",
    "text": "a name or a text",
    "integers": "a list of whole numbers, such as [100, 50]",
    "numbers": "a list of numbers, such as [0.1, 0.9]",
    "texts": 'a name, a list of names, or a text such as "accuracy,auc"',
    "pairs": "names with values, such as {'disk': 'ssd'} or 'disk=ssd,zone=a'",
    "directions": "columns with a direction, such as [+price, -age]",
    "column groups": "lists of columns, such as [[price, age], [city, street]]",
    "class weights": "auto, or weights by class, such as {'yes': 5, 'no': 1}",
    "class columns": "a column, or a column for each class, such as {'no': p_no, 'yes': p_yes}",
    "threshold": f"a number from 0 to 1, or the metric that chooses it: {', '.join(THRESHOLD_METRICS)}",
    "priority": "low, normal, high, or a whole number from -1000 to 1000",
    "processors": "a number of processors, such as 2, 0.5 or '500m'",
    "processors or none": "a number of processors, such as 2, 0.5 or '500m', or none",
    "memory": "an amount of memory with its unit, from 16Mi, such as '4Gi' or '512Mi'",
    "memory or none": "an amount of memory with its unit, from 16Mi, such as '4Gi' or '512Mi', or none",
    "taints": "taints as kubectl writes them, such as 'gpu=true:NoSchedule' or ['spot', 'team=ads']",
    "anything": "a number, a text, a name, TRUE, FALSE, or a list of them and of such lists, at most three deep",
}


def to_python(value: ast.Value) -> Setting:
    """Return an attribute's value as Python data, or None if it is no simple value. A bare name is its text."""
    return _data(value) if _is_plain(value, DEEPEST) else None  # type: ignore[return-value]


def _is_plain(value: ast.Value, depth: int) -> bool:
    """Return True for a constant, a name, or a list of these and of lists, at most `depth` within one another."""
    if isinstance(value, ast.ListValue):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value.items)
    return isinstance(value, ast.Constant | ast.Name)


def _data(value: ast.Value) -> object:
    if isinstance(value, ast.ListValue):
        return tuple(map(_data, value.items))
    return str(value) if isinstance(value, ast.Name) else getattr(value, "value", None)


def pairs(items: Mapping[str, Setting]) -> Setting:
    """Return texts `name=value`, each value in the type of that name; None if a value is no scalar."""
    if any(value is None or isinstance(value, tuple) for value in items.values()):
        return None
    return tuple(f"{name}={_word(value)}" for name, value in items.items())


def directions(value: ast.Value) -> Setting:
    """Return the columns of a list or a map as texts `+name` and `-name`; None for another value.

    In a list a sign precedes the name, and no sign is a plus; in a map, 1 and -1 are the directions, and 0 is none.
    """
    if isinstance(value, ast.MapValue):
        signs = [(name, getattr(item, "value", None)) for name, item in value.items]
        if any(isinstance(sign, bool) or sign not in (-1, 0, 1) for _, sign in signs):
            return None
        return tuple(f"{'+' if sign == 1 else '-'}{name}" for name, sign in signs if sign)
    items = value.items if isinstance(value, ast.ListValue) else (value,)
    texts = tuple(text for item in items for text in _directions(item))
    return None if "" in texts else texts


def _directions(value: ast.Value) -> list[str]:
    """Return `+name` or `-name` for each name in a value, and an empty text for another value."""
    match value:
        case ast.Operation(operator="-", operands=(ast.Name() as name,)):
            return [f"-{name}"]
        case ast.Name():
            return [f"+{value}"]
        case ast.Constant(value=str() as text):
            names = [name.strip() for name in text.split(",")]
            return [name if name[:1] in ("+", "-") else f"+{name}" if name else "" for name in names]
    return [""]


def describe_bound(value: float | None) -> str:
    """Return the text of the least or greatest value of an attribute, empty if there is none."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def convert(kind: Type, value: Setting) -> Setting:
    """Convert `value` to the wanted type, or return None if it is not clearly of that type."""
    if kind == "integers":
        items = value if isinstance(value, tuple) else (value,)
        whole = tuple(_integer(item) for item in items)
        return None if any(item is None for item in whole) or not whole else whole
    if kind == "numbers":
        converted = tuple(_number(item) for item in (value if isinstance(value, tuple) else (value,)))
        return None if any(item is None for item in converted) or not converted else converted
    if kind == "column groups":
        items = value if isinstance(value, tuple) else ()
        groups = (items,) if all(isinstance(item, str) for item in items) else items
        names = tuple(_texts(group) for group in groups if isinstance(group, tuple))
        return names if len(names) == len(groups) and all(names) else None
    if kind in _LISTS:
        texts = _texts(value)
        return texts if texts and all(map(_LISTS[kind].fullmatch, texts)) else None
    if isinstance(value, tuple):
        return value if kind == "anything" else None
    return _SCALARS[kind](value)


# a type of several texts -> the type of each text
_LISTS = {
    "texts": re.compile(r".+", re.DOTALL),
    "pairs": re.compile(r"[^=]+=.*", re.DOTALL),
    "directions": re.compile(r"[+-].+", re.DOTALL),
    "taints": _TAINT,
}


def _texts(value: Setting) -> tuple[str, ...]:
    """Return the texts of a list, or of a comma-separated text; empty if another value is among them."""
    items = value if isinstance(value, tuple) else value.split(",") if isinstance(value, str) else ()
    texts = tuple(item.strip() for item in items if isinstance(item, str) and item.strip())
    return texts if len(texts) == len(items) else ()


def _integer(value: Setting) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _number(value: Setting) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _boolean(value: Setting) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.casefold())
    return bool(value) if isinstance(value, bool) or value in (0, 1) else None


def _text(value: Setting) -> str | None:
    return value if isinstance(value, str) and value else None


def _threshold(value: Setting) -> float | str | None:
    if isinstance(value, str):
        return value.casefold() if value.casefold() in THRESHOLD_METRICS else None
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _priority(value: Setting) -> int | None:
    whole = value if isinstance(value, str) else _integer(value)
    return None if whole is None else priority(whole)


def _processors(value: Setting) -> str | None:
    return _quantity(_word(value), 0)


def _memory(value: Setting) -> str | None:
    return _quantity(_word(value), LEAST_MEMORY)


def _quantity(text: str, least: int) -> str | None:
    try:
        number = quantities.value(text)
    except ValueError:
        return None
    return text if number > 0 and number >= least else None


def _processors_or_none(value: Setting) -> str | None:
    return _parse_none(value) or _processors(value)


def _memory_or_none(value: Setting) -> str | None:
    return _parse_none(value) or _memory(value)


def _parse_none(value: Setting) -> str:
    return "none" if isinstance(value, str) and value.casefold() == "none" else ""


def _word(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _accept_any(value: Setting) -> Setting:
    return value


def read_device(setting: Setting) -> Device:
    """Return the device by a value of the attribute, None for the default."""
    return "cuda" if setting == "gpu" else setting or "auto"  # type: ignore[return-value]  # of the choices


_SCALARS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "text": _text,
    "class weights": _text,
    "class columns": _text,
    "threshold": _threshold,
    "priority": _priority,
    "processors": _processors,
    "processors or none": _processors_or_none,
    "memory": _memory,
    "memory or none": _memory_or_none,
    "anything": _accept_any,
}
