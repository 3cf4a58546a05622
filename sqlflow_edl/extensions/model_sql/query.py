"""The query of a model: its parts put together, and its text, a line for each column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from sqlglot import exp

from edl.data.arrow_types import schema_of
from edl.errors import SemanticError
from edl.evaluation.prediction import added_names
from edl.frameworks.networks.stored import find_unsupported_part, network
from edl.frameworks.trees.forest import Forest
from edl.frameworks.trees.objectives import LIGHTGBM, XGBOOST, Link
from edl.models.archive import Archive
from edl.spec import ENSEMBLE, ONNX, TREES, JobSpec
from sqlflow_edl.analysis.inference.prediction import prediction_in_memory
from sqlflow_edl.codegen.trees import objective
from sqlflow_edl.extensions.model_sql.columns import Columns
from sqlflow_edl.extensions.model_sql.dialects import Target, target_named
from sqlflow_edl.extensions.model_sql.expressions import Expression, numbered_name, user_column
from sqlflow_edl.extensions.model_sql.features import FeatureColumns
from sqlflow_edl.extensions.model_sql.forests import tree_outputs
from sqlflow_edl.extensions.model_sql.networks import Outputs, network_outputs
from sqlflow_edl.extensions.model_sql.scores import Scores
from sqlflow_edl.extensions.model_sql.stages import Chain, Stages

Export = Callable[[], Forest]


@dataclass(frozen=True)
class QueryOptions:
    """Form of the query: its dialect, the table or SELECT that it reads, columns to keep, and the view to make."""

    dialect: str
    table: str
    keep: tuple[str, ...] = ()
    view: str = ""


def model_query(archive: Archive, reference: str, options: QueryOptions, forest: Export) -> str:
    """Return the text of the query.

    `forest` gives the trees of a model of trees. Raises SemanticError for a part
    of the model that has no form in SQL, with the column, the function and the nearest way out.
    """
    check_kept(options.keep)
    spec = prediction_in_memory(archive, reference)
    target = target_named(options.dialect)
    table = _table(options.table, target)
    stages, read = Stages(target), frozenset(spec.columns)
    columns = Columns(target, schema_of(field for field in spec.query.schema if field.name in read), stages)
    kept = {
        name: columns.given.add(numbered_name("k", place), user_column(name))
        for place, name in enumerate(options.keep)
    }
    link, outputs = _outputs(archive, spec, target, columns, stages, forest)
    added = Scores(target, spec, link, stages).columns(outputs)
    column = spec.label.column
    kept = {name: column_kept for name, column_kept in kept.items() if name.casefold() != column.casefold()}
    names = added_names(spec.label, column, spec.output, tuple(kept), options.dialect)
    query = stages.select(table, {**kept, **dict(zip(names, added, strict=False))})
    view = _name(options.view, target) if options.view else None
    text = format_query(query, view, target, _heading(spec, reference, target))
    if target.longest and len(text) > target.longest:
        raise SemanticError(
            f"the query has {len(text):,} characters, and {target.name} takes {target.longest:,}",
            hint="train a smaller model, or export it as ONNX (-o m.onnx)",
        )
    return text


def _outputs(
    archive: Archive, spec: JobSpec, target: Target, columns: Columns, stages: Stages, forest: Export
) -> tuple[Link, Outputs]:
    if spec.framework == ENSEMBLE:
        raise SemanticError(
            "an ensemble has no form in SQL", hint="SHOW TRIALS lists a statement for each of its models"
        )
    if spec.framework == ONNX:
        raise SemanticError(
            "an ONNX file has no form in SQL",
            hint="it predicts inside of a query too, see sqlflow help predict",
        )
    if spec.framework in TREES:
        name = objective(spec)["objective"]
        link = (LIGHTGBM if spec.framework == "lightgbm" else XGBOOST)[name].link
        return link, tree_outputs(target, forest(), spec.features, columns, stages)
    if spec.label.labels:
        raise SemanticError(
            f"a model of several labels has no form in SQL: {spec.label.column}",
            hint="train a model for each label, or export it as ONNX (-o m.onnx)",
        )
    if reason := find_unsupported_part(spec):
        raise SemanticError(
            f"the model has no form in SQL: {reason}",
            hint="DNN, Linear and DNNLinearCombined models and boosted trees have one",
        )
    stored_network = network(spec, archive.weights())
    features = FeatureColumns(target, columns, stages)
    return "identity", network_outputs(target, stored_network, features, stages)


# Names and text --------------------------------------------------------------------------------------------


def _table(text: str, target: Target) -> Expression:
    """Return the table, or the query in parentheses, that the user named. Raises SemanticError if it is neither."""
    parsed = _parse_text(text, target)
    query = parsed.this if isinstance(parsed, exp.Subquery) else parsed
    if isinstance(query, exp.Query):
        return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier("rows_given")))
    return _name(text, target)


def _name(text: str, target: Target) -> exp.Table:
    parsed = _parse_text(text, target, exp.Table)
    parts = {name for name, value in parsed.args.items() if value} if parsed is not None else {"no table"}
    if not isinstance(parsed, exp.Table) or not parts <= {"this", "db", "catalog"}:
        raise SemanticError(
            f"{text!r} is not the name of a table in {target.name}",
            hint="write a name, schema.name, or a SELECT in quotation marks of the shell",
        )
    return parsed


def _parse_text(text: str, target: Target, into: type[exp.Expression] | None = None) -> Expression | None:
    """Return the syntax tree of a text of the user, None if it has none."""
    import sqlglot

    try:
        return cast("Expression", sqlglot.parse_one(text, read=target.sqlglot, into=into))
    except (sqlglot.errors.SqlglotError, ValueError):
        return None


def check_kept(keep: tuple[str, ...]) -> None:
    """Raise SemanticError if a kept column is named twice or is empty."""
    seen: set[str] = set()
    for name in keep:
        if not name or name.casefold() in seen:
            raise SemanticError(
                f"--keep names the column {name!r} twice" if name else "--keep has an empty name"
            )
        seen.add(name.casefold())


def _heading(spec: JobSpec, reference: str, target: Target) -> list[str]:
    shown = re.sub(r"\s+", " ", reference)
    kind = "imported" if spec.imported else f"a {spec.model.name}"
    reads_times = any(f.name in spec.columns and f.type.startswith("timestamp") for f in spec.query.schema)
    return [
        f"{shown}, {kind}, as a query over the columns {', '.join(spec.columns)}.",
        "It computes in double precision; numbers that PREDICT computes in float32 differ by about 1e-6 of their size.",
        *target.notes,
        *(target.notes_on_times if reads_times else ()),
    ]


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
