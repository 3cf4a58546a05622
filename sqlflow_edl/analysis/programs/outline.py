"""Outline of a statement: its title, and the tables and models that it makes and uses, by their names.

Dependencies are decided by names alone, since that is all that is known before a statement runs. A query that sqlglot
cannot parse is taken to use nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal

from edl.errors import StatementSyntaxError
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lexer import code_tokens, name_value, sql_tokens
from sqlflow_edl.syntax.predict_calls import calls_predict, predict_calls
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlglot import exp

LONGEST = 60  # characters of a name in a title


@dataclass(frozen=True, slots=True)
class Thing:
    """Table (or view) or model, by the parts of its name."""

    kind: Literal["table", "model"]
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"the {self.kind} {'.'.join(self.parts)}"

    def is_same(self, other: Thing) -> bool:
        """Return True if the two may be the same object: `main.t` and `t` may, `a.t` and `b.t` may not."""
        shared = min(len(self.parts), len(other.parts))
        if self.kind == "model":
            return self == other
        return self.kind == other.kind and self._folded[-shared:] == other._folded[-shared:]

    @property
    def _folded(self) -> tuple[str, ...]:
        return tuple(part.casefold() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Effects:
    """Objects that a statement makes or changes, and those it needs."""

    makes: tuple[Thing, ...] = ()
    uses: tuple[Thing, ...] = ()


# Titles ----------------------------------------------------------------------------------------------------


def title(statement: Statement, dialect: str) -> str:
    """Return one line that names the kind of statement and the model or table: `TRAIN DNNClassifier INTO irises`."""
    if statement.kind == "sql":
        return _sql_title(statement.text, dialect)
    if statement.shows_features:
        return f"SHOW FEATURES FOR {_join_names(statement.using)}"
    return "EXPLAIN " * statement.plan + _words(statement)


def verb(statement: Statement) -> str:
    """Return the word for what an extended statement does: TRAIN, also of the short form."""
    return _words(statement).split()[0]


def _words(statement: Statement) -> str:
    model = statement.model
    fields = {
        "model": _join_names(model),
        "name": _join_names(replace(model, version=None) if model else None),
        "version": model.version if model else "",
        "target": _join_names(statement.target),
        "append": "APPEND" if statement.append else "",
        "labels": _join_names(*statement.labels),
        "using": _join_names(statement.using),
        "into": _join_names(*statement.into),
        "result": f"INTO {_join_names(*statement.into)}" if statement.into else "",
        "direction": (statement.direction or "").upper(),
        "image": _join_names(statement.image),
        "tag": statement.tag,
    }
    return " ".join(statement.traits.title.format_map(fields).split())


def _join_names(*names: Name | None) -> str:
    return ", ".join(_short(str(name)) for name in names if name is not None)


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


_QUERIES = frozenset(("SELECT", "WITH", "FROM", "VALUES"))
_NOUNS = frozenset(
    ("TABLE", "VIEW", "SCHEMA", "INDEX", "DATABASE", "SEQUENCE", "MACRO", "TYPE", "INTO", "FROM")
)
_BETWEEN = frozenset(
    ("OR", "REPLACE", "TEMP", "TEMPORARY", "IF", "NOT", "EXISTS", "UNIQUE", "MATERIALIZED", "IGNORE")
)
_NAMED = frozenset(
    (
        "CREATE",
        "DROP",
        "ALTER",
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "TRUNCATE",
        "COPY",
        "DESCRIBE",
        "USE",
        "VACUUM",
    )
)


def _sql_title(text: str, dialect: str) -> str:
    """Return the verb and the name of its object; never a value, which may be a password."""
    tokens = code_tokens(text, 0, dialect_named(dialect))
    first = next(tokens, None)
    verb = first.word if first else ""
    if first is None or verb in _QUERIES or first.kind == "open":
        return "SELECT"
    if verb not in _NAMED:
        return verb or "SQL"
    words = [verb]
    for token in islice(tokens, 12):
        if token.word in _NOUNS:
            words.append(token.word)
        elif token.word not in _BETWEEN:
            name = _read_dotted_name(text, token.start, dialect)
            return " ".join([*words, _short(name)] if name else words)
    return " ".join(words)


def _read_dotted_name(text: str, start: int, dialect: str) -> str:
    """Return the dotted name that begins there, without its quotes."""
    name = ""
    for token in sql_tokens(text, start, dialect_named(dialect)):
        part = token.kind in ("word", "name")
        if part != (not name or name.endswith(".")) or not (part or token.text == "."):
            break
        name += name_value(token.text) if part else "."
    return name.rstrip(".")


# Dependencies ----------------------------------------------------------------------------------------------


def effects(statement: Statement, dialect: str) -> Effects:
    """Return the tables and models that the statement makes and uses."""
    if statement.kind == "sql":
        of_sql = sql_effects(statement.text, dialect)
        return Effects(of_sql.makes, (*of_sql.uses, *_models(*_predicted_models(statement, dialect))))
    if statement.kind == "drop_model" and statement.if_exists:
        return Effects()
    queries = [statement.select, held_out(statement)]
    query = [thing for query_text in queries if query_text for thing in sql_effects(query_text, dialect).uses]
    used = _models(*models_used(statement))
    makes = () if statement.plan else _things_made(statement)
    return Effects(makes, (*query, *used, *(makes if statement.append else ())))


def models_used(statement: Statement) -> list[Name]:
    """Return the names of the stored models that the statement uses or changes."""
    return [name for name in (statement.used_model, *statement.reused_models) if name is not None]


def held_out(statement: Statement) -> str:
    """Return the query of the validation rows of a training, or an empty string."""
    attribute = statement.attribute("validation.select")
    select_text = getattr(attribute.value, "value", "") if attribute else ""
    return (statement.validate and statement.validate.query) or str(select_text)


def _predicted_models(statement: Statement, dialect: str) -> list[Name]:
    """Return the models of the calls of PREDICT in ordinary SQL."""
    if not calls_predict(statement.text):
        return []
    try:
        return [call.model for call in predict_calls(statement.text, dialect) if not call.is_of_rows]
    except StatementSyntaxError:  # reported when the statement runs
        return []


def depends(effects: Effects, missing: Iterable[Thing]) -> Thing | None:
    """Return the first of the missing objects that a statement of these effects uses or changes, or None."""
    missing = list(missing)
    return next((thing for used in effects.uses for thing in missing if used.is_same(thing)), None)


def _models(*names: Name | None) -> tuple[Thing, ...]:
    """Return models by name; only one without a number can be missing, as that version existed before."""
    readable = (name for name in names if name is not None and not isinstance(name.version, int))
    return tuple(Thing("model", (str(name),)) for name in readable)


def _tables(*names: Name | None) -> tuple[Thing, ...]:
    return tuple(Thing("table", name.parts) for name in names if name is not None)


def _result(target: Name | None) -> tuple[Thing, ...]:
    """Return PREDICT's target table, from a name of a table or of a table and a column."""
    if target is None:
        return ()
    return (Thing("table", target.parts[:-1] if len(target.parts) > 1 else target.parts),)


