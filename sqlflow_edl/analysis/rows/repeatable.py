"""Training queries of stored models that EVALUATE may run again.

Whoever can write to the tables of the models can write any query into a model (docs/security.md), so a stored query is
text of other people. It is run again only if it is that of the statement, or reads nothing but tables that the
statement reads, and consists of operators and functions that change nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sqlflow_edl.analysis.programs.ddl import tables_read
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    from sqlglot import exp

_COMMENTS = ("/*", "--", "#")  # MySQL runs some of them


def reads_other_tables(stored: str, given: str, dialect: str) -> bool:
    """Return True if the stored query reads tables that the query of the statement does not read."""
    before, now = tables_read(stored, dialect), tables_read(given, dialect)
    if not before or not now:
        return stored != given
    return not all(any(map(each.is_same, now)) for each in before)


def is_repeatable(stored: str, given: str, dialect: str) -> bool:
    """Return True if the stored query may be run in a statement over the query `given`."""
    if stored == given:
        return True
    if reads_other_tables(stored, given, dialect) or any(each in stored for each in _COMMENTS):
        return False
    try:
        [tree] = trees(stored, dialect_named(dialect))
    except ValueError:
        return False
    return all(type(node) in _harmless() for node in tree.walk())


@cache
def _harmless() -> frozenset[type[exp.Expr]]:
    from sqlglot import exp

    return frozenset(
        (
            *(
                exp.Select,
                exp.From,
                exp.Table,
                exp.TableAlias,
                exp.Subquery,
                exp.Join,
                exp.Where,
                exp.Order,
                exp.Ordered,
            ),
            *(
                exp.Limit,
                exp.Group,
                exp.Having,
                exp.Distinct,
                exp.Column,
                exp.Identifier,
                exp.Star,
                exp.Alias,
            ),
            *(
                exp.Literal,
                exp.Boolean,
                exp.Null,
                exp.Paren,
                exp.Tuple,
                exp.And,
                exp.Or,
                exp.Not,
                exp.Is,
                exp.In,
            ),
            *(
                exp.EQ,
                exp.NEQ,
                exp.GT,
                exp.GTE,
                exp.LT,
                exp.LTE,
                exp.Between,
                exp.Like,
                exp.Add,
                exp.Sub,
                exp.Mul,
            ),
            *(exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Cast, exp.TryCast, exp.DataType, exp.Case, exp.If),
            *(
                exp.Coalesce,
                exp.Nullif,
                exp.Abs,
                exp.Ln,
                exp.Sqrt,
                exp.Round,
                exp.Floor,
                exp.Ceil,
                exp.Lower,
                exp.Upper,
            ),
            *(exp.Length, exp.Trim, exp.Concat, exp.DPipe, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max),
        )
    )
