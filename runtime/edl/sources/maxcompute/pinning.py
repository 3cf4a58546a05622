"""Rows pinned as a table of MaxCompute, in their order, with a digest that MaxCompute itself computes.

The order of shuffled rows is a function of the rows and the seed: a hash of the row's text, of the number of preceding
rows with the same text, and of the seed. Numbers with fractions count as FLOAT there, as with every source, and their
exact values order only rows that are equal otherwise. The hash is MaxCompute's MD5, not DuckDB's, so the order differs
from the order of the same rows in another database, and so do the validation rows of a split, except by time.

The digest covers the schema, the seed and the rows as a multiset, from which their order follows. For a query that
keeps its own order, the digest covers its text instead of the seed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import odps.types as odps_types
from msgspec import UNSET

from edl.data.arrow_types import fields
from edl.data.names import free_name
from edl.data.source import Pinned, PinnedTable
from edl.errors import SemanticError
from edl.jobs.job_folder import state_id
from edl.sources.maxcompute.download import TableRows
from edl.sources.maxcompute.sql import quote_name, text
from edl.sources.maxcompute.types import MaxComputeColumn
from edl.sources.row_order.blocks import divide_rows
from edl.sources.row_order.order import ROWS_PER_VALUE, SCATTERED
from edl.sources.row_order.units import ValidationRows
from edl.spec import Split

if TYPE_CHECKING:
    from edl.sources.maxcompute.source import MaxComputeSource

TABLE = "sqlflow_edl_pinned_"  # followed by a random number
LIFECYCLE = 7  # days; longer than a job lasts

_NULL, _SEPARATOR = "CHR(2)", "CHR(1)"
_HASHES = ("near", "exact")  # of a row: with rounded numbers, and with all their digits
_PIECES = 4  # of a hash's 32 digits, summed separately so that no sum overflows


def pin(
    source: MaxComputeSource, query: str, folder: Path, *, seed: int, shuffle: bool, split: Split | None
) -> Pinned:
    columns = source.columns(query)
    table = TABLE + secrets.token_hex(8)
    shuffle = shuffle or split is not None
    split = _settle_folds(source, query, split)
    # An ORDER BY inside of parentheses would be ignored.
    select = shuffle_query(query, columns, seed, split) if shuffle else query
    source.run(f"CREATE TABLE {quote_name(table)} LIFECYCLE {LIFECYCLE} AS\n{select}", query)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        source.run(
            f"ALTER TABLE {quote_name(table)} SET COMMENT {text(f'{state_id()}, {folder.absolute()}')}"
        )
        order = f"({seed!r}, {_describe_split(split)})" if split else repr(seed if shuffle else query)
        digest = _digest(source, table, columns, order)
        held_out = _count_validation(source, table, columns, seed, split) if split else None
        with source.errors():
            reader = TableRows(source.client, table)
    except BaseException:
        source.run(f"DROP TABLE IF EXISTS {quote_name(table)}")
        raise
    return Pinned(
        source=source.url,
        select=query,
        file="",
        rows=reader.rows,
        schema=fields(reader.schema),
        digest=digest,
        seed=seed,
        shuffled=shuffle,
        table=PinnedTable(table, session=reader.session),
        validation=None if held_out is None else held_out.rows,
        blocks=UNSET if held_out is None else held_out.blocks,
    )


def _settle_folds(source: MaxComputeSource, query: str, split: Split | None) -> Split | None:
    """Return the split without folds if the query has too many rows for them. Raises SemanticError for a gap."""
    if split is None or not split.folds:
        return split
    if split.folds.gap:
        raise SemanticError(
            "the rows of a MaxCompute table are pinned without a gap between training and validation rows",
            hint="leave validation.gap out",
        )
    if split.folds.most:
        ((total,),) = source.few_rows(f"SELECT COUNT(*) AS n FROM (\n{query}\n) a")
        if not split.folds.divides(int(total)):
            return msgspec.structs.replace(split, folds=UNSET)
    return split


def unpin_abandoned(source: MaxComputeSource) -> int:
    """Drop this user's tables without a folder. Tables of other users end by their lifecycle."""
    dropped, ours = 0, f"{state_id()}, "
    for entry in source.list_objects(TABLE):
        with source.errors():
            comment = entry.comment or ""
        if comment.startswith(ours) and not Path(comment.removeprefix(ours)).is_dir():
            source.run(f"DROP TABLE IF EXISTS {quote_name(entry.name)}")
            dropped += 1
    return dropped


