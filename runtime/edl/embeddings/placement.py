"""Placement of a generated program's embeddings: inside the graph or in row tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from edl.embeddings.combiners import Combiner
from edl.embeddings.initializers import Initial
from edl.errors import SemanticError

if TYPE_CHECKING:
    from edl.features import Entry

# Numbers of an embedding from which on its table is kept outside of the graph. In the graph every step moves all of
# them and their slots; outside, the rows of the minibatch, which costs two calls of Python (measured: even near 100,000
# numbers a table, in both frameworks). It is part of what an archive means: the weights of a model made with another
# bound do not fit.
LARGEST_IN_GRAPH = 1 << 17


def is_outside(num_ids: int, dim: int) -> bool:
    return num_ids * dim > LARGEST_IN_GRAPH


def group_entries(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the entries in order, those together that one layer looks up, or several layers in one table.

    They are embeddings of a shared table, and adjacent ones of one width and initializer outside of the graph, except
    lists.
    """
    return [list(run) for _, run in groupby(entries, key=_together)]


def is_table(group: Sequence[Entry]) -> bool:
    """Return True if the group of `group_entries` is one of row tables that one layer looks up."""
    return bool(_row_table_width(group[0]))


def _together(entry: Entry) -> tuple[object, ...]:
    if width := _row_table_width(entry):
        return width, initial_of(entry)
    return ("table", table_of(entry)) if table_of(entry) else (entry.name,)


def _row_table_width(entry: Entry) -> int:
    """Return the width of an embedding in a row table, or 0 for lists and any other entry."""
    outside = entry.feature.dim and entry.kind == "category" and is_outside(entry.num_ids, entry.width)
    return entry.width if outside else 0


def table_of(entry: Entry) -> int:
    """Return the number of the table that the entry shares with others, or 0."""
    return entry.feature.table


def owners(entries: Sequence[Entry]) -> dict[str, str]:
    """Map names of entries to the first entry that shares their table; it may be the entry itself."""
    first: dict[object, str] = {}
    return {entry.name: first.setdefault(table_of(entry) or entry.name, entry.name) for entry in entries}


def combiner_of(entry: Entry) -> Combiner:
    """Return the combiner of the vectors of a row's ids."""
    return cast(Combiner, entry.feature.combiner)


def initial_of(entry: Entry) -> Initial:
    """Return the initializer of the vectors."""
    return cast(Initial, entry.feature.initial)


def refuse_sequence(entry: Entry) -> None:
    """Raise SemanticError for a sequence, which is no part of one matrix."""
    if entry.kind == "sequence":
        raise SemanticError(
            f"{entry.name} is a sequence of ids, and no part of a matrix",
            hint=f'take features["{entry.name}"] in the model, int64 (rows, {entry.width:,}), 0 for none',
        )


def firsts(entries: Sequence[Entry]) -> tuple[tuple[int, ...], int]:
    """Return the first id of each category among the ids of all categories, and the total number of ids.

    Categories that share a table have the same first id.
    """
    first: dict[str, int] = {}
    total, owner = 0, owners(entries)
    for entry in entries:
        if owner[entry.name] == entry.name:
            first[entry.name] = total
            total += entry.num_ids
    return tuple(first[owner[entry.name]] for entry in entries), total
