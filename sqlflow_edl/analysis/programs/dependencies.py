"""Dependencies between the statements of a program, from the tables and models that each one names.

A statement waits for an earlier one if that writes what it reads or writes, or reads what it writes. SQL of unknown
effects waits for everything before it, and everything after waits for it. A view created by the program
reads what its query reads, and changes it where rows are inserted into the view; any other view may read every
table, and to insert into it may change every table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import TYPE_CHECKING

from edl.models.registry.records import split_reference
from sqlflow_edl.analysis.programs.ddl import changes, tables_read
from sqlflow_edl.analysis.programs.outline import Thing, effects, held_out, models_used
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlglot import exp


_MODELS = ("sqlflow_edl_models", "sqlflow_edl_tags")  # tables of the model registry
_LISTS = ("information_schema", "pg_catalog", "sqlite_master", "sqlite_schema")  # tables about tables


@dataclass(frozen=True, slots=True)
class Access:
    """Tables and models that a statement reads and writes.

    all_models: it reads every model. all_tables: it may read every table. unknown: it may change anything.
    of_connection: it changes settings or holds objects of its connection alone.
    """

    reads: tuple[Thing, ...] = ()
    writes: tuple[Thing, ...] = ()
    all_models: bool = False
    all_tables: bool = False
    unknown: bool = False
    of_connection: bool = False

    def needs(self, earlier: Access) -> bool:
        """Return True if this statement uses or changes what the earlier one writes."""
        if earlier.unknown or earlier.of_connection:
            return True
        return any(
            (self.all_models and thing.kind == "model")
            or (self.all_tables and thing.kind == "table")
            or any(map(thing.is_same, (*self.reads, *self.writes)))
            for thing in earlier.writes
        )

    def follows(self, earlier: Access) -> bool:
        """Return True if this statement must run after the earlier one."""
        return self.unknown or self.of_connection or self.needs(earlier) or earlier.needs(self)


def accesses(
    statements: Sequence[Statement], dialect: str, views: frozenset[str] | None = frozenset()
) -> list[Access]:
    """Return the access of each statement.

    views: folded names of the views that exist before the program runs, or None if any table may be one.
    """
    all_accesses: list[Access] = []
    views_made: dict[Thing, Access] = {}  # views of the program, with what their queries read
    for statement in statements:
        access = _with_views(_access(statement, dialect), views_made, views)
        if _writes_rows(statement, dialect):
            access = _through_views(access, views_made.items(), views or frozenset())
        if _makes_view(statement, dialect):
            views_made |= dict.fromkeys(access.writes, access)
        all_accesses.append(access)
    return all_accesses


def find_needed(accessed: Sequence[Access], chosen: set[int]) -> set[int]:
    """Return the positions of the chosen statements and of all earlier ones that they need."""
    positions = set(chosen)
    for position in reversed(range(len(accessed))):
        if position in positions:
            positions |= {other for other in range(position) if accessed[position].needs(accessed[other])}
    return positions


def _access(statement: Statement, dialect: str) -> Access:
    statement_effects, changed = effects(statement, dialect), changes(statement, dialect)
    reads, writes = list(statement_effects.uses), [*statement_effects.makes, *changed.tables]
    reads += map(_model, models_used(statement))
    if statement.traits.changes_model and statement.model is not None:
        writes.append(_model(statement.model))
    queries = [statement.select, held_out(statement)]
    unread = any(query and tables_read(query, dialect) is None for query in queries)
    return Access(
        tuple(dict.fromkeys(reads)),
        tuple(dict.fromkeys(writes)),
        all_models=statement.kind == "show_models" or _names(reads, _MODELS),
        all_tables=unread or _lists_tables(statement, reads, dialect),
        unknown=changed.unknown,
        of_connection=statement.kind == "sql" and _is_of_connection(statement.text, dialect),
    )


def _model(name: Name) -> Thing:
    """Return the model without its version: a statement of the program may make that version."""
    return Thing("model", (split_reference(str(name))[0],))


def _with_views(access: Access, views_made: dict[Thing, Access], views: frozenset[str] | None) -> Access:
    """Add what the views read that the statement reads."""
    reads, all_tables = list(access.reads), access.all_tables
    for thing in access.reads:
        for view, of_view in views_made.items():
            if thing.is_same(view):
                reads += of_view.reads
                all_tables = all_tables or of_view.all_tables
        if thing.kind == "table" and (views is None or thing.parts[-1].casefold() in views):
            all_tables = True
    return replace(access, reads=tuple(dict.fromkeys(reads)), all_tables=all_tables)


def _through_views(
    access: Access, views_made: Iterable[tuple[Thing, Access]], views: frozenset[str]
) -> Access:
    """Add what a statement changes that writes rows into views."""
    behind = [
        thing
        for view, of_view in views_made
        if any(map(view.is_same, access.writes))
        for thing in of_view.reads
    ]
    unknown = any(thing.kind == "table" and thing.parts[-1].casefold() in views for thing in access.writes)
    return replace(
        access, writes=tuple(dict.fromkeys((*access.writes, *behind))), unknown=access.unknown or unknown
    )


def _parse_trees(text: str, dialect: str) -> list[exp.Expr]:
    try:
        return trees(text, dialect_named(dialect))
    except ValueError:
        return []


def _makes_view(statement: Statement, dialect: str) -> bool:
    from sqlglot import exp

    return statement.kind == "sql" and any(
        isinstance(tree, exp.Create) and tree.kind == "VIEW" for tree in _parse_trees(statement.text, dialect)
    )


def _writes_rows(statement: Statement, dialect: str) -> bool:
    from sqlglot import exp

    kinds = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
    return statement.kind == "sql" and any(
        map(methodcaller("find", *kinds), _parse_trees(statement.text, dialect))
    )


def _names(reads: Sequence[Thing], parts: Sequence[str]) -> bool:
    return any(part.casefold() in parts for thing in reads for part in thing.parts)


def _lists_tables(statement: Statement, reads: Sequence[Thing], dialect: str) -> bool:
    from sqlglot import exp

    if _names(reads, _LISTS):
        return True
    return statement.kind == "sql" and any(
        isinstance(tree, exp.Show) for tree in _parse_trees(statement.text, dialect)
    )


def _is_of_connection(text: str, dialect: str) -> bool:
    """Return True for settings, transactions, attached databases, temporary tables, `@x` of MySQL, and unknown SQL."""
    from sqlglot import exp

    parsed = _parse_trees(text, dialect)
    kinds = (
        *(exp.Set, exp.Use, exp.Pragma, exp.Transaction, exp.Commit, exp.Rollback),
        *(exp.Attach, exp.Detach, exp.Command),
    )
    return not parsed or any(
        isinstance(tree, kinds)
        or tree.find(exp.Parameter) is not None
        or (isinstance(tree, exp.Create) and tree.find(exp.TemporaryProperty) is not None)
        for tree in parsed
    )
