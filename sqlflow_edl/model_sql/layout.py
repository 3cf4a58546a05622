"""Text of a query: a line for each column, broken where it is long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from sqlflow_edl.model_sql.dialects import Target
from sqlflow_edl.model_sql.expressions import Expression
from sqlflow_edl.model_sql.stages import Chain

_WIDTH = 110


def written(query: Chain, view: exp.Table | None, target: Target, heading: list[str]) -> str:
    """Return the query, or CREATE VIEW, below comment lines and with a semicolon."""
    comments = [f"-- {_SPACE.sub(' ', line)}" for line in heading]
    head = [f"CREATE VIEW {_sql(view, target)} AS"] if view is not None else []
    common = ",\n".join(_common(each, target) for each in query.common)
    return "\n".join([*comments, *head, f"WITH {common}", f"{_select(query.last, target)};", ""])


_SPACE = re.compile(r"\s+")
_QUOTE = re.compile("['\"`]")


def _common(each: exp.CTE, target: Target) -> str:
    once = " MATERIALIZED" if each.args.get("materialized") else ""
    return f"{each.alias} AS{once} (\n{_select(each.this, target, '  ')}\n)"


def _select(select: exp.Expression, target: Target, indent: str = "") -> str:
    lines = [_column(each, target, f"{indent}  ") for each in select.expressions]
    rest = select.copy()
    rest.set("expressions", [exp.Null()])
    clauses = _sql(rest, target).partition("NULL")[2].strip()
    columns = ",\n".join(lines)
    return f"{indent}SELECT\n{columns}\n{indent}{clauses}"


def _sql(expression: Expression, target: Target) -> str:
    return expression.sql(dialect=target.sqlglot, copy=False)


def _column(each: Expression, target: Target, indent: str) -> str:
    """Return a column of a SELECT: on one line, or CASE with a line for each branch, or broken between words."""
    text = _sql(each, target)
    if len(text) + len(indent) <= _WIDTH:
        return indent + text
    made = each.this if isinstance(each, exp.Alias) else each
    alias = f" AS {_sql(each.args['alias'], target)}" if isinstance(each, exp.Alias) else ""
    if isinstance(made, exp.Cast) and isinstance(made.this, exp.Case):
        lines = _case(made.this, target, f"{indent}  ")
        return "\n".join([f"{indent}CAST(", *lines, f"{indent}  AS {_sql(made.to, target)}){alias}"])
    if not isinstance(made, exp.Case):
        return _broken(text, indent) if not _QUOTE.search(text) else indent + text
    return "\n".join(_case(made, target, indent)) + alias


def _case(made: exp.Case, target: Target, indent: str) -> Iterator[str]:
    yield f"{indent}CASE {_sql(made.this, target)}" if made.this else f"{indent}CASE"
    branches = [(f"WHEN {_sql(each.this, target)} THEN", each.args["true"]) for each in made.args["ifs"]]
    if default := made.args.get("default"):
        branches.append(("ELSE", default))
    for head, value in branches:
        line = f"{indent}  {head} {_sql(value, target)}"
        if isinstance(value, exp.Case) and len(line) > _WIDTH:
            yield f"{indent}  {head}"
            yield from _case(value, target, f"{indent}    ")
        else:
            yield line
    yield f"{indent}END"


def _broken(text: str, indent: str) -> str:
    """Break a line between words; it has no quotation marks."""
    lines, line = [], indent
    for word in text.split(" "):
        if len(line) + len(word) + 1 > _WIDTH and line.strip():
            lines.append(line)
            line = f"{indent}  "
        line += f" {word}" if line.strip() else word
    return "\n".join([*lines, line])
