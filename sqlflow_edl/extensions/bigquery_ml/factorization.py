"""Matrix factorization of BigQuery ML: its options, and the functions of users and items, such as ML.RECOMMEND."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.data.names import quote_part
from edl.errors import Advice, SemanticError, StatementSyntaxError
from edl.features import Features
from edl.features.arrays import numbers
from sqlflow_edl.analysis.inference.used_model import columns_read
from sqlflow_edl.errors.spans import shift_spans
from sqlflow_edl.extensions.bigquery_ml.functions import Floats, ModelFunction, is_implicit
from sqlflow_edl.extensions.bigquery_ml.model_weights import factors_of
from sqlflow_edl.extensions.bigquery_ml.options import PAIR, OptionReader, option_text
from sqlflow_edl.syntax.dialects import Dialect, dialect_named

Ids = npt.NDArray[np.int64]
_RANKED = 1 << 22  # scores of items in memory at once


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


def check_feedback(reader: OptionReader) -> None:
    """Add errors for a kind of feedback that there is not, and for columns that are no texts."""
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
    ending = "_confidence" if is_implicit(trained) else ""
    columns = {f"predicted_{trained.label.column}{ending}": rows.column(computed[0])}
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


def embed_pairs(function: ModelFunction) -> pa.Table:
    """Return the vector and the intercept of each user and item."""
    with function.open(function.call.model) as archive:
        parts = list(factors_of(archive.spec, archive.weights()))
    columns = {
        "processed_input": [name for name, values, _, _ in parts for _ in values],
        "feature": [value for _, values, _, _ in parts for value in values],
        "ml_generate_embedding_result": [vector for _, _, vectors, _ in parts for vector in vectors.tolist()],
        "intercept": [number for _, _, _, intercepts in parts for number in intercepts.tolist()],
    }
    return pa.table(columns)


def rank_items(function: ModelFunction) -> pa.Table:
    """Return how well the order of the items suits the choices in the rows of a query, or of the training query.

    All items are ranked for each user. average_rank: mean of their places from 0 to 1, weighted by the ratings (Hu,
    Koren and Volinsky, 2008). mean_squared_error: of the preferences, which are 1 for the rows.
    """
    spec = function.trained
    select = function.statement.select if function.call.query else function.training_query
    with function.open(function.call.model) as archive:
        weights = archive.weights()
    columns = list(columns_read(spec))
    with shift_spans(function.statement.select_span if function.call.query else None):
        rows = function.source.stream(select).read_all()
    if lacking := [name for name in columns if name not in rows.column_names]:
        raise SemanticError(
            f"the query lacks the columns {', '.join(lacking)} of the training query",
            span=function.statement.select_span,
        )
    batch = rows.select(columns).combine_chunks().to_batches()
    ids = Features(*spec.features).transform(batch[0]) if batch else {}
    users, items = (
        np.asarray(ids[name]).reshape(-1) if batch else np.zeros(0, np.int64) for name in ("f0", "f1")
    )
    ratings = numbers(rows.column(spec.label.column).combine_chunks(), spec.label.column)
    of_users, of_items = (
        np.asarray(weights[f"factors.{name}.weight"], np.float64)[:, :-1] for name in ("users", "items")
    )
    figures = measure_ranking(of_users, of_items, users, items, ratings)
    return pa.table({name: pa.array([value], pa.float64()) for name, value in figures.items()})


def measure_ranking(
    of_users: Floats, of_items: Floats, users: Ids, items: Ids, ratings: Floats
) -> dict[str, float | None]:
    """Return the figures of the ranking of all items for each user of the rows.

    of_users, of_items: vectors; the items without one, which no training row had, are left out.
    """
    has_vector = np.abs(of_items).sum(axis=1) > 0
    number_of_item = np.cumsum(has_vector) - 1
    is_used = has_vector[items] & (ratings > 0)
    users, items, ratings = users[is_used], number_of_item[items[is_used]], ratings[is_used]
    of_items = of_items[has_vector]
    names = (
        "mean_average_precision",
        "mean_squared_error",
        "normalized_discounted_cumulative_gain",
        "average_rank",
    )
    if not len(users):
        return dict.fromkeys(names)
    order = np.argsort(users, kind="stable")
    users, items, ratings = users[order], items[order], ratings[order]
    known, starts, counts = np.unique(users, return_index=True, return_counts=True)
    step = max(1, _RANKED // len(of_items))
    ranks, predicted = np.empty(len(users), np.int64), np.empty(len(users))
    for first in range(0, len(known), step):
        some = slice(
            starts[first],
            (starts[min(first + step, len(known)) - 1] + counts[min(first + step, len(known)) - 1]),
        )
        scores = of_users[known[first : first + step]] @ of_items.T
        places = np.empty(scores.shape, np.int64)
        np.put_along_axis(
            places, np.argsort(-scores, axis=1, kind="stable"), np.arange(scores.shape[1])[np.newaxis], axis=1
        )
        owners = np.searchsorted(known, users[some]) - first
        ranks[some], predicted[some] = places[owners, items[some]], scores[owners, items[some]]
    owners = np.repeat(np.arange(len(known)), counts)
    by_rank = np.lexsort((ranks, owners))
    hits = np.arange(len(users)) - np.repeat(starts, counts) + 1.0  # number of choices up to this one
    precision = np.bincount(owners, hits / (ranks[by_rank] + 1)) / counts
    gains = np.bincount(owners, ratings / np.log2(ranks + 2))
    best = np.lexsort((-ratings, owners))
    ideal = np.bincount(owners, ratings[best] / np.log2(hits + 1))
    shares = ranks / max(1, len(of_items) - 1)
    values = (
        precision.mean(),
        np.square(1 - predicted).mean(),
        (gains / ideal).mean(),
        (ratings * shares).sum() / ratings.sum(),
    )
    return dict(zip(names, map(float, values), strict=True))
