"""Effects of a statement on tables and views, as far as its text shows them.

The program check uses them to decide which queries it may examine before any statement has run: a query over a table
that an earlier statement creates or changes has columns that are not known yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlflow_edl.analysis.programs.outline import Thing, effects, sql_effects, table_named, targets_of
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlglot import exp

_NAMES_RESOLVE_ANEW = re.compile(r"schema|search_path|catalog|database", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Changes:
    """Tables and views that a statement creates, changes or drops. unknown: it may change anything."""

    tables: tuple[Thing, ...] = ()
    unknown: bool = False


def changes(statement: Statement, dialect: str) -> Changes:
    """Return the changes that the statement makes when it runs."""
    if statement.kind != "sql":
        return Changes(tuple(thing for thing in effects(statement, dialect).makes if thing.kind == "table"))
    try:
        by_tree = [_changes(tree) for tree in trees(statement.text, dialect_named(dialect))]
    except ValueError:
        return Changes(unknown=True)
    return Changes(
        tuple(thing for tree_changes in by_tree for thing in tree_changes.tables),
        any(tree_changes.unknown for tree_changes in by_tree),
    )


def tables_read(query: str, dialect: str) -> tuple[Thing, ...] | None:
    """Return the tables and views that a query reads, or None if sqlglot cannot parse the query."""
    try:
        trees(query, dialect_named(dialect))
    except ValueError:
        return None
    return sql_effects(query, dialect).uses


def _changes(tree: exp.Expr) -> Changes:
    from sqlglot import exp

    if isinstance(tree, exp.Query):
        changed = filter(None, map(table_named, targets_of(tree)))
        return Changes(tuple(changed), unknown=tree.find(exp.Into) is not None)
    if isinstance(tree, exp.Describe | exp.Show | exp.Transaction | exp.Commit | exp.Analyze):
        return Changes()
    if isinstance(tree, exp.Set | exp.Pragma):
        return Changes(unknown=_NAMES_RESOLVE_ANEW.search(tree.sql()) is not None)
    targets = list(tree.find_all(exp.Table)) if isinstance(tree, exp.Drop) else targets_of(tree)
    of_tables = not isinstance(tree, exp.Create | exp.Drop) or tree.kind in ("TABLE", "VIEW")
    tables = [table_named(target) if of_tables else None for target in targets]
    return Changes(tuple(filter(None, tables)), unknown=not tables or None in tables)
