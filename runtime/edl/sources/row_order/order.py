"""Places of rows in their pinned order, found from hashes of the rows alone; see `edl.sources.row_order`.

Keys of a row, with their names: `near`, the hash of its values with fractions as REAL; `exact`, with fractions as
DOUBLE; `held`, true for a row that is marked as one to validate on; `unit`, the time or the hash of the group of a
split by one of them; `features`, the hash of the columns beside the label; `kind`, the hash of the class.

With folds, `edl.sources.row_order.blocks` divides the rows into the blocks that validate in turn.

DuckDB hashes hashes with the seed. Sorting is NumPy's, of unsigned integers: equal hashes of different rows are rare,
and are put in order afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from edl.sources.duckdb.engine import open_database
from edl.sources.row_order import blocks
from edl.sources.row_order.units import Flags, Hashes, Ints, Units, ValidationRows
from edl.spec import Split

ROWS_PER_VALUE = 20
SCATTERED = 0.1

_FEW_KINDS = 32  # classes that are gone through one by one


class KeyColumn:
    """Values of one key, copied from the batches of rows, whose memory they would hold otherwise."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._hashes: list[Hashes] = []
        self._others: list[pa.Array] = []

    def add(self, values: pa.Array) -> None:
        if pa.types.is_uint64(self._kind):
            self._hashes.append(values.to_numpy().copy())
        else:
            self._others.append(pa.concat_arrays([values, values.slice(0, 0)]))

    def take(self) -> pa.Array:
        """Return all values, which are not kept any longer."""
        if not self._hashes:
            return pa.concat_arrays([pa.array([], self._kind), *self._others])
        hashes = np.empty(sum(map(len, self._hashes)), np.uint64)
        end = len(hashes)
        while self._hashes:  # each part is freed before the next one is copied
            part = self._hashes.pop()
            hashes[end - len(part) : end] = part
            end -= len(part)
        return pa.array(hashes)


class EqualRows(NamedTuple):
    """Rows that are equal but for the last digits of fractions.

    nth: number of each row among its equals, from 1. rows: indices of all rows, equal ones side by side. starts: where
    each different row begins among them. sizes: how many rows equal it.
    """

    nth: Ints
    rows: Ints
    starts: Ints
    sizes: Ints


def find_places(
    keys: dict[str, pa.Array], seed: int, split: Split | None
) -> tuple[Ints, ValidationRows | None]:
    """Return the indices of all rows in their order, and the rows that are not trained on; None without a split.

    Takes the keys out of the dictionary, to free each once it is used.
    """
    with open_database() as connection:
        near = _as_hashes(keys.pop("near"))
        equals = find_equal_rows(near, _as_hashes(keys.pop("exact")), connection)
        nth: Ints | int = 1 if equals is None else equals.nth
        is_folded = split is not None and split.folds and split.folds.divides(len(near))
        held, assigned = None, None
        if split is not None and is_folded:
            assigned = _assign_blocks(keys, near, equals, connection, seed, split)
        elif split is not None:
            held = _find_held_rows(keys, near, equals, connection, seed, split)
        places = _hash(connection, near, nth, int(seed))
        order = _sort(places, near, nth)
    if assigned is not None:
        return blocks.arrange_rows(order, assigned)
    if held is None:
        return order, None
    is_held = held[order]
    return np.concatenate([order[~is_held], order[is_held]]), ValidationRows(int(np.count_nonzero(is_held)))


def find_equal_rows(near: Hashes, exact: Hashes, connection: duckdb.DuckDBPyConnection) -> EqualRows | None:
    """Return the rows that equal others, or None if all differ. Equal rows are numbered in the order of `exact`.

    DuckDB numbers them, as it has always done: it alone decides which of 0.0 and -0.0 comes first.
    """
    if not _has_equals(np.sort(near)):
        return None
    hashes = {"near": near, "exact": exact, "row": np.arange(len(near))}
    number = "row_number() OVER (PARTITION BY near ORDER BY exact) AS nth"
    numbered = connection.from_arrow(pa.table(hashes)).project(f"row, {number}").to_arrow_table()
    nth = np.empty(len(near), np.int64)
    nth[numbered["row"].to_numpy()] = numbered["nth"].to_numpy()
    rows = np.argsort(near)
    starts = _starts(near[rows])
    return EqualRows(nth, rows, starts, np.diff(starts, append=len(near)))


def _find_held_rows(
    keys: dict[str, pa.Array],
    near: Hashes,
    equals: EqualRows | None,
    connection: duckdb.DuckDBPyConnection,
    seed: int,
    split: Split,
) -> Flags:
    """Return which rows validate."""
    if split.by == "column":
        return np.asarray(keys.pop("held").to_numpy(zero_copy_only=False), np.bool_)
    if split.by in ("time", "group"):
        return _held_by_value(keys.pop("unit"), connection, seed, split)
    units = _find_units(keys, near, equals, connection)
    held = _held_units(units, connection, seed, split)
    if units.of_rows is None:
        return held
    held = held[units.of_rows]
    if units.kinds is not None and equals is not None:
        drawn = _hash(connection, _hash(connection, near, equals.nth), int(seed))
        held |= _hold_classes_of_one_unit(drawn, held, units.kinds[units.of_rows], split)
    return held


