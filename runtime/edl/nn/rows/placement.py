"""Which embeddings of a generated program stand in the graph, and which in row tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from edl.nn.initial import Initial
from edl.nn.rows.combining import Combiner
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
    """The entries in order; neighbouring embeddings of one width that stand outside and start alike share a table, but
    for lists.
    """
    groups: list[list[Entry]] = []
    for (width, _), neighbours in groupby(entries, key=lambda entry: (_shared(entry), initial_of(entry))):
        run = list(neighbours)
        groups += [run] if width else [[entry] for entry in run]
    return groups


def is_table(group: Sequence[Entry]) -> bool:
    """Whether the group of `grouped` is one of row tables."""
    return bool(_shared(group[0]))


def _shared(entry: Entry) -> int:
    """The width of an embedding that stands outside, 0 for anything else."""
    embedded = isinstance(entry.feature, Embedding) and entry.kind == "category"
    outside = embedded and is_outside(entry.num_ids, entry.width)
    return entry.width if outside else 0


def combiner_of(entry: Entry) -> Combiner:
    """How the vectors of a row's ids become one."""
    feature = entry.feature
    return cast(Combiner, feature.combiner) if isinstance(feature, Embedding) else "sum"


def initial_of(entry: Entry) -> Initial:
    """How its vectors start."""
    feature = entry.feature
    return cast(Initial, feature.initial) if isinstance(feature, Embedding) else "uniform"


def firsts(entries: Sequence[Entry]) -> tuple[tuple[int, ...], int]:
    """Where each category's ids begin among those of all, and how many there are."""
    first, total = [], 0
    for entry in entries:
        first.append(total)
        total += entry.num_ids
    return tuple(first), total
