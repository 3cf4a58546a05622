"""Contracts between a network and a strategy that takes its steps together with other processes.

    Exchange     the parameters are on servers: they come before a minibatch, its gradients leave after it
    Reduction    the members of a group have slices of a minibatch, and sum what they find

An adapter computes the minibatches of a call in order, and calls the strategy between them. Keras does so in one loop
inside of its graph, which it leaves for these calls alone: a call of a compiled function from Python costs more than a
step of a small network. So parameters and gradients are vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from edl.embeddings.model_tables import Fetched
from edl.embeddings.table import Floats


class StepStart(NamedTuple):
    """Parameters of a minibatch: the trainable ones in the order of `get_trainable`, float32 (size,), or None to keep
    the model's own; and its table rows.

    `steps_before`: the adapter's optimizer takes a step with the previous minibatch's gradients first, without its
    rows, at the learning rate `rate` (None leaves it unchanged). `adds_own`: what such steps have changed since the
    last `dense` is added to this one.
    """

    dense: Floats | None
    fetched: Fetched
    steps_before: bool = False
    rate: float | None = None
    adds_own: bool = False


class StepGradients(NamedTuple):
    """Mean loss of a minibatch and its gradients, clipped as the optimizer clips them.

    `dense` has the order of `StepStart.dense`; `rows` are the gradients of the fetched rows by table, (u, dim). The
    model's `buffers` after the step are one vector, in the order of `get_buffers`; `random` returns what `get_random`
    does. The arrays may be kept.
    """

    loss: float
    dense: Floats
    rows: Mapping[str, Floats]
    buffers: Floats
    random: Callable[[], bytes]


class Exchange(Protocol):
    """Strategy's side of the minibatches of one call."""

    def begin(self, number: int) -> StepStart:
        """Return the parameters of a minibatch, by its number in the call: the first of a loop."""
        ...

    def end(self, gradients: StepGradients) -> StepStart | None:
        """Take the gradients of a minibatch; return the parameters of the following one, or None to end the loop."""
        ...


class Slice(NamedTuple):
    """Slice of a minibatch: its rows [first, last) of the call, perhaps none, and their share of the minibatch.

    `fetched` has the table rows that the whole minibatch reads, with the positions of the slice's rows.
    """

    first: int
    last: int
    share: float
    fetched: Fetched


class Reduction(Protocol):
    """Strategy's side of steps that the members of a group take together."""

    def begin(self, number: int) -> Slice:
        """Return this member's slice of a minibatch, by its number in the call: the first of a loop."""
        ...

    def sum(self, part: Floats) -> float | None:
        """Add up the parts of all members in place, float32 (size,). Return the learning rate of the step; None leaves
        it unchanged.

        A part has unclipped gradients, buffers and the loss of the slice, each times its share.
        """
        ...

    def end(self, loss: float) -> Slice | None:
        """Count a step with this mean loss; return the slice of the following minibatch, or None to end the loop."""
        ...
