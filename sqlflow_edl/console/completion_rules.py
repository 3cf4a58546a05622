"""Rules of completion: an ordered table of which the first rule that applies decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from edl.data.names import format_name
from edl.extension_loader import load_or
from sqlflow_edl.analysis.catalog import MODELS, OPTIMIZERS, SCHEDULES, families
from sqlflow_edl.analysis.entries import Catalog, Entry
from sqlflow_edl.analysis.losses import LOSSES
from sqlflow_edl.analysis.settings.measurement import COLUMNS
from sqlflow_edl.console.catalog import KnownNames
from sqlflow_edl.console.context import OPTIMIZES, QUERIES, Context, words
from sqlflow_edl.syntax.dialects import dialect_named

# SQL keywords to offer; a database may have more.
SQL_WORDS = words("""
    SELECT DISTINCT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT INNER FULL OUTER CROSS ON USING AS
    AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END UNION ALL EXCEPT INTERSECT WITH EXISTS ASC DESC CAST
    COUNT SUM AVG MIN MAX COALESCE TRUE FALSE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE VIEW REPLACE TEMP DROP
    ALTER TRUNCATE OVER PARTITION WINDOW QUALIFY RECURSIVE LATERAL INTERVAL FILTER UNNEST IF DEFAULT
""")
_BEGINNINGS = (
    *(
        "SELECT",
        "FROM",
        "WITH",
        "SHOW MODELS",
        "SHOW TRAIN",
        "SHOW CURVE",
        "SHOW TRIALS",
        "SHOW FEATURES FOR",
        "DESCRIBE MODEL",
        "SET MODEL",
        "DROP MODEL",
        "EXPLAIN SELECT",
    ),
    *(
        "CREATE MODEL",
        "EXPORT MODEL",
        "ALTER MODEL",
        "CREATE TABLE",
        "CREATE VIEW",
        "INSERT INTO",
        "UPDATE",
        "DELETE FROM",
        "DROP TABLE",
        "DROP VIEW",
        "DESCRIBE",
    ),
)
_NEXT = {  # behind the first words
    "SHOW": ("MODELS", "TRAIN", "CURVE", "TRIALS", "FEATURES FOR"),
    "SHOW FEATURES": ("FOR",),
    "DESCRIBE": ("MODEL",),
    "DESC": ("MODEL",),
    "SET": ("MODEL",),
    "DROP": ("MODEL", "TABLE", "VIEW"),
    "CREATE": ("MODEL", "TABLE", "VIEW"),
    "EXPORT": ("MODEL",),
    "ALTER": ("MODEL", "TABLE"),
    "INSERT": ("INTO",),
    "DELETE": ("FROM",),
}
_TO = ("TRAIN", "PREDICT", "EVALUATE", "EXPLAIN", *OPTIMIZES, "RUN")
_CLAUSES = {
    "TRAIN": ("WITH", "COLUMN", "LABEL", "VALIDATE", "USING", "INTO"),
    "PREDICT": ("WITH", "USING", "APPEND"),
    "EVALUATE": ("WITH", "LABEL", "BY", "INTO"),
    "EXPLAIN": ("WITH", "USING", "INTO"),
    **dict.fromkeys(OPTIMIZES, ("CONSTRAINT", "WITH", "USING", "INTO")),
    "RUN": ("CMD", "INTO"),
    "LABEL": ("WITH", "COLUMN", "VALIDATE", "USING", "INTO"),
    "TARGET": ("WITH", "COLUMN", "VALIDATE", "USING", "INTO"),
}
_BEFORE_A_MODEL = (
    ("DESCRIBE", "MODEL"),
    ("DESC", "MODEL"),
    ("SET", "MODEL"),
    ("DROP", "MODEL"),
    ("EXPORT", "MODEL"),
    ("ALTER", "MODEL"),
    ("SHOW", "TRAIN"),
    ("SHOW", "CURVE"),
    ("SHOW", "TRIALS"),
    ("FEATURES", "FOR"),
)
_VERSIONS = {  # behind a model
    ("SET", "MODEL"): ("ACTIVE", "TAG"),
    ("DROP", "MODEL"): ("TAG",),
    ("CREATE", "MODEL"): ("OPTIONS",),
    ("EXPORT", "MODEL"): ("OPTIONS",),
    ("ALTER", "MODEL"): ("RENAME TO", "SET OPTIONS"),
}
_CHANGES = {"RENAME": "TO", "SET": "OPTIONS"}  # of a model
_BEFORE_A_TABLE = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "DESCRIBE", "SUMMARIZE")
_VALUES: dict[str, Catalog[Entry]] = {
    "optimizer": OPTIMIZERS,
    "optimizer.schedule": SCHEDULES,
    "loss": LOSSES,
}


@dataclass(frozen=True, slots=True)
class Offer:
    """Candidate for completion.

    kind: keyword, table, column, model, estimator, program, attribute, value or function. doc: a line about it.
    """

    text: str
    kind: str
    doc: str = ""


Offers = Iterator[Offer]


@dataclass(frozen=True, slots=True)
class CompletionRule:
    name: str
    applies: Callable[[Context], bool]
    offers: Callable[[Context, KnownNames], Offers]


def list_offers(where: Context, names: KnownNames) -> Offers:
    """Yield all candidates for the position, whatever part of the word is typed."""
    for rule in RULES:
        if rule.applies(where):
            yield from rule.offers(where, names)
            return


# Conditions of the rules -----------------------------------------------------------------------------------


def _is_qualified(where: Context) -> bool:
    head = where.word.rpartition(".")[0]
    return bool(head) and head in where.tables and where.clause != "WITH"


def _names_an_explainer(where: Context) -> bool:
    return (where.verb, where.clause) == ("EXPLAIN", "USING") and not where.inside


def _names_a_solver(where: Context) -> bool:
    return where.verb in OPTIMIZES and where.clause == "USING" and not where.inside


def _names_a_model(where: Context) -> bool:
    two = tuple(where.before[-2:])
    if not where.verb:
        return two in _BEFORE_A_MODEL or (two == ("IF", "EXISTS") and "MODEL" in where.before)
    if where.clause == "COLUMN":
        return two == ("FEATURES", "(")
    trains = where.verb in ("TRAIN", "LABEL", "TARGET")
    return not where.inside and (
        where.clause == "USING"
        or (where.clause == "INTO" and trains)
        or (where.verb in ("EVALUATE", "EXPLAIN") and not where.clause)
    )


def _follows_a_model(where: Context) -> bool:
    """Return True behind the dotted name in SET, DROP, CREATE, EXPORT and ALTER MODEL."""
    first, name = tuple(where.before[:2]), where.before[2:]
    is_whole = len(name) % 2 == 1 and {*name[1::2]} <= {"."}
    return first in _VERSIONS and is_whole and name[0] != "IF"


def _names_a_program(where: Context) -> bool:
    return where.verb == "RUN" and not where.clause and not where.inside


def _names_a_table(where: Context) -> bool:
    if where.verb:
        into_table = where.clause == "INTO" and where.verb in ("EVALUATE", "EXPLAIN", "RUN", *OPTIMIZES)
        return (into_table or (where.verb, where.clause) == ("PREDICT", "")) and not where.inside
    return where.last in _BEFORE_A_TABLE


def _names_an_operand(where: Context) -> bool:
    is_formula = where.verb in OPTIMIZES and where.clause in ("", "CONSTRAINT")
    return is_formula and (not where.inside or where.last in (",", "(", *"+-*/<>="))


def _names_a_column(where: Context) -> bool:
    return where.clause == "COLUMN" and (not where.inside or where.last in (",", "(", "[", *"+-*/"))


# Offers of the rules ---------------------------------------------------------------------------------------


def _keywords(words: tuple[str, ...]) -> Offers:
    return (Offer(word, "keyword") for word in words)


def _columns(where: Context, names: KnownNames) -> Offers:
    """Yield the columns of the query's tables, quoted as the dialect needs."""
    quote = dialect_named(names.dialect).name_quotes[0]
    tables = {table.casefold(): table for table in names.get_catalog().tables}
    for table in dict.fromkeys(where.tables.values()):
        if named := tables.get(table.casefold()):
            for column in names.columns(named):
                yield Offer(format_name((column,), quote=quote), "column", table)


