"""Columns of rows that a job adds to a table: each must be there, under its name, and hold the values as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from edl.data.arrow_types import plain_name
from edl.errors import SourceError, nearest

_MOST = 12  # columns of a message

# kinds of values -> kinds of columns that hold them, beside texts, which hold all but binary values
_HELD: Sequence[tuple[Callable[[pa.DataType], bool], Sequence[Callable[[pa.DataType], bool]]]] = (
    (types.is_boolean, (types.is_boolean, types.is_integer)),
    (types.is_integer, (types.is_integer, types.is_floating, types.is_decimal)),
    (types.is_floating, (types.is_floating, types.is_decimal)),
    (types.is_decimal, (types.is_decimal, types.is_floating)),
    (types.is_date, (types.is_date, types.is_timestamp)),
)


def columns_for(
    target: str,
    columns: Sequence[str],
    described: Callable[[list[str]], pa.Schema],
    added: pa.Schema,
    needed: Sequence[str] = (),
) -> list[str]:
    """Return the table's spelling of the name of each added column.

    `columns` are the names of the table's columns, and `described` returns the types of some. Columns that are not
    added keep their defaults, and may be of any type; `needed` have none and are NOT NULL. Raises SourceError if an
    added one is not there, or of a type that does not hold its values, or a needed one is not added.
    """
    by_folded = {name.casefold(): name for name in columns}
    unknown = [name for name in added.names if name.casefold() not in by_folded]
    if unknown:
        near = nearest(unknown[0], columns)
        raise SourceError(
            f"the table {target} has no column {_list_names(unknown)}: its columns are {_list_names(columns)}, "
            f"the rows have {_list_names(added.names)}",
            hint=(f"did you mean {near}? " if near else "")
            + f"choose columns by INSERT INTO {target} (…) SELECT … FROM PREDICT(…), or add some by ALTER TABLE",
        )
    names = [by_folded[name.casefold()] for name in added.names]
    for field, column in zip(added, described(names), strict=True):
        if not _holds(column.type, field.type):
            raise SourceError(
                f"column {column.name} of the table {target} is of the type {plain_name(column.type)}, which does not "
                f"hold the {plain_name(field.type)} values of the rows",
                hint=f"change its type by ALTER TABLE, or cast them: INSERT INTO {target} (…) SELECT CAST({field.name} "
                "AS …) … FROM PREDICT(…)",
            )
    if missing := [name for name in needed if name not in names]:
        raise SourceError(
            f"the table {target} needs values of {_list_names(missing)}, NOT NULL without a default: the rows have "
            f"{_list_names(added.names)}",
            hint=f"select it, SELECT *, … AS {missing[0]} FROM …, or give it a default by ALTER TABLE",
        )
    return names


def _holds(column: pa.DataType, values: pa.DataType) -> bool:
    if column == values or types.is_null(column) or types.is_null(values):
        return True
    if types.is_string(column):
        return not (types.is_binary(values) or types.is_nested(values))
    for of_values, holding in _HELD:
        if of_values(values):
            return any(test(column) for test in holding)
    return bool(column.id == values.id)  # timestamps of another unit, and the like


def check_range(target: str, columns: pa.Schema, rows: Iterable[pa.RecordBatch]) -> None:
    """Raise SourceError if numbers are too large for their column: a warehouse may wrap them or make them NULL.

    `columns` are the table's columns for the columns of `rows`, in the same order.
    """
    for batch in rows:
        for column, values in zip(columns, batch.columns, strict=True):
            held = _range(column.type)
            if held is None or values.type == column.type or types.is_boolean(values.type):
                continue
            least, most = pc.min_max(values).as_py().values()
            if least is not None and (least < held[0] or most > held[1]):
                raise SourceError(
                    f"the rows have numbers from {least} to {most} for column {column.name} of the table {target}, "
                    f"which holds numbers from {held[0]} to {held[1]}: no row was added",
                    hint="change its type by ALTER TABLE, or leave such rows out",
                )


def _range(column: pa.DataType) -> tuple[int | Decimal, int | Decimal] | None:
    """Return the least and the largest number of a column of whole numbers or decimals."""
    if types.is_decimal(column):
        most = Decimal((0, (9,) * column.precision, -column.scale))
        return -most, most
    if not types.is_integer(column):
        return None
    values = 2**column.bit_width
    return (-values // 2, values // 2 - 1) if types.is_signed_integer(column) else (0, values - 1)


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def is_added(target: str, before: int, now: int, rows: int) -> bool:
    """Return True if the rows are in a table that had `before` rows, and now has `now`; for databases without
    transactions.

    Raises SourceError if others have changed the table meanwhile, so that nobody knows.
    """
    if now in (before, before + rows):
        return now != before or not rows
    raise SourceError(
        f"the connection was lost while {rows:,} rows were added to {target}, and others have changed it since: it had "
        f"{before:,} rows and has {now:,}",
        hint="look whether the rows are there, and run the statement again if they are not",
    )