def _things_made(statement: Statement) -> tuple[Thing, ...]:
    match statement.traits.makes:
        case "model":
            return _models(*statement.into)
        case "table":
            return (*_result(statement.target), *_tables(*statement.into))
        case "tag" if statement.model:
            return _models(replace(statement.model, version=statement.tag))
    return ()


@lru_cache(maxsize=256)
def sql_effects(text: str, dialect: str) -> Effects:
    """Return the tables that ordinary SQL makes and uses; none if sqlglot cannot parse it."""
    try:
        effects = [_tree_effects(tree) for tree in trees(text, dialect_named(dialect))]
    except ValueError:
        return Effects()
    makes = (thing for part in effects for thing in part.makes)
    uses = (thing for part in effects for thing in part.uses)
    return Effects(tuple(dict.fromkeys(makes)), tuple(dict.fromkeys(uses)))


def _tree_effects(tree: exp.Expr) -> Effects:
    from sqlglot import exp

    if isinstance(tree, exp.Drop) and tree.args.get("exists"):
        return Effects()
    used = [
        thing
        for table in tree.find_all(exp.Table)
        if not (isinstance(tree, exp.Create) and table is _named_by(tree))
        and (thing := table_named(table))
        and not (len(thing.parts) == 1 and _is_cte(table))
    ]
    is_table = not isinstance(tree, exp.Create) or tree.kind in ("TABLE", "VIEW")
    targets = [table_named(target) for target in targets_of(tree)] if is_table else []
    return Effects(tuple(filter(None, targets)), tuple(used))


def _is_cte(table: exp.Table) -> bool:
    """Return True if the table is named as a common table expression that is visible where the table stands.

    A query that is not recursive does not see its own name: `WITH t AS (SELECT * FROM t)` reads the table t.
    """
    from sqlglot import exp

    name = table.name.casefold()
    child: exp.Expr = table
    while (parent := child.parent) is not None:
        visible = []
        if isinstance(parent, exp.With):
            visible = parent.expressions[: None if parent.recursive else child.index]
        elif not isinstance(child, exp.With) and (before := parent.args.get("with_")):
            visible = before.expressions
        if any(cte.alias.casefold() == name for cte in visible):
            return True
        child = parent
    return False


def targets_of(tree: exp.Expr) -> list[exp.Table]:
    """Return the tables that the statement makes or changes, except by DROP.

    A table may change in a common table expression of PostgreSQL and in a join of MySQL, and ALTER may name two.
    """
    from sqlglot import exp

    nodes: list[exp.Expr | None] = []
    if isinstance(tree, exp.Create | exp.Alter):
        moves = (exp.AlterRename, exp.SwapTable)
        renamed = (action.this for action in tree.args.get("actions") or () if isinstance(action, moves))
        nodes += [_named_by(tree), *renamed]
    for change in tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge):
        target = _named_by(change)
        joined = target.args.get("joins") or () if target is not None else ()
        nodes += [target, *(join.this for join in joined)]
    return [node for node in nodes if isinstance(node, exp.Table)]


def _named_by(tree: exp.Expr) -> exp.Expr | None:
    from sqlglot import exp

    named: exp.Expr | None = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return named


def table_named(table: exp.Table) -> Thing | None:
    """Return the table, or None if it has no name, such as a table function."""
    parts = tuple(part.name for part in table.parts)
    return Thing("table", parts) if all(parts) else None
