"""Values of computed columns: `edl.spec.Computed` over the rows of a batch, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

import numpy as np
import pyarrow as pa

from edl.errors import SemanticError, did_you_mean
from edl.features import json_values
from edl.features.arrays import Floats, numbers, texts
from edl.spec import Computed, Source
from edl.spec.computed import DEEPEST, JSON_PATH, OF_JSON, OPERATORS, depth, table_columns


def computed(operator: str, *operands: Source | float, path: str = "") -> Computed:
    """Return the column that an operator makes of columns, numbers and other operators: + - * / LN EXP SQRT ABS LEAST
    GREATEST COALESCE; or JSON and JSON_TEXT, of a column and a path.
    """
    made = tuple(float(each) if isinstance(each, int) else each for each in operands)
    return check(Computed(operator, made, path))


def check(found: Computed) -> Computed:
    """Return the computed column itself. Raises SemanticError for an operator that is not one, or its operands."""
    known = {**OPERATORS, **OF_JSON}
    if found.operator not in known:
        raise SemanticError(
            f"computed has no operator {found.operator!r}",
            hint=did_you_mean(str(found.operator), known, list_up_to=20),
        )
    count, most = len(found.operands), known[found.operator]
    if (count != most) if most else count < 2:
        raise SemanticError(f"{found.operator} takes {most or 'two or more'} operands, here are {count}")
    if found.operator in OF_JSON:
        if not isinstance(found.operands[0], str) or not JSON_PATH.fullmatch(found.path):
            raise SemanticError(f"{found.operator} takes a column and a path such as $.user.ages[0]")
    elif found.path:
        raise SemanticError(f"{found.operator} takes no path")
    if depth(found) > DEEPEST:
        raise SemanticError(f"there are more than {DEEPEST} operators within one another")
    for operand in found.operands:
        if isinstance(operand, Computed):
            check(operand)
        elif isinstance(operand, bool) or not (
            np.isfinite(operand) if isinstance(operand, float) else isinstance(operand, str) and operand
        ):
            raise SemanticError(f"{found.operator} takes names of columns and numbers, not {operand!r}")
    return found


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
    if isinstance(source, Computed) and source.operator in OF_JSON:
        found = json_values.numbers(_text(batch, source), source)
    elif isinstance(source, Computed):
        operands = [_values(batch, operand) for operand in source.operands]
        with np.errstate(all="ignore"):
            found = _OPERATORS[source.operator](*operands)
    elif isinstance(source, str):
        found = numbers(batch.column(source), source)
    else:
        return np.float64(source)  # type: ignore[return-value]  # a scalar, which broadcasts
    finite = np.isfinite(found)
    return found if finite.all() else np.where(finite, found, np.nan)


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