def shuffle_query(
    query: str, columns: Sequence[MaxComputeColumn], seed: int, split: Split | None = None
) -> str:
    """Return a query of the rows in the order determined by them and `seed`, validation rows last."""
    names = [column.name for column in columns]
    near, exact, nth, held = (free_name(name, names) for name in (*_HASHES, "nth", "held"))
    listed = ", ".join(quote_name(name) for name in names)
    hashes = f"{_hash(columns, rounded=True)} AS {near}, {_hash(columns)} AS {exact}"
    rows = f"SELECT {listed}, {hashes} FROM (\n{query}\n) a"
    number = f"ROW_NUMBER() OVER (PARTITION BY {near} ORDER BY {exact}) AS {nth}"
    place = f"MD5(CONCAT({near}, {_SEPARATOR}, CAST({nth} AS STRING), {_SEPARATOR}, '{int(seed)}'))"
    order = f"{place}, {near}, {nth}"
    if split is None:
        return f"SELECT {listed} FROM (SELECT {listed}, {near}, {number} FROM ({rows}) b) c ORDER BY {order}"
    mark = _mark_blocks if split.folds else _mark_validation
    marked = mark(rows, listed, names, columns, seed, split)
    return (
        f"SELECT {listed} FROM (SELECT {listed}, {near}, {held}, {number} FROM ({marked}) g) h"
        f" ORDER BY {held}, {order}"
    )


def _mark_validation(
    rows: str, listed: str, names: Sequence[str], columns: Sequence[MaxComputeColumn], seed: int, split: Split
) -> str:
    """Return a query of hashed rows that also marks the validation rows, see `edl.sources.row_order`: 1, else 0."""
    near, exact, held = (free_name(name, names) for name in (*_HASHES, "held"))
    if split.by == "column":
        is_held = f"COALESCE(CAST({quote_name(split.column)} AS BOOLEAN), TRUE)"
        return f"SELECT {listed}, {near}, {exact}, CASE WHEN {is_held} THEN 1 ELSE 0 END AS {held} FROM ({rows}) b"
    return (
        f"SELECT {listed}, {near}, {exact}, {held}"
        f" FROM ({_mark_units(rows, listed, names, columns, seed, split)}) f"
    )


def _mark_units(
    rows: str, listed: str, names: Sequence[str], columns: Sequence[MaxComputeColumn], seed: int, split: Split
) -> str:
    """Return a query of hashed rows with their unit, its class, size and hash, and the mark of validation rows."""
    near, exact, unit, kind, size, total, every, wanted, before, held, drawn = (
        free_name(name, names)
        for name in (
            *(*_HASHES, "unit", "kind", "size", "total", "every", "wanted", "before", "held", "drawn"),
        )
    )
    if split.by in ("random", "stratified"):
        rows = _with_own_unit(rows, listed, names, columns, split)
    kept = f"{listed}, {near}, {exact}"
    split_column = {column.name: column for column in columns}.get(split.column)
    value = f"COALESCE({_text(split_column, True)}, {_NULL})" if split_column is not None else "''"
    of_row, of_class = free_name("own", names), "''"
    if split.by == "stratified":
        of_class = value
    elif split.by == "group":
        of_row = f"MD5({value})"
    elif split.by == "time":
        of_row = quote_name(split.column)
    least = f"CASE WHEN {total} > 1 THEN 1 ELSE 0 END" if split.by == "stratified" and split.fraction else "0"
    share = f"GREATEST(FLOOR({total} * {float(split.fraction)!r} + 0.5), {least})"
    hashed = f"MD5(CONCAT({unit}, {_SEPARATOR}, '{int(seed)}'))"
    # NULLs come last in descending order.
    large = f"CASE WHEN {size} > {wanted} THEN 1 ELSE 0 END"
    order = f"{unit} DESC" if split.by == "time" else f"{large}, {hashed}, {unit}"
    units = f"SELECT {kept}, {of_row} AS {unit}, {of_class} AS {kind} FROM ({rows}) b"
    counts = (
        f"COUNT(*) OVER (PARTITION BY {kind}, {unit}) AS {size}, COUNT(*) OVER (PARTITION BY {kind}) AS {total},"
        f" COUNT(*) OVER (PARTITION BY 1) AS {every}"
    )
    counted = f"SELECT {kept}, {unit}, {kind}, {counts} FROM ({units}) c"
    aimed = f"SELECT {kept}, {unit}, {kind}, {size}, {total}, {every}, {share} AS {wanted} FROM ({counted}) d"
    rank = f"RANK() OVER (PARTITION BY {kind} ORDER BY {order}) - 1 AS {before}"
    of_unit = f"{unit}, {kind}, {size}, {every}"
    of_hash = "''" if split.by == "time" else hashed
    placed = f"SELECT {kept}, {of_unit}, {total}, {wanted}, {of_hash} AS {drawn}, {rank} FROM ({aimed}) e"
    is_held = (
        f"{every} >= {int(split.fewest)} AND {before} < {wanted} AND {before} + {size} < {total}"
        f" AND ({before} = 0 OR {before} + {size} - {wanted} <= {wanted} - {before})"
    )
    return f"SELECT {kept}, {of_unit}, {drawn}, CASE WHEN {is_held} THEN 1 ELSE 0 END AS {held} FROM ({placed}) f"


