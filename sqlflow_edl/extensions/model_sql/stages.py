"""Chain of common table expressions. Each of them computes columns from the columns before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from edl.data.names import free_name
from edl.errors import SemanticError
from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import Expression, own_column

_ALL_ROWS = 18_446_744_073_709_551_615  # MySQL's word for no limit


@dataclass(frozen=True)
class Chain:
    """Query: common table expressions, and the SELECT behind them."""

    common: list[exp.CTE]
    last: exp.Select


class Stage:
    """Common table expression in the making: its new columns by name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, Expression] = {}

    def add(self, name: str, expression: Expression) -> exp.Column:
        """Add a column unless it is there, and return a reference to it."""
        self.columns.setdefault(name, expression)
        return own_column(name)


class Stages:
    """Stages in their order. A column that a later stage reads is passed on by those between."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._stages: list[Stage] = []

    def stage(self, name: str) -> Stage:
        """Begin the next stage."""
        new_stage = Stage(name)
        self._stages.append(new_stage)
        return new_stage

    def select(self, table: Expression, last: dict[str, Expression]) -> Chain:
        """Return the query: the stages over the table, then the columns `last` by the names of their users.

        Raises SemanticError if a stage has more columns than the database allows.
        """
        stages = [stage for stage in self._stages if stage.columns]
        read = [source_table.name for source_table in table.find_all(exp.Table)]
        for stage in stages:
            stage.name = free_name(stage.name, read)
        needed = _names(last.values())
        selected: list[list[Any]] = []
        for stage in reversed(stages):
            is_first = stage is stages[0]
            new = {name: expression for name, expression in stage.columns.items() if name in needed}
            passed = (
                [] if is_first else [own_column(name) for name in sorted(needed - new.keys(), key=_order)]
            )
            selected.insert(0, [*passed, *(exp.alias_(expression, name) for name, expression in new.items())])
            needed = {column.name for column in passed} | (set() if is_first else _names(new.values()))
            self._check(stage, selected[0])
        tables = [table, *(exp.to_table(stage.name) for stage in stages)]
        expressions = [
            self._expression(stage, columns, before)
            for stage, columns, before in zip(stages, selected, tables, strict=False)
        ]
        query = exp.select(
            *(exp.alias_(expression, name, quoted=True) for name, expression in last.items()), copy=False
        )
        return Chain(expressions, query.from_(tables[-1], copy=False))

    def _expression(self, stage: Stage, columns: list[Any], table: Expression) -> exp.CTE:
        select = exp.select(*columns, copy=False).from_(table, copy=False)
        if self._target.once == "limit":
            select = select.limit(_ALL_ROWS, copy=False)
        alias = exp.TableAlias(this=exp.to_identifier(stage.name))
        return exp.CTE(
            this=select, alias=alias, materialized=True if self._target.once == "materialized" else None
        )

    def _check(self, stage: Stage, columns: list[Any]) -> None:
        most = self._target.most_columns
        if len(columns) > most:
            raise SemanticError(
                f"the model is too large for SQL: its {stage.name} have {len(columns):,} values, and a query has at "
                f"most {most:,} columns",
                hint="export it as ONNX (-o m.onnx), or train a smaller model",
            )


def _names(expressions: object) -> set[str]:
    """Return the columns of earlier stages; columns of subqueries are qualified."""
    names: set[str] = set()
    for expression in expressions:  # type: ignore[attr-defined]
        names.update(column.name for column in expression.find_all(exp.Column) if not column.table)
    return names


def _order(name: str) -> tuple[bool, str, int, str]:
    """Return the key by which columns are listed: kept ones first, then by letter, number and rest."""
    head = name.partition("_")[0]
    return (head[:1] != "k", head[:1], int(head[1:]) if head[1:].isdigit() else 0, name)
