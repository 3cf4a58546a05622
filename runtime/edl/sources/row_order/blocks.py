"""Blocks of rows that validate in turn, in the folds of a search.

Units (groups, equal rows or single rows) are assigned to the blocks in turn, from the first to the last and back, in
the order of their class, of their size, and of the hash of their value and the seed. So all blocks have about as many
rows, and about the same share of each class.

Times are cut into parts of about equal size. The latest part is block 0; the earliest one is in no block, because a
training of a fold reads only rows before its block (forward chaining).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from edl.errors import SemanticError
from edl.sources.row_order.units import Flags, Hashes, Ints, Units, ValidationRows
from edl.spec import SplitFolds, ValidationBlocks

TEST = -1  # number of the test rows, in place of a block
DAY = 86_400.0  # seconds
MOST_CLASSES = 100  # values of a label; more are numbers


class Assigned(NamedTuple):
    """Blocks of rows. numbers: of each row, from 0, or TEST. near: rows in the gap before a later block, if any.

    is_forward: the rows of the greatest number are in no block.
    """

    numbers: Ints
    near: Flags | None = None
    is_forward: bool = False


def arrange_rows(order: Ints, assigned: Assigned) -> tuple[Ints, ValidationRows]:
    """Return the rows in the order of their blocks, the first one last, and then the test rows.

    order: of all rows, kept within each block.
    """
    numbers, near, is_forward = assigned
    present = np.unique(numbers[numbers != TEST])
    tested = numbers == TEST
    places = np.searchsorted(present, numbers)
    ranks = 2 * (len(present) - places)
    if near is not None:
        ranks += near
    ranks[tested] = 2 * len(present) + 2
    sizes = np.bincount(places[~tested], minlength=len(present)).tolist()
    gaps: tuple[int, ...] = ()
    if near is not None:
        gaps = tuple(int(np.count_nonzero(near & (numbers == number))) for number in present[1:])
    divided = divide_rows(sizes, int(np.count_nonzero(tested)), gaps, is_forward=is_forward)
    return order[np.argsort(ranks[order], kind="stable")], divided


def divide_rows(
    sizes: Sequence[int], tests: int, gaps: tuple[int, ...] = (), *, is_forward: bool
) -> ValidationRows:
    """Return the validation rows of blocks of these sizes, and of so many test rows.

    Fewer than two blocks are none: then no row validates.
    """
    count = len(sizes) - is_forward
    if count < (1 if is_forward else 2):
        return ValidationRows(0)
    blocks = ValidationBlocks(sum(sizes), tuple(sizes[:count]), is_forward, gaps)
    return ValidationRows(sizes[0] + tests, blocks)


def assign_units(units: Units, drawn: Hashes, tested: Flags, number: int) -> Assigned:
    """Assign the units that are not `tested` to so many blocks. drawn: hashes that order units of a class and size."""
    free = np.flatnonzero(~tested)
    sizes = np.ones(len(tested), np.int64) if units.sizes is None else units.sizes
    kinds = np.zeros(len(tested), np.int64) if units.kinds is None else units.kinds
    order = free[np.lexsort((units.hashes[free], drawn[free], -sizes[free], kinds[free]))]
    turns, places = np.divmod(np.arange(len(order)), number)
    numbers = np.full(len(tested), TEST, np.int64)
    numbers[order] = np.where(turns % 2 == 0, places, number - 1 - places)
    return Assigned(numbers if units.of_rows is None else numbers[units.of_rows])


def group_rows(groups: Hashes, classes: Ints | None) -> Units:
    """Return the groups as units. classes: number of each row's class; None without any. Of many, none counts.

    The class of a group is the class whose share in it exceeds its share in all rows by the largest factor.
    """
    hashes, of_rows, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    units = Units(hashes, sizes.astype(np.int64), None, of_rows.astype(np.int64))
    number = 0 if classes is None or not len(classes) else int(classes.max()) + 1
    if classes is None or not 1 < number <= MOST_CLASSES:
        return units
    pairs, counts = np.unique(of_rows * number + classes, return_counts=True)
    of_pairs, kinds = np.divmod(pairs, number)
    factors = counts / sizes[of_pairs] / np.bincount(classes, minlength=number)[kinds]
    order = np.lexsort((kinds, -factors, of_pairs))
    _, first = np.unique(of_pairs[order], return_index=True)
    return units._replace(kinds=kinds[order][first])


def separate_lone_units(units: Units, of_rows: Hashes) -> Units:
    """Return the units with each row of a class that has one unit as a unit of its own.

    No copy of an observation is so common; the only value of a class is, such as NULL. of_rows: hash of each row.
    """
    if units.of_rows is None or units.kinds is None or units.sizes is None:
        return units
    lone = np.bincount(units.kinds)[units.kinds] == 1
    rows = np.flatnonzero(lone[units.of_rows])
    if not len(rows):
        return units
    kept = np.cumsum(~lone) - 1
    numbers = kept[units.of_rows]
    numbers[rows] = np.arange(len(rows)) + np.count_nonzero(~lone)
    return Units(
        np.concatenate([units.hashes[~lone], of_rows[rows]]),
        np.concatenate([units.sizes[~lone], np.ones(len(rows), np.int64)]),
        np.concatenate([units.kinds[~lone], units.kinds[units.of_rows[rows]]]),
        numbers,
    )


def assign_times(times: pa.Array, connection: duckdb.DuckDBPyConnection, folds: SplitFolds) -> Assigned:
    """Cut the rows by their times. Rows without a time are in no block. Rows of one time are in one block.

    Raises SemanticError if the gap is longer than a block.
    """
    connection.register("rows_of_times", pa.table({"unit": times, "place": np.arange(len(times))}))
    # Of the latest time first: rows until the middle of each time, as a share of all.
    middle = "sum(size) OVER (ORDER BY unit DESC NULLS LAST ROWS UNBOUNDED PRECEDING) - size / 2"
    units = "SELECT unit, count(*) AS size FROM rows_of_times GROUP BY ALL"
    shares = f"SELECT unit, ({middle}) / {max(len(times), 1)} AS share FROM ({units})"
    found = connection.sql(
        f"SELECT share::DOUBLE AS share, r.unit IS NULL AS missing, {_as_number(times.type)}::DOUBLE AS time"
        f" FROM rows_of_times AS r JOIN ({shares}) AS s ON r.unit IS NOT DISTINCT FROM s.unit ORDER BY place"
    ).to_arrow_table()
    share = found["share"].to_numpy()
    part = (1 - folds.test) / (folds.number + 1)
    numbers = np.floor((share - folds.test) / part).astype(np.int64).clip(0, folds.number)
    numbers[share < folds.test] = TEST
    numbers[found["missing"].to_numpy()] = folds.number
    near = None
    if folds.gap:
        is_number = pa.types.is_integer(times.type) or pa.types.is_floating(times.type)
        gap = folds.gap * (1.0 if is_number or pa.types.is_decimal(times.type) else DAY)
        near = _find_gaps(numbers, found["time"].to_numpy(zero_copy_only=False).astype(np.float64), gap)
    return Assigned(numbers, near, is_forward=True)


def _as_number(kind: pa.DataType) -> str:
    """Return the expression of a time as a number: seconds, or the number itself."""
    if pa.types.is_temporal(kind):
        return "epoch(r.unit)"
    if pa.types.is_string(kind) or pa.types.is_large_string(
        kind
    ):  # of a database that writes its dates as text
        return "epoch(try_cast(r.unit AS TIMESTAMP))"
    return "r.unit"


def _find_gaps(numbers: Ints, times: np.ndarray[tuple[int], np.dtype[np.float64]], gap: float) -> Flags:
    """Return which rows are less than the gap before the beginning of a later block."""
    near = np.zeros(len(numbers), np.bool_)
    present = np.unique(numbers[numbers != TEST])
    for later, block in itertools.pairwise(present):
        begin = np.nanmin(times[numbers == later])
        is_near = times > begin - gap
        near |= is_near & (numbers == block)
        if (is_near & (numbers > block)).any() or near[numbers == block].all():
            raise SemanticError(
                "the gap before the validation rows is longer than a fold",
                hint="write a shorter validation.gap, or fewer validation.folds",
            )
    return near