def _mark_blocks(
    rows: str, listed: str, names: Sequence[str], columns: Sequence[MaxComputeColumn], seed: int, split: Split
) -> str:
    """Return a query of hashed rows with the place of their block in the order, from 0.

    It is what `edl.sources.row_order.blocks` does, but for the classes of groups.
    """
    if not split.folds:
        raise ValueError("the split has no folds")
    number, test = int(split.folds.number), float(split.folds.test)
    near, exact, unit, kind, size, every, held, drawn, nth = (
        free_name(name, names) for name in (*_HASHES, "unit", "kind", "size", "every", "held", "drawn", "nth")
    )
    tested = msgspec.structs.replace(split, fraction=test, fewest=0, folds=UNSET)
    units = _mark_units(rows, listed, names, columns, seed, tested)
    kept = f"{listed}, {near}, {exact}"
    if split.by == "time":
        before = f"RANK() OVER (PARTITION BY 1 ORDER BY {unit} DESC) - 1 + {size} / 2"
        share = f"({before}) / {every}"
        part = f"CAST(FLOOR((({share}) - {test!r}) / {(1 - test) / (number + 1)!r}) AS BIGINT)"
        place = (
            f"CASE WHEN {unit} IS NULL THEN 0 WHEN {share} < {test!r} THEN {number + 1}"
            f" ELSE {number} - LEAST({number}, GREATEST(0, {part})) END"
        )
        return f"SELECT {kept}, {place} AS {held} FROM ({units}) u"
    order = f"{kind}, {size} DESC, {drawn}, {unit}"
    rank = f"DENSE_RANK() OVER (PARTITION BY {held} ORDER BY {order}) - 1"
    ranked = f"SELECT {kept}, {held}, {rank} AS {nth} FROM ({units}) u"
    turn = f"{nth} % {number}"
    block = f"CASE WHEN FLOOR({nth} / {number}) % 2 = 0 THEN {turn} ELSE {number - 1} - {turn} END"
    place = f"CASE WHEN {held} = 1 THEN {number} ELSE {number - 1} - ({block}) END"
    return f"SELECT {kept}, CAST({place} AS BIGINT) AS {held} FROM ({ranked}) v"


def _with_own_unit(
    rows: str, listed: str, names: Sequence[str], columns: Sequence[MaxComputeColumn], split: Split
) -> str:
    """Return a query of the rows with their unit as a column `own`: equal rows, or each row, as the rows are."""
    near, exact, features, nth, copies, scattered, alike, firsts, copied, apart, every, own = (
        free_name(name, names)
        for name in (
            *(*_HASHES, "features", "nth", "copies", "scattered", "alike"),
            *("firsts", "copied", "apart", "every", "own"),
        )
    )
    kept = f"{listed}, {near}, {exact}"
    others = [column for column in columns if column.name != split.column]
    hashed = f"SELECT {kept}, {_hash(others, rounded=True)} AS {features} FROM ({rows}) o"
    within = f"OVER (PARTITION BY {features})"
    counts = (
        f"ROW_NUMBER() OVER (PARTITION BY {near} ORDER BY {exact}) AS {nth}, COUNT(*) {within} AS {copies},"
        f" CASE WHEN MIN({near}) {within} < MAX({near}) {within} THEN 1 ELSE 0 END AS {scattered},"
        f" {_is_class_of_equal_rows(near, columns, split)} AS {alike}"
    )
    over_all = "OVER (PARTITION BY 1)"
    sums = (
        f"SUM(CASE WHEN {nth} = 1 THEN 1 ELSE 0 END) {over_all} AS {firsts},"
        f" SUM(CASE WHEN {copies} > 1 THEN 1 ELSE 0 END) {over_all} AS {copied},"
        f" SUM({scattered}) {over_all} AS {apart}, COUNT(*) {over_all} AS {every}"
    )
    separate = (
        f"{alike} = 1 OR {every} >= {ROWS_PER_VALUE} * {firsts}"
        f" OR ({apart} > 0 AND {apart} >= {SCATTERED!r} * {copied})"
    )
    row = f"MD5(CONCAT({near}, {_SEPARATOR}, CAST({nth} AS STRING)))"
    return (
        f"SELECT {kept}, CASE WHEN {separate} THEN {row} ELSE {near} END AS {own}"
        f" FROM (SELECT {kept}, {nth}, {alike}, {sums} FROM (SELECT {kept}, {counts} FROM ({hashed}) p) q) r"
    )


