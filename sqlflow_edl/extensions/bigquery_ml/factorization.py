"""Matrix factorization of BigQuery ML: a factorization machine of users and items, and ML.RECOMMEND.

The model is a DeepFMRegressor. Its prediction is the product of the vectors of a user and an item, with a number for
each of both, and what a network makes of the vectors. It learns ratings; with `feedback_type = 'IMPLICIT'` it learns
which pairs are in the query.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from edl.data.names import quote_part
from edl.errors import Advice, SemanticError, StatementSyntaxError
from sqlflow_edl.errors.spans import shift_spans
from sqlflow_edl.extensions.bigquery_ml.functions import ModelFunction
from sqlflow_edl.extensions.bigquery_ml.options import PAIR, OptionReader, option_text
from sqlflow_edl.syntax.dialects import Dialect, dialect_named


class Pair(NamedTuple):
    """Columns of the user and of the item."""

    user: str
    item: str


def find_pair(reader: OptionReader) -> Pair:
    """Return the columns that the options name, by default `user` and `item`."""
    return Pair(*(option_text(reader.find(key)) or key.removesuffix("_col") for key in PAIR))


def write_columns(pair: Pair, dialect: Dialect) -> str:
    """Return the columns as items of COLUMN."""
    quote = dialect.name_quotes[0]
    return ", ".join(f"VOCABULARIZE({quote_part(name, quote)})" for name in pair)


def check_feedback(reader: OptionReader) -> bool:
    """Return True for implicit feedback; add errors for a kind that there is not, and for columns that are no texts."""
    for key in PAIR:
        if (column := reader.find(key)) is not None and not option_text(column):
            message, usual = f"{column.key} is the name of a column", key.removesuffix("_col")
            reader.errors.append(
                StatementSyntaxError(message, span=column.value.span, hint=f"write {key} = '{usual}'")
            )
    option = reader.find("feedback_type")
    kind = option_text(option).upper()
    if option is not None and kind not in ("EXPLICIT", "IMPLICIT"):
        reader.errors.append(
            StatementSyntaxError(
                f"there is no feedback_type {kind or 'of that kind'}",
                span=option.value.span,
                hint=Advice("write EXPLICIT or IMPLICIT", "'EXPLICIT'"),
            )
        )
    if option is not None and kind == "IMPLICIT":
        reader.warn_of("each pair of a user and an item is a row, rated 1 if it is in the query, else 0")
    return kind == "IMPLICIT"


def select_pairs(reader: OptionReader, select: str, dialect: Dialect) -> str:
    """Return the query of a row for each pair of a user and an item, rated 1 if a query has it, else 0."""
    quote = dialect.name_quotes[0]
    user, item = (quote_part(column, quote) for column in find_pair(reader))
    rating = quote_part(option_text(reader.find("rating_col")) or "rating", quote)
    seen = f"(SELECT DISTINCT {user}, {item} FROM (\n{select}\n) AS rows_of_query)"
    users, items = (f"(SELECT DISTINCT {name} FROM {seen} AS s)" for name in (user, item))
    pairs = f"{users} AS users CROSS JOIN {items} AS items"
    return (
        f"SELECT users.{user}, items.{item}, CASE WHEN seen.{user} IS NULL THEN 0.0 ELSE 1.0 END AS {rating} "
        f"FROM {pairs} LEFT JOIN {seen} AS seen ON seen.{user} = users.{user} AND seen.{item} = items.{item}"
    )


def recommend(function: ModelFunction) -> pa.Table:
    """Return a prediction for each user and item of the training, or for the users or items of a query.

    A query with both columns has the pairs. Raises SemanticError for a model of other columns than two.
    """
    trained = function.trained
    names = trained.columns
    if len(names) != len(PAIR) or trained.label.is_unsupervised or trained.label.is_forecast:
        raise SemanticError(
            f"{function.call.model} predicts no pairs of a user and an item",
            span=function.span,
            hint=f"write ML.PREDICT(MODEL {function.call.model}, (SELECT …))",
        )
    dialect = dialect_named(function.source.dialect)
    parts = dict(zip(names, (quote_part(name, dialect.name_quotes[0]) for name in names), strict=True))
    selected = _columns_of_query(function)
    select = function.statement.select
    sources = (select if name in selected else function.training_query for name in parts)
    queries = [
        f"SELECT DISTINCT {part} FROM (\n{source}\n) AS rows_of_{place}"
        for place, (part, source) in enumerate(zip(parts.values(), sources, strict=True))
    ]
    user, item = parts.values()
    pairs = (
        f"SELECT users.{user}, items.{item} FROM ({queries[0]}) AS users CROSS JOIN ({queries[1]}) AS items"
    )
    rows, computed = function.of_query(select if selected >= set(names) else pairs)
    columns = {f"predicted_{trained.label.column}": rows.column(computed[0])}
    return pa.table(columns | {name: rows.column(name) for name in names})


def _columns_of_query(function: ModelFunction) -> set[str]:
    """Return the columns of the model that the query of the call has; none without a query."""
    if not function.call.query:
        return set()
    with shift_spans(function.statement.select_span):
        names = function.source.schema(function.statement.select).names
    selected = {name for name in function.trained.columns if name in names}
    if not selected:
        raise SemanticError(
            f"the query has neither {' nor '.join(function.trained.columns)}",
            span=function.statement.select_span,
        )
    return selected
