"""Contract between a network and a strategy that keeps its parameters elsewhere, on servers.

    start = exchange.begin(0)
    while start is not None:
        the network computes the gradients of the minibatch with the parameters of `start`
        start = exchange.end(the gradients)

An adapter computes the minibatches of a call in order (`GradientAdapter.exchange_steps`). Keras does so in one loop
inside of its graph, which leaves it once for each minibatch: a call of a compiled function from Python costs more than
a step of a small network. So the parameters come as one vector, and the gradients leave as one.
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
