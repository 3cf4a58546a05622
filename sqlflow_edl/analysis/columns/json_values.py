"""Hint for a path into a JSON text that is written as `payload.user.age`."""

from __future__ import annotations

from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax import ast


def of_path(name: ast.Name, schema: Schema) -> str | None:
    """Return the hint for a name such as `payload.user.age` if only its first part is a column."""
    column = schema.find(name.parts[0]) if len(name.parts) > 1 else None
    return f"a value in a JSON text is JSON({column}, '$.{'.'.join(name.parts[1:])}')" if column else None
