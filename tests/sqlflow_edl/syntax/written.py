"""A syntax tree as one line of text, for fixtures and messages of tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlflow_edl.syntax.ast import (
    Attribute,
    Call,
    ColumnClause,
    ColumnItem,
    Constant,
    ListValue,
    MapValue,
    Star,
    Statement,
    Validate,
)

_CONSTANTS: dict[object, str] = {True: "TRUE", False: "FALSE", None: "NULL"}


def field(statement: Statement, name: str) -> str:
    """The field of that name, as the fixtures write it."""
    content = getattr(statement, name)
    if name in ("columns", "constraints", "command"):
        return "; ".join(map(written, content))
    if name == "select":
        return statement.select.replace("\n", "\\n").replace("\t", "\\t")
    return ", ".join(map(written, content)) if isinstance(content, tuple) else written(content)


def written(node: object) -> str:
    """Any node of the tree, or text, or None."""
    writer = _WRITERS.get(type(node))
    return writer(node) if writer else str(node)


def _literal(node: Constant) -> str:
    if isinstance(node.value, str):
        return f'"{node.value}"'
    return str(node.value) if type(node.value) in (int, float) else _CONSTANTS[node.value]


def _item(node: ColumnItem) -> str:
    alias = f" AS {node.alias}" if node.alias and not isinstance(node.value, Call) else ""
    return written(node.value) + alias


def _column(node: ColumnClause) -> str:
    return ", ".join(map(written, node.items)) + (f" FOR {node.for_input}" if node.for_input else "")


def _call(call: Call) -> str:
    arguments = [*map(written, call.args), *(f"{key}={written(value)}" for key, value in call.kwargs)]
    return f"{call.function}({', '.join(arguments)})" + (f" AS {call.alias}" if call.alias else "")


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda node: "",
    Constant: _literal,
    ListValue: lambda node: f"[{', '.join(map(written, node.items))}]",
    MapValue: lambda node: "{" + ", ".join(f"{key}: {written(value)}" for key, value in node.items) + "}",
    Star: lambda node: "*",
    Call: _call,
    Attribute: lambda node: f"{node.key}={written(node.value)}",
    ColumnItem: _item,
    ColumnClause: _column,
    Validate: lambda node: str(node.fraction) if node.query is None else node.query.replace("\n", "\\n"),
}
