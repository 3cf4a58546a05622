"""Raw columns of a table as numbers, codes of categories and the matrix of trees, in ONNX: `edl.features` in a graph.

An input is a column by its name, (rows,): text as strings, in which NULL is any text that training did not have, such
as the empty one; all else as float64, in which NULL is NaN. Booleans are 0 and 1, as categories the texts true and
false; dates and timestamps are seconds since 1970 in UTC, times of day seconds since midnight.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import msgspec
import numpy as np

from edl.features.column_types import columns_of_large_ids
from edl.features.encodings import Encoder, is_difference, scale_of
from edl.frameworks.onnx.graph import Graph, GraphValue
from edl.spec import (
    Bucket,
    CategoryId,
    Computed,
    DatePart,
    Encoding,
    Feature,
    JobSpec,
    Raw,
    Source,
    Vocabulary,
    is_category,
    is_encoding,
    source_columns,
    sources,
)
from edl.spec.categories import Category
from edl.spec.computed import is_portable, table_columns
from edl.spec.features import category_of

TREE_NUMBERS = frozenset({Raw})  # features of trees that are made of a number
_FROM_ZERO = ("year", "hour", "minute")  # parts with their number as their id
_DAY = 86_400
METADATA = "sqlflow_edl"  # key of what our files say of themselves


def find_unsupported_column(features: Sequence[Feature], numbers: Collection[type] = TREE_NUMBERS) -> str:
    """Return the column that has a feature without an operator, or is needed as text and as a number; empty if none.

    A value in a JSON text and a function of a user's own have none, nor has a category of ids that inputs of float64
    cannot tell apart.

    `numbers` are kinds of features that are made of a number.
    """
    text = {name for member in features if is_text(member) for name in source_columns(category_of(member))}
    for feature in features:
        names = tuple(source_columns(feature))
        if type(feature) not in numbers and type(category_of(feature)) not in CODES:
            return " and ".join(names)
        if not all(map(is_portable, sources(feature))):
            return " and ".join(names)
        if not is_text(feature) and (also := [name for name in names if name in text]):
            return also[0]
        if also := [name for name in table_columns(feature.number) if name in text]:
            return also[0]
    large = columns_of_large_ids(features, [name for feature in features for name in source_columns(feature)])
    return next((name for name in large if name not in text), "")


def matrix(graph: Graph, features: Sequence[Feature]) -> GraphValue:
    """Return the matrix of the features, float64 (rows, columns); all of them are supported."""
    axis = graph.constant(np.array([1]))
    columns = [
        statistics(graph, feature)
        if is_encoding(feature)
        else graph.add("Unsqueeze", _number(graph, feature), axis)
        for feature in features
    ]
    return graph.add("Concat", *columns, axis=1)


def _number(graph: Graph, feature: Feature) -> GraphValue:
    """Return the number of a feature by row, NaN if it is missing."""
    category = category_of(feature)
    if is_category(category):
        return code(graph, category)
    [source] = sources(feature)
    if not feature.part:
        return finite_number(graph, source)
    part = part_of_time(graph, str(source), feature.part)
    return part if feature.part in _FROM_ZERO else part + 1


def finite_number(graph: Graph, column: Source | float) -> GraphValue:
    """Return the numbers of a column, (rows,), NaN where they are missing or not finite."""
    if isinstance(column, str):
        return _finite(graph.input(column, "DOUBLE", ["rows"]))
    if not isinstance(column, Computed):
        return graph.constant(np.array(column))
    operands = [finite_number(graph, operand) for operand in column.operands]
    return _finite(_COMPUTED[column.operator](*operands))


def part_of_time(graph: Graph, column: str, part: str) -> GraphValue:
    """Return a part of the times of a column, (rows,); month, day and weekday begin at 0."""
    return _part(graph.input(column, "DOUBLE", ["rows"]), part)


def ids(graph: Graph, category: Category) -> GraphValue:
    """Return the ids of a category, int64 (rows,)."""
    codes = code(graph, category)
    missing = graph.add("IsNaN", codes)
    filled = graph.add("Where", missing, graph.constant(np.array(float(category.size))), codes)
    return graph.cast(filled, "INT64")


def statistics(graph: Graph, feature: Encoding) -> GraphValue:
    """Return the statistics of the rows' categories, float64 (rows, width)."""
    table = Encoder(feature).table().astype(np.float64)
    values = graph.add("Gather", graph.constant(table), ids(graph, feature.category), axis=0)
    if not is_difference(feature):
        return values
    number = graph.add("Unsqueeze", finite_number(graph, feature.number), graph.constant(np.array([1])))
    difference = graph.add("Sub", number, values) * scale_of(feature)
    if not feature.scaled:
        return difference
    return graph.add("Where", graph.add("IsNaN", difference), graph.constant(np.array(0.0)), difference)


def code(graph: Graph, category: Category) -> GraphValue:
    """Return the ids of a category as numbers, (rows,), NaN for missing ones."""
    if (make := CODES.get(type(category))) is None:
        raise TypeError(f"{type(category).__name__} has no operator")
    return make(graph, category)