def _find_units(
    keys: dict[str, pa.Array], near: Hashes, equals: EqualRows | None, connection: duckdb.DuckDBPyConnection
) -> Units:
    """Return the units of a split at random: the rows that are equal, or each row if those are separate."""
    separate = _are_separate(_as_hashes(keys.pop("features")), equals)
    of_class = keys.pop("kind", None)
    if separate or equals is None:
        nth: Ints | int = 1 if equals is None else equals.nth
        hashes = _hash(connection, near, nth) if separate else near
        return Units(hashes, None, _kinds(of_class))
    first = equals.rows[equals.starts]
    kinds = None if of_class is None else _kinds(of_class.take(pa.array(first)))
    of_rows = np.empty(len(near), np.int64)
    of_rows[equals.rows] = np.repeat(np.arange(len(first)), equals.sizes)
    return Units(near[first], equals.sizes, kinds, of_rows)


def _assign_blocks(
    keys: dict[str, pa.Array],
    near: Hashes,
    equals: EqualRows | None,
    connection: duckdb.DuckDBPyConnection,
    seed: int,
    split: Split,
) -> blocks.Assigned:
    """Assign the rows to the test rows and to the blocks of a split with folds."""
    folds = split.folds
    if not folds:
        raise ValueError("the split has no folds")
    if split.by == "time":
        return blocks.assign_times(keys.pop("unit"), connection, folds)
    if split.by == "group":
        unit, of_class = keys.pop("unit"), keys.pop("kind", None)
        units = blocks.group_rows(_as_hashes(unit), _kinds(of_class))
    else:
        units = _find_units(keys, near, equals, connection)
        if units.of_rows is not None and units.kinds is not None and equals is not None:
            units = blocks.separate_lone_units(units, _hash(connection, near, equals.nth))
    drawn = _hash(connection, units.hashes, int(seed))
    tested = np.zeros(len(units.hashes), np.bool_)
    if folds.test:
        share = msgspec.structs.replace(split, fraction=folds.test, fewest=0)
        tested = _held_units(units, connection, seed, share)
    return blocks.assign_units(units, drawn, tested, folds.number)


def _hold_classes_of_one_unit(drawn: Hashes, held: Flags, kinds: Ints, split: Split) -> Flags:
    """Return rows that validate too, of classes that have none because their rows are equal.

    No copy of an observation is so common; the only value of a class is, such as NULL.
    """
    if split.by != "stratified" or not held.any():
        return np.zeros(len(held), np.bool_)
    totals, validating = np.bincount(kinds), np.bincount(kinds, held)
    aims = np.floor(totals * float(split.fraction) + 0.5).astype(np.int64)
    order = np.lexsort((drawn, kinds))
    nth = np.arange(len(order)) - (np.cumsum(totals) - totals)[kinds[order]]
    more = np.zeros(len(held), np.bool_)
    more[order] = (nth < aims[kinds[order]]) & (validating[kinds[order]] == 0)
    return more


def _are_separate(features: Hashes, equals: EqualRows | None) -> bool:
    """Return True if equal rows are observations of their own."""
    if equals is None:  # then rows that equal others beside the label have other labels
        return _has_equals(np.sort(features))
    of_units = features[equals.rows[equals.starts]]
    order = np.argsort(of_units)
    starts = _starts(of_units[order])
    kinds = np.diff(starts, append=len(order))
    sizes = np.add.reduceat(equals.sizes[order], starts) if len(order) else np.zeros(0, np.int64)
    if sizes.sum() >= ROWS_PER_VALUE * len(order):
        return True
    scattered, copied = sizes[kinds > 1].sum(), sizes[sizes > 1].sum()
    return bool((kinds > 1).any()) and bool(scattered >= SCATTERED * copied)


