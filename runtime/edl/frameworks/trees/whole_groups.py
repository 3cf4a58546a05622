"""Rows of a ranking for each of several workers: a group of rows is on one worker only.

Workers read ranges of the table, in which the rows of a group may be anywhere. So they exchange their rows once, one
worker after the other, and each keeps the rows of its groups: an equal part of the groups, in the order of their
numbers. Beside its own rows, a worker holds one other's rows meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import JobError


class Ranked(NamedTuple):
    """Rows of a ranking. labels: relevance and number of the group, int64 (n, 2)."""

    matrix: Array
    labels: Array
    weights: Array | None

    def only(self, chosen: Array) -> Ranked:
        """Return some of the rows, by a mask."""
        weights = None if self.weights is None else self.weights[chosen]
        return Ranked(self.matrix[chosen], self.labels[chosen], weights)


def exchange_groups(rows: Ranked, workers: Group) -> Ranked:
    """Return the rows of this worker's groups, in the order of the table, from the rows that each worker has read.

    Raises JobError if there are fewer groups than workers, GroupError if a member is lost.
    """
    group_numbers = _group_numbers(rows.labels[:, 1], workers)
    if len(group_numbers) < workers.size:
        raise JobError(
            f"the training rows have {len(group_numbers)} groups for {workers.size} workers",
            hint="use as many workers as there are groups, or fewer",
        )
    groups_here = group_numbers[
        np.arange(len(group_numbers)) * workers.size // len(group_numbers) == workers.rank
    ]
    sizes = workers.gather(np.array([len(rows.labels)]))[:, 0]
    parts = []
    for source, size in enumerate(sizes.tolist()):
        weights = None if rows.weights is None else _exchange_array(rows.weights, size, source, workers)
        read = Ranked(
            _exchange_array(rows.matrix, size, source, workers),
            _exchange_array(rows.labels, size, source, workers),
            weights,
        )
        parts.append(read.only(np.isin(read.labels[:, 1], groups_here)))
    weighed = [part.weights for part in parts if part.weights is not None]
    return Ranked(
        np.concatenate([part.matrix for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(weighed) if weighed else None,
    )


def _group_numbers(group_column: Array, workers: Group) -> Array:
    """Return the numbers of the groups of all members, sorted."""
    numbers = np.unique(group_column)
    sent = (
        workers.broadcast(numbers.tobytes() if source == workers.rank else None, source)
        for source in range(workers.size)
    )
    return np.unique(np.concatenate([np.frombuffer(data, numbers.dtype) for data in sent]))


def _exchange_array(array_here: Array, size: int, source: int, workers: Group) -> Array:
    """Return the array of a member, `size` rows of the form of this worker's."""
    is_own = source == workers.rank
    array = (
        np.ascontiguousarray(array_here)
        if is_own
        else np.empty((size, *array_here.shape[1:]), array_here.dtype)
    )
    if size:
        workers.fill(array, source)
    return array
