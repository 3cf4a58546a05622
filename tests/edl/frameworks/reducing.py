"""Reductions of a test: one adapter computes the slices of all members of a group, one after another."""

from __future__ import annotations

import itertools
from typing import Any

from edl.embeddings.model_tables import Fetched
from edl.frameworks import Minibatches
from edl.frameworks.adapter import Floats
from edl.frameworks.exchange import Slice

NO_ROWS = Fetched({}, {}, [])


class _AbandonedError(Exception):
    """Error of a group that breaks before a step is taken."""


class _OneSlice:
    """Reduction of one slice of a minibatch: its part is added to the parts of the others, and the step is taken, or it
    is kept, and the step is abandoned.
    """

    def __init__(self, piece: Slice, parts: list[Floats] | None, rate: float | None = None) -> None:
        self.loss = 0.0
        self.part: Floats | None = None
        self._slice, self._parts, self._rate = piece, parts, rate

    def begin(self, number: int) -> Slice:
        return self._slice

    def sum(self, part: Floats) -> float | None:
        if self._parts is None:
            self.part = part.copy()
            raise _AbandonedError
        for other in self._parts:
            part += other
        return self._rate

    def end(self, loss: float) -> Slice | None:
        self.loss = loss
        return None


def compute_part(adapter: Any, rows: Minibatches, piece: Slice) -> Floats:
    """The part of a slice, in a step that is not taken."""
    reduction = _OneSlice(piece, None)
    try:
        adapter.reduce_steps(rows, reduction)
    except _AbandonedError:
        assert reduction.part is not None
        return reduction.part
    raise AssertionError("the step was taken")


def take_step(adapter: Any, rows: Minibatches, cuts: tuple[int, ...], rate: float | None = None) -> float:
    """Take a step with the slices between the cuts, added up as a group does; return its loss."""
    pieces = [
        Slice(first, last, (last - first) / cuts[-1], NO_ROWS) for first, last in itertools.pairwise(cuts)
    ]
    parts = [compute_part(adapter, rows, piece) for piece in pieces[1:]]
    reduction = _OneSlice(pieces[0], parts, rate)
    adapter.reduce_steps(rows, reduction)
    return reduction.loss
