"""Values in JSON texts: COLUMN reads none, and says how a SELECT reads them in the database at hand."""

from __future__ import annotations

import re

from edl.errors import SemanticError, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax import ast

_PATH = re.compile(r"\$?\.?(\w+|\[\d+\])(\.\w+|\[\d+\])*")
_STEP = re.compile(r"(\w+)|\[(\d+)\]")


def is_json(function: str) -> bool:
    """Return True for the name of a function that reads a JSON text, in any database."""
    return function.upper().startswith(("JSON", "GET_JSON"))


def refused(call: ast.Call, schema: Schema | None = None) -> SemanticError:
    """Return the error for a function of a JSON text; with the schema it has the expression for the SELECT."""
    column, path = (*call.args, None, None)[:2]
    steps = _steps(path.value) if isinstance(path, ast.Constant) and isinstance(path.value, str) else []
    found = schema.find(column.text) if schema and isinstance(column, ast.Name) else None
    return _refused(call.function_span, found, steps, schema)


def of_path(name: ast.Name, schema: Schema) -> SemanticError | None:
    """Return the error for a name such as `payload.user.age`, of which the first part alone is a column."""
    found = schema.find(name.parts[0]) if len(name.parts) > 1 else None
    steps: list[str | int] = list(name.parts[1:])
    plain = all(re.fullmatch(r"\w+", each) for each in name.parts[1:])
    return _refused(name.span, found, steps if plain else [], schema) if found else None


def _refused(span: Span, column: str | None, steps: list[str | int], schema: Schema | None) -> SemanticError:
    hint = "read the value in the SELECT, under a name of its own, and write that name here"
    if column and steps and schema:
        written = expressions.json_value(column, steps, schema.dialect)
        hint = f"read it in the SELECT: {written} (in a CAST if it is a number), and write that name here"
    return SemanticError("COLUMN reads no JSON", span=span, hint=hint)


def _steps(path: str) -> list[str | int]:
    """Return the keys and positions of a path such as `$.user.ages[0]`; none of one with wildcards or the like."""
    if not _PATH.fullmatch(path):
        return []
    return [int(position) if position else key for key, position in _STEP.findall(path)]
