"""Placement of a generated program's embeddings: inside the graph or in row tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from edl.embeddings.combiners import Combiner
from edl.embeddings.initializers import Initial
from edl.errors import SemanticError
from edl.spec import Embedding

if TYPE_CHECKING:
    from edl.features import Entry

# Numbers of an embedding from which on its table is kept outside of the graph. In the graph every step moves all of
# them and their slots; outside, the rows of the minibatch, which costs two calls of Python (measured: even near 100,000
# numbers a table, in both frameworks). It is part of what an archive means: the weights of a model made with another
# bound do not fit.
LARGEST_IN_GRAPH = 1 << 17


def is_outside(num_ids: int, dim: int) -> bool:
    return num_ids * dim > LARGEST_IN_GRAPH


def grouped(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the entries in order. Adjacent embeddings of one width and initializer in tables share a table, except
    lists.
    """
    groups: list[list[Entry]] = []
    for (width, _), neighbours in groupby(entries, key=lambda entry: (_shared(entry), initial_of(entry))):
        run = list(neighbours)
        groups += [run] if width else [[entry] for entry in run]
    return groups


def is_table(group: Sequence[Entry]) -> bool:
    """Return True if the group of `grouped` is one of row tables."""
    return bool(_shared(group[0]))


def _shared(entry: Entry) -> int:
    """Return the width of an embedding in a table, or 0 for any other entry."""
    embedded = isinstance(entry.feature, Embedding) and entry.kind == "category"
    outside = embedded and is_outside(entry.num_ids, entry.width)
    return entry.width if outside else 0


def combiner_of(entry: Entry) -> Combiner:
    """Return the combiner of the vectors of a row's ids."""
    feature = entry.feature
    return cast(Combiner, feature.combiner) if isinstance(feature, Embedding) else "sum"


def initial_of(entry: Entry) -> Initial:
    """Return the initializer of the vectors."""
    feature = entry.feature
    return cast(Initial, feature.initial) if isinstance(feature, Embedding) else "uniform"


def refuse_sequence(entry: Entry) -> None:
    """Raise SemanticError for a sequence, which is no part of one matrix."""
    if entry.kind == "sequence":
        raise SemanticError(
            f"{entry.name} is a sequence of ids, and no part of a matrix",
            hint=f'take features["{entry.name}"] in the model, int64 (rows, {entry.width:,}), 0 for none',
        )


def firsts(entries: Sequence[Entry]) -> tuple[tuple[int, ...], int]:
    """Return the first id of each category among those of all, and the total number of ids."""
    first, total = [], 0
    for entry in entries:
        first.append(total)
        total += entry.num_ids
    return tuple(first), total