def _qualified_columns(where: Context, names: KnownNames) -> Offers:
    head = where.word.rpartition(".")[0]
    only = Context(where.word, where.before, tables={head: where.tables[head]})
    return (Offer(f"{head}.{offer.text}", "column", offer.doc) for offer in _columns(only, names))


def _estimators(where: Context, names: KnownNames) -> Offers:
    yield from (Offer(entry.name, "estimator", entry.doc) for entry in MODELS.entries.values())
    yield from (Offer(name, "estimator", "Classifier or Regressor, by the label.") for name in families())


def _models(where: Context, names: KnownNames) -> Offers:
    yield from (Offer(name, "model") for name in names.get_catalog().models)
    if where.verb == "EVALUATE":  # the predictions may stand in the rows
        yield Offer("WITH", "keyword")
    if tuple(where.before) == ("DROP", "MODEL"):
        yield Offer("IF EXISTS", "keyword")


def _explainers(where: Context, names: KnownNames) -> Offers:
    from sqlflow_edl.analysis.inference.explanation import EXPLAINERS

    return (Offer(name, "value", "Accepted without effect.") for name in EXPLAINERS.values())


def _solvers(where: Context, names: KnownNames) -> Offers:
    solvers: tuple[str, ...] = load_or("sqlflow_edl.extensions.optimization.settings", "SOLVERS", ())
    return (Offer(name, "value", "HiGHS solves the problem.") for name in solvers)