def _vocabulary(graph: Graph, category: Vocabulary) -> GraphValue:
    [column] = source_columns(category)
    if not is_text(category):
        number = graph.input(column, "DOUBLE", ["rows"])
        places = graph.positions(number, np.array(category.values, dtype=np.float64))
        return _replace_unseen(category, places, _finite(number))
    text = graph.input(column, "STRING", ["rows"])
    if not category.unseen:
        return graph.positions(text, np.array(category.values, dtype=object))
    words = [*category.values, null_text(category)]
    places = graph.positions(text, np.array(words, dtype=object))
    unseen = graph.constant(np.array(float(category.unseen_id)))
    codes = graph.add("Where", graph.add("IsNaN", places), unseen, places)
    is_null = graph.add("Equal", places, graph.constant(np.array(float(category.size))))
    return codes.where(graph.add("Not", is_null))


def null_text(category: Feature | Category) -> str:
    r"""Return the text that stands for NULL: the empty one, or \N if training had that, or more of it."""
    text = ""
    while text in category.levels:
        text += r"\N"
    return text


def own_metadata(spec: JobSpec) -> dict[str, str]:
    """Return what a file says of its model for an import: label, threshold, and the text for NULL by column."""
    nulls: dict[str, str] = {}
    for feature in filter(is_text, spec.features):
        for column in source_columns(category_of(feature)):
            nulls[column] = max(nulls.get(column, ""), null_text(category_of(feature)), key=len)
    described: dict[str, object] = {"label": spec.label, "nulls": nulls}
    if spec.threshold is not None:
        described["threshold"] = spec.threshold
    return {METADATA: msgspec.json.encode(described).decode()}


def _replace_unseen(category: CategoryId | Vocabulary, codes: GraphValue, number: GraphValue) -> GraphValue:
    """Return the codes, NaN for missing numbers alone. codes: NaN also for unseen numbers."""
    if not category.unseen:
        return codes
    graph = codes.graph
    is_unseen = graph.add("And", graph.add("IsNaN", codes), graph.add("Not", graph.add("IsNaN", number)))
    return graph.add("Where", is_unseen, graph.constant(np.array(float(category.unseen_id))), codes)


def _date_part(graph: Graph, category: DatePart) -> GraphValue:
    return part_of_time(graph, category.column, category.part)


def _bucket(graph: Graph, category: Bucket) -> GraphValue:
    finite = finite_number(graph, category.column)
    axis = graph.constant(np.array([1]))
    bounds = graph.constant(np.array([category.boundaries], dtype=np.float64))
    above = graph.add("GreaterOrEqual", graph.add("Unsqueeze", finite, axis), bounds)
    return graph.add("ReduceSum", graph.cast(above, "DOUBLE"), axis, keepdims=0) + finite * 0.0


def _category_id(graph: Graph, category: CategoryId) -> GraphValue:
    """Return the numbers that are whole and in [0, size); others are unseen."""
    number, size = finite_number(graph, category.column), category.size
    whole = graph.add("Equal", number, graph.add("Floor", number))
    begun = graph.add("GreaterOrEqual", number, graph.constant(np.array(0.0)))
    ended = graph.add("Less", number, graph.constant(np.array(float(size))))
    codes = number.where(graph.add("And", graph.add("And", whole, begun), ended))
    return _replace_unseen(category, codes, number)


def _finite(number: GraphValue) -> GraphValue:
    graph = number.graph
    return number.where(graph.add("Not", graph.add("IsInf", number)))


def _part(seconds: GraphValue, part: str) -> GraphValue:
    """Return part of a time, of month, day and weekday from 0.

    Days become dates as in H. Hinnant's `civil_from_days`: years begin in March, and 400 of them are an era.
    """
    if part == "hour":
        return seconds % _DAY // 3600
    if part == "minute":
        return seconds % 3600 // 60
    days = seconds // _DAY
    if part == "weekday":
        return (days + 3) % 7
    shifted = days + 719_468  # since the first of March of the year 0
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (year * 365 + year // 4 - year // 100)
    month = (of_year * 5 + 2) // 153  # 0 is March
    next_year = month // 10
    if part == "year":
        return year + era * 400 + next_year
    if part == "month":
        return month + 2 - next_year * 12
    return of_year - (month * 153 + 2) // 5


def _one_of(choice: str, a: GraphValue, b: GraphValue) -> GraphValue:
    """Return a where it compares so with b, else b; NaN if one of them is."""
    chosen = a.graph.add("Where", a.graph.add(choice, a, b), a, b)
    return chosen + a * 0.0 + b * 0.0


def _first_known(a: GraphValue, b: GraphValue) -> GraphValue:
    return a.graph.add("Where", a.graph.add("IsNaN", a), b, a)


_COMPUTED: Mapping[str, Callable[..., GraphValue]] = {
    "+": lambda *terms: reduce(operator.add, terms),
    "-": lambda a: a * -1.0,
    "*": operator.mul,
    "/": lambda a, b: a.graph.add("Div", a, b),
    "LN": lambda a: a.graph.add("Log", a),
    "EXP": lambda a: a.graph.add("Exp", a),
    "SQRT": lambda a: a.graph.add("Sqrt", a),
    "ABS": lambda a: a.graph.add("Abs", a),
    "LEAST": partial(_one_of, "Less"),
    "GREATEST": partial(_one_of, "Greater"),
    "COALESCE": _first_known,
}


CODES: Mapping[type, Callable[[Graph, Any], GraphValue]] = {
    Bucket: _bucket,
    CategoryId: _category_id,
    DatePart: _date_part,
    Vocabulary: _vocabulary,
}


def is_text(feature: Feature | Category) -> bool:
    """Return True if the feature reads its column as text."""
    category = category_of(feature)
    return bool(category.levels) and isinstance(category.levels[0], str)