def _is_class_of_equal_rows(near: str, columns: Sequence[MaxComputeColumn], split: Split) -> str:
    """Return 1 for the rows of a class that are all equal and enough for a validation row, else 0."""
    label = next((column for column in columns if column.name == split.column), None)
    if split.by != "stratified" or label is None:
        return "0"
    of_class = f"OVER (PARTITION BY COALESCE({_text(label, True)}, {_NULL}))"
    enough = f"COUNT(*) {of_class} * {float(split.fraction)!r} >= 0.5"
    return f"CASE WHEN MIN({near}) {of_class} = MAX({near}) {of_class} AND {enough} THEN 1 ELSE 0 END"


def _count_validation(
    source: MaxComputeSource, table: str, columns: Sequence[MaxComputeColumn], seed: int, split: Split
) -> ValidationRows:
    """Count the validation rows among the pinned rows."""
    names = [column.name for column in columns]
    listed = ", ".join(quote_name(name) for name in names)
    near, exact, held = (free_name(name, names) for name in (*_HASHES, "held"))
    hashes = f"{_hash(columns, rounded=True)} AS {near}, {_hash(columns)} AS {exact}"
    rows = f"SELECT {listed}, {hashes} FROM {quote_name(table)}"
    mark = _mark_blocks if split.folds else _mark_validation
    marked = mark(rows, listed, names, columns, seed, split)
    counts = source.few_rows(f"SELECT {held} AS place, COUNT(*) AS n FROM ({marked}) a GROUP BY {held}")
    by_place = {int(place): int(count) for place, count in counts}
    if not split.folds:
        return ValidationRows(by_place.get(1, 0))
    is_forward = split.by == "time"
    tests = by_place.pop(split.folds.number + is_forward, 0)
    sizes = [by_place[place] for place in sorted(by_place, reverse=True)]
    return divide_rows(sizes, tests, is_forward=is_forward)


def _digest(source: MaxComputeSource, table: str, columns: Sequence[MaxComputeColumn], order: str) -> str:
    starts = range(1, 33, 32 // _PIECES)
    sums = ", ".join(
        f"CAST(SUM(CAST(CONV(SUBSTR(h, {start}, 8), 16, 10) AS BIGINT)) AS STRING) AS s{start}"
        for start in starts
    )
    query = f"SELECT COUNT(*) AS n, {sums} FROM (SELECT {_hash(columns)} AS h FROM {quote_name(table)}) a"
    (row,) = source.few_rows(query)
    schema = [(column.name, str(column.kind)) for column in columns]
    return hashlib.blake2b(f"({schema!r}, {row!r}, {order})".encode(), digest_size=32).hexdigest()


def _describe_split(split: Split) -> str:
    """Return the split as a text of its fields, without those that it does not set: they are later than digests."""
    fields = {name: getattr(split, name) for name in split.__struct_fields__}
    listed = (f"{name}={value!r}" for name, value in fields.items() if value is not UNSET)
    return f"Split({', '.join(listed)})"


def _hash(columns: Sequence[MaxComputeColumn], *, rounded: bool = False) -> str:
    """Return the hash of a row's text. NULL differs from every text."""
    parts = f", {_SEPARATOR}, ".join(f"COALESCE({_text(column, rounded)}, {_NULL})" for column in columns)
    return f"MD5(CONCAT({parts}, ''))"


def _text(column: MaxComputeColumn, rounded: bool) -> str:
    name = quote_name(column.name)
    match column.odps:
        case odps_types.Array() | odps_types.Map() | odps_types.Struct():
            return f"TO_JSON({name})"
        case odps_types.Binary():
            return f"HEX({name})"
        case odps_types.Float() | odps_types.Double() | odps_types.Decimal() if rounded:
            return f"CAST(CAST({name} AS FLOAT) AS STRING)"
    return f"CAST({name} AS STRING)"