def _programs(where: Context, names: KnownNames) -> Offers:
    list_programs: Callable[[str], list[str]] = load_or(
        "sqlflow_edl.extensions.runnables.statement", "programs", lambda word: []
    )
    return (Offer(name, "program") for name in list_programs(where.word))


def _tables(where: Context, names: KnownNames) -> Offers:
    return (Offer(name, "table") for name in names.get_catalog().tables)


def _next_keywords(where: Context, names: KnownNames) -> Offers:
    yield from _keywords(_NEXT[" ".join(where.before)])
    if where.last.startswith("DESC"):
        yield from _tables(where, names)


def _attributes(where: Context, names: KnownNames) -> Offers:
    from sqlflow_edl.console.attributes import attributes

    return (Offer(row.name, "attribute", row.doc) for row in attributes(where))


def _values(where: Context, names: KnownNames) -> Offers:
    from sqlflow_edl.console.attributes import attribute

    row = attribute(where)
    if row is None:
        return
    if row.name in _VALUES:
        yield from (Offer(entry.name, "value", entry.doc) for entry in _VALUES[row.name].entries.values())
    elif row.name in ("train.weight_column", *COLUMNS):
        yield from _columns(where, names)
    else:
        words = ("TRUE", "FALSE") if row.type == "boolean" else row.choices
        yield from (Offer(word, "value", row.doc) for word in words)


def _items(where: Context, names: KnownNames) -> Offers:
    from sqlflow_edl.analysis.columns import computed
    from sqlflow_edl.analysis.columns.functions import FUNCTIONS

    yield from _columns(where, names)
    yield from (Offer(function.name, "function", function.usage) for function in FUNCTIONS)
    yield from (
        Offer(function.name, "function", f"{function.usage}: {function.doc}")
        for function in computed.FUNCTIONS
    )


def _expression(where: Context, names: KnownNames) -> Offers:
    yield from _columns(where, names)
    yield from (Offer(name, "table") for name in where.tables)
    if where.before[0] in QUERIES and "FROM" in where.before:
        yield from _keywords((*(f"TO {verb}" for verb in _TO), "LABEL"))
    yield from _keywords(SQL_WORDS)


RULES = (
    CompletionRule("qualified", _is_qualified, _qualified_columns),
    CompletionRule("beginning", lambda where: not where.before, lambda where, _: _keywords(_BEGINNINGS)),
    CompletionRule("next word", lambda where: " ".join(where.before) in _NEXT, _next_keywords),
    CompletionRule(
        "verb",
        lambda where: where.last == "TO" and not where.verb and where.before[0] in QUERIES,
        lambda where, _: _keywords(_TO),
    ),
    CompletionRule(
        "estimator",
        lambda where: where.verb == "TRAIN" and not where.clause and not where.inside,
        _estimators,
    ),
    CompletionRule("explainer", _names_an_explainer, _explainers),
    CompletionRule("solver", _names_a_solver, _solvers),
    CompletionRule("model", _names_a_model, _models),
    CompletionRule("program", _names_a_program, _programs),
    CompletionRule(
        "version",
        _follows_a_model,
        lambda where, _: _keywords(_VERSIONS[where.before[0], where.before[1]]),
    ),
    CompletionRule(
        "change of a model",
        lambda where: tuple(where.before[:2]) == ("ALTER", "MODEL") and where.last in _CHANGES,
        lambda where, _: _keywords((_CHANGES[where.last],)),
    ),
    CompletionRule("value", lambda where: where.clause == "WITH" and where.last == "=", _values),
    CompletionRule("attribute", lambda where: where.clause == "WITH" and where.begins_item, _attributes),
    CompletionRule(
        "label", lambda where: where.clause in ("LABEL", "TARGET") and where.begins_item, _columns
    ),
    CompletionRule("column", _names_a_column, _items),
    CompletionRule("operand", _names_an_operand, _columns),
    CompletionRule("table", _names_a_table, _tables),
    CompletionRule(
        "clause",
        lambda where: bool(where.verb) and not where.depth,
        lambda where, _: _keywords(_CLAUSES.get(where.verb, ())),
    ),
    CompletionRule("expression", lambda where: not where.verb, _expression),
)
