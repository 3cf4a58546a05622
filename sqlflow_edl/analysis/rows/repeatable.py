"""Training queries of stored models that EVALUATE may run again.

Whoever can write to the tables of the models can write any query into a model (docs/security.md), so a stored query is
text of other people. It is run again only if it is the statement's own query, or if it reads nothing but tables that
the statement reads, and consists of operators and functions that change nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sqlflow_edl.analysis.programs.ddl import tables_read
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlglot import exp

_HARMLESS = (  # classes of sqlglot
    "Select From Table TableAlias Subquery Join Where Order Ordered Limit Group Having Distinct Column"
    " Identifier Star Alias Literal Boolean Null Paren Tuple And Or Not Is In EQ NEQ GT GTE LT LTE Between"
    " Like Add Sub Mul Div IntDiv Mod Neg Cast TryCast DataType Case If Coalesce Nullif Abs Ln Sqrt Round"
    " Floor Ceil Lower Upper Length Trim Concat DPipe Count Sum Avg Min Max Substring Left Right Extract Year Month Day"
    " Greatest Least Sign Pow Exp IsNan IsInf"
)
_FUNCTIONS = ("isfinite", "isnan", "isinf")  # without a class of sqlglot
_COMMENTS = ("/*", "--", "#")  # MySQL runs some of them


def reads_other_tables(stored: str, query: str, dialect: str) -> bool:
    """Return True if the stored query reads tables that the query of the statement does not read."""
    before, now = tables_read(stored, dialect), tables_read(query, dialect)
    if not before or not now:
        return stored != query
    return not all(any(map(table.is_same, now)) for table in before)


def is_repeatable(stored: str, query: str, dialect: str) -> bool:
    """Return True if the stored query may be run in a statement over the query `query`."""
    if stored == query:
        return True
    if reads_other_tables(stored, query, dialect) or any(mark in stored for mark in _COMMENTS):
        return False
    try:
        [tree] = trees(stored, dialect_named(dialect))
    except ValueError:
        return False
    return all(_is_harmless(node) for node in tree.walk())


def _is_harmless(node: exp.Expr) -> bool:
    from sqlglot import exp

    is_known = isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS
    return is_known or type(node) in _harmless_types()


@cache
def _harmless_types() -> frozenset[type[exp.Expr]]:
    from sqlglot import exp

    return frozenset(getattr(exp, name) for name in _HARMLESS.split())
