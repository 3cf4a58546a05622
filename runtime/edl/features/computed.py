"""Values of computed columns: `edl.spec.Computed` over the rows of a batch, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features import json_values, own_functions, text_numbers
from edl.features.arrays import Floats, numbers, texts, widen
from edl.spec import Computed, Function, Source
from edl.spec.computed import (
    DEEPEST,
    FUNCTION,
    JSON_PATH,
    OF_TEXT,
    OPERATORS,
    TO_NUMBER,
    depth,
    table_columns,
)


def function(
    name: str,
    digest: str,
    params: Mapping[str, Any] | None = None,
    state: str | None = None,
    columns: Iterable[str] = (),
) -> Function:
    """Return a column function of a user's own with the state that its training rows gave.

    columns: names that its arguments had there, if they have others now.
    """
    return Function(name, digest, tuple((params or {}).items()), state, tuple(columns))


def computed(
    operator: str, *operands: Source | float, path: str = "", function: Function | None = None
) -> Computed:
    """Return the column that an operator makes of columns, numbers and other operators: + - * / LN EXP SQRT ABS LEAST
    GREATEST COALESCE; or JSON and JSON_TEXT, of a column and a path; TO_NUMBER, of a column; or FUNCTION, of columns.
    """
    plain_operands = tuple(float(operand) if isinstance(operand, int) else operand for operand in operands)
    return check(Computed(operator, plain_operands, path, function))


def check(source: Computed) -> Computed:
    """Return the computed column itself. Raises SemanticError for an operator that is not one, or its operands."""
    if source.function is not None:
        return _checked_function(source)
    operators = {**OPERATORS, **OF_TEXT}
    if source.operator not in operators:
        raise SemanticError(
            f"computed has no operator {source.operator!r}",
            hint=did_you_mean(str(source.operator), operators, list_up_to=20),
        )
    count, most = len(source.operands), operators[source.operator]
    if (count != most) if most else count < 2:
        raise SemanticError(f"{source.operator} takes {most or 'two or more'} operands, here are {count}")
    _check_path(source)
    if depth(source) > DEEPEST:
        raise SemanticError(f"there are more than {DEEPEST} operators within one another")
    for operand in source.operands:
        if isinstance(operand, Computed):
            check(operand)
        elif isinstance(operand, bool) or not (
            np.isfinite(operand) if isinstance(operand, float) else isinstance(operand, str) and operand
        ):
            raise SemanticError(f"{source.operator} takes names of columns and numbers, not {operand!r}")
    return source


def _checked_function(source: Computed) -> Computed:
    if source.operator != FUNCTION or not source.operands:
        raise SemanticError(
            f"{source.operator} takes no function of a user's own, and {FUNCTION} takes columns"
        )
    if source.function and len(source.function.columns) not in (0, len(source.operands)):
        raise SemanticError(
            f"{source.function.name} needs a name for each of its {len(source.operands)} columns"
        )
    for operand in source.operands:
        if isinstance(operand, Computed):
            check(operand)
    return source


def _check_path(source: Computed) -> None:
    if source.operator not in OF_TEXT:
        if source.path:
            raise SemanticError(f"{source.operator} takes no path")
    elif source.operator == TO_NUMBER:
        if not isinstance(source.operands[0], str) or source.path not in ("", ","):
            raise SemanticError(f"{TO_NUMBER} takes a column, and a comma if it stands before fractions")
    elif not isinstance(source.operands[0], str) or not JSON_PATH.fullmatch(source.path):
        raise SemanticError(f"{source.operator} takes a column and a path such as $.user.ages[0]")


def column(batch: pa.RecordBatch, source: Source) -> pa.Array:
    """Return the batch's column, or the float64 values of a computed one, NaN for NULL."""
    if isinstance(source, str):
        return batch.column(source)
    if source.operator == "JSON_TEXT":
        return json_values.texts(_text(batch, source), source)
    return pa.array(np.broadcast_to(_values(batch, source), batch.num_rows))


def with_computed(
    batches: Iterable[pa.RecordBatch], computed: Mapping[str, Computed]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches with computed columns behind their own, under the given names."""
    for batch in batches:
        for name, source in computed.items():
            batch = batch.append_column(name, column(batch, source))
        yield batch


def _values(batch: pa.RecordBatch, source: Source | float) -> Floats:
    if isinstance(source, Computed) and source.operator == TO_NUMBER:
        result = text_numbers.numbers(_text(batch, source), source.path or ".")
    elif isinstance(source, Computed) and source.operator in OF_TEXT:
        result = json_values.numbers(_text(batch, source), source)
    elif isinstance(source, Computed) and source.function is not None:
        result = own_functions.values(source.function, arguments(batch, source))
    elif isinstance(source, Computed):
        operands = [_values(batch, operand) for operand in source.operands]
        with np.errstate(all="ignore"):
            result = _OPERATORS[source.operator](*operands)
    elif isinstance(source, str):
        result = numbers(batch.column(source), source)
    else:
        return np.float64(source)  # type: ignore[return-value]  # a scalar, which broadcasts
    finite = np.isfinite(result)
    return result if finite.all() else np.where(finite, result, np.nan)


def arguments(batch: pa.RecordBatch, source: Computed) -> pa.Table:
    """Return the operands of a function of a user's own, as columns under the names of the training.

    Types that differ from query to query are one: numbers are float64, or int64 if they are integers.
    """
    names = source.function.columns if source.function else ()
    named = zip(names or map(str, source.operands), source.operands, strict=True)
    return pa.table(
        {name: widen(column(batch, operand)) for name, operand in named if not isinstance(operand, float)}
    )


def _text(batch: pa.RecordBatch, source: Computed) -> pa.Array:
    [name] = table_columns(source)
    return texts(batch.column(name), name)


def _sum(*terms: Floats) -> Floats:
    return reduce(np.add, terms)


def _first_known(a: Floats, b: Floats) -> Floats:
    return np.where(np.isnan(a), b, a)


_OPERATORS: Mapping[str, Callable[..., Floats]] = {
    "+": _sum,
    "-": np.negative,
    "*": np.multiply,
    "/": np.divide,
    "LN": np.log,
    "EXP": np.exp,
    "SQRT": np.sqrt,
    "ABS": np.abs,
    "LEAST": np.minimum,
    "GREATEST": np.maximum,
    "COALESCE": _first_known,
}
