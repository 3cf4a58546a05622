"""Text of a query: a line for each column, broken where it is long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from sqlflow_edl.model_sql.dialects import Target
from sqlflow_edl.model_sql.expressions import Expression
from sqlflow_edl.model_sql.stages import Chain

_WIDTH = 110


def format_query(query: Chain, view: exp.Table | None, target: Target, heading: list[str]) -> str:
    """Return the query, or CREATE VIEW, below comment lines and with a semicolon."""
    comments = [f"-- {_SPACE.sub(' ', line)}" for line in heading]
    head = [f"CREATE VIEW {_sql(view, target)} AS"] if view is not None else []
    common = ",\n".join(_common(cte, target) for cte in query.common)
    return "\n".join([*comments, *head, f"WITH {common}", f"{_select(query.last, target)};", ""])


_SPACE = re.compile(r"\s+")
_QUOTE = re.compile("['\"`]")


def _common(cte: exp.CTE, target: Target) -> str:
    once = " MATERIALIZED" if cte.args.get("materialized") else ""
    return f"{cte.alias} AS{once} (\n{_select(cte.this, target, '  ')}\n)"


def _select(select: exp.Expression, target: Target, indent: str = "") -> str:
    lines = [_column(column, target, f"{indent}  ") for column in select.expressions]
    rest = select.copy()
    rest.set("expressions", [exp.Null()])
    clauses = _sql(rest, target).partition("NULL")[2].strip()
    columns = ",\n".join(lines)
    return f"{indent}SELECT\n{columns}\n{indent}{clauses}"


def _sql(expression: Expression, target: Target) -> str:
    return expression.sql(dialect=target.sqlglot, copy=False)


def _column(column: Expression, target: Target, indent: str) -> str:
    """Return a column of a SELECT: on one line, or CASE with a line for each branch, or broken between words."""
    text = _sql(column, target)
    if len(text) + len(indent) <= _WIDTH:
        return indent + text
    expression = column.this if isinstance(column, exp.Alias) else column
    alias = f" AS {_sql(column.args['alias'], target)}" if isinstance(column, exp.Alias) else ""
    if isinstance(expression, exp.Cast) and isinstance(expression.this, exp.Case):
        lines = _case(expression.this, target, f"{indent}  ")
        return "\n".join([f"{indent}CAST(", *lines, f"{indent}  AS {_sql(expression.to, target)}){alias}"])
    if not isinstance(expression, exp.Case):
        return _break_line(text, indent) if not _QUOTE.search(text) else indent + text
    return "\n".join(_case(expression, target, indent)) + alias


def _case(case_expression: exp.Case, target: Target, indent: str) -> Iterator[str]:
    yield f"{indent}CASE {_sql(case_expression.this, target)}" if case_expression.this else f"{indent}CASE"
    branches = [
        (f"WHEN {_sql(branch.this, target)} THEN", branch.args["true"])
        for branch in case_expression.args["ifs"]
    ]
    if default := case_expression.args.get("default"):
        branches.append(("ELSE", default))
    for head, value in branches:
        line = f"{indent}  {head} {_sql(value, target)}"
        if isinstance(value, exp.Case) and len(line) > _WIDTH:
            yield f"{indent}  {head}"
            yield from _case(value, target, f"{indent}    ")
        else:
            yield line
    yield f"{indent}END"


def _break_line(text: str, indent: str) -> str:
    """Break a line between words; it has no quotation marks."""
    lines, line = [], indent
    for word in text.split(" "):
        if len(line) + len(word) + 1 > _WIDTH and line.strip():
            lines.append(line)
            line = f"{indent}  "
        line += f" {word}" if line.strip() else word
    return "\n".join([*lines, line])