def _held_units(units: Units, connection: duckdb.DuckDBPyConnection, seed: int, split: Split) -> Flags:
    """Return which units have the validation rows: in the order of their hashes, until the fraction is reached.

    The unit that reaches the fraction is taken if that is nearer to it, the first one always, the last one never.
    """
    count = len(units.hashes)
    sizes = np.ones(count, np.int64) if units.sizes is None else units.sizes
    kinds = np.zeros(count, np.int64) if units.kinds is None else units.kinds
    totals = np.bincount(kinds, sizes).astype(np.int64) if count else np.zeros(0, np.int64)
    aims = np.floor(totals * float(split.fraction) + 0.5).astype(np.int64)
    if split.by == "stratified":
        aims = np.maximum(aims, (totals > 1).astype(np.int64))
    held = np.zeros(count, np.bool_)
    if not count or totals.sum() < split.fewest:
        return held
    drawn = _hash(connection, units.hashes, int(seed))
    if units.sizes is None and len(totals) <= _FEW_KINDS:
        for kind, most in enumerate(np.minimum(aims, totals - 1)):
            of_kind = slice(None) if units.kinds is None else np.flatnonzero(kinds == kind)
            held[of_kind] = _least(drawn[of_kind], units.hashes[of_kind], int(most))
        return held
    order = _sort(drawn, units.hashes)
    class_and_size = (2 * kinds + (sizes > aims[kinds]))[order]
    order = order[np.argsort(class_and_size, kind="stable")]
    kinds, sizes = kinds[order], sizes[order]
    last = np.cumsum(sizes)
    last -= (np.cumsum(totals) - totals)[kinds]
    aim, total = aims[kinds], totals[kinds]
    is_near = (last == sizes) | (last - aim <= aim - (last - sizes))
    held[order] = (last - sizes < aim) & (last < total) & is_near
    return held


def _least(drawn: Hashes, units: Hashes, most: int) -> Flags:
    """Return which units have the least hashes, so many; of equal hashes the least units."""
    if most <= 0:
        return np.zeros(len(drawn), np.bool_)
    bound = np.partition(drawn, most - 1)[most - 1]
    least: Flags = drawn < bound
    at_bound = np.flatnonzero(drawn == bound)
    at_bound = at_bound[np.argsort(units[at_bound])]
    least[at_bound[: most - np.count_nonzero(least)]] = True
    return least


def _held_by_value(values: pa.Array, connection: duckdb.DuckDBPyConnection, seed: int, split: Split) -> Flags:
    """Return which rows validate in a split by time or group: DuckDB knows the order of values of any type."""
    order = (
        "unit DESC NULLS LAST"
        if split.by == "time"
        else f"size > aims, hash(unit, {int(seed)}::BIGINT), unit"
    )
    connection.register("rows_of_units", pa.table({"unit": values, "place": np.arange(len(values))}))
    units = "SELECT unit, count(*) AS size FROM rows_of_units GROUP BY ALL"
    ends = f"sum(size) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) AS last"
    totals = f"SELECT *, sum(size) OVER () AS total FROM ({units})"
    aims = f"SELECT *, floor(total * {float(split.fraction)!r}::DOUBLE + 0.5) AS aims FROM ({totals})"
    is_near = "(last = size OR last - aims <= aims - (last - size))"
    held = (
        f"SELECT unit FROM (SELECT *, {ends} FROM ({aims})) WHERE total >= {int(split.fewest)}"
        f" AND last - size < aims AND last < total AND {is_near}"
    )
    places = connection.sql(f"SELECT place FROM rows_of_units WHERE unit IN ({held})").to_arrow_table()[
        "place"
    ]
    flags = np.zeros(len(values), np.bool_)
    flags[places.to_numpy()] = True
    return flags


def _kinds(values: pa.Array | None) -> Ints | None:
    """Return the number of each row's class."""
    if values is None:
        return None
    return np.asarray(values.dictionary_encode().indices.to_numpy(), np.int64)


def _hash(connection: duckdb.DuckDBPyConnection, hashes: Hashes, *others: Ints | int) -> Hashes:
    """Return DuckDB's hashes of hashes and other whole numbers."""
    columns: dict[str, object] = {"h0": hashes}
    items = ["h0"]
    for number, other in enumerate(others, 1):
        if isinstance(other, int):
            items.append(f"{other}::BIGINT")
        else:
            columns[f"h{number}"] = other
            items.append(f"h{number}")
    relation = connection.from_arrow(pa.table(columns)).project(f"hash({', '.join(items)}) AS h")
    return _as_hashes(relation.to_arrow_table()["h"])


def _sort(hashes: Hashes, *ties: Ints | Hashes | int) -> Ints:
    """Return the indices in the order of the hashes; of equal hashes in the order of `ties`, the first one first."""
    order = np.argsort(hashes)
    in_order = hashes[order]
    if not _has_equals(in_order):
        return order
    starts = _starts(in_order)
    sizes = np.diff(starts, append=len(order))
    several = np.repeat(sizes > 1, sizes)
    run = np.repeat(np.arange(len(starts)), sizes)[several]
    equal = order[several]
    keys: Sequence[npt.NDArray[np.generic]] = [
        tie[equal] for tie in reversed(ties) if not isinstance(tie, int)
    ]
    order[several] = equal[np.lexsort((*keys, run))]
    return order


def _has_equals(in_order: Hashes) -> bool:
    return bool((in_order[1:] == in_order[:-1]).any())


def _starts(in_order: Hashes) -> Ints:
    """Return the index of the first of each run of equal values."""
    return np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])[: len(in_order)])


def _as_hashes(values: pa.Array | pa.ChunkedArray) -> Hashes:
    return np.asarray(values.to_numpy(), np.uint64)
