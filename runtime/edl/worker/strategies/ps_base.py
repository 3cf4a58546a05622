"""Base of the strategies with the parameters on parameter servers.

    asynchronous   each push is a step, independent of the other workers
    local_steps    some steps on local copies, their gradients together as one push
    synchronous    a step is the mean of gradients that were computed on the same parameters

The servers may be replaced, or rolled back to a checkpoint, at any moment. Calls are then repeated, or fail with
`VoidError`; the next call of the strategy finds the servers again (`_ready`) and continues with their parameters.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np

from edl.checkpoints import CheckpointStore, GoneError
from edl.embeddings.model_tables import Fetched, Need, RowGradients
from edl.embeddings.table import Ids
from edl.frameworks.adapter import Floats, Minibatches
from edl.frameworks.exchange import StepStart
from edl.models.weights import Weights
from edl.ps import messages as msg
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Progress
from edl.tasks.task import Report, Round
from edl.worker.learning_rate import Rates
from edl.worker.strategies.ps_export import export_parameters, with_own
from edl.worker.strategies.ps_model import PulledModel, ServerParameters

CHECKPOINT_SECS = 600.0  # timeout for writing the weights of the best epoch
KEPT = 3  # checkpoints of best epochs to keep: after a rollback, an earlier one may be the best again


class ServerStrategy(ABC):
    """Strategy on parameter servers. `store` takes the weights of the best epochs."""

    group = 1
    part = 0, 1
    measures_between_steps = False
    _pins_rounds = (
        False  # True if the servers go on while a round is measured, which needs their parameters of then
    )

    def __init__(self, parameters: ServerParameters, store: CheckpointStore) -> None:
        self.step = 0
        self._adapter, self._servers = parameters.adapter, parameters.servers
        self._parameters = parameters
        self._store = store
        self._random = self._adapter.get_random()
        self._pushed_state: Floats | None = None

    @abstractmethod
    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats: ...

    def weight_of(self, weight: float) -> float:
        return weight

    @abstractmethod
    def mark(self) -> int: ...

    @abstractmethod
    def is_durable(self, mark: int) -> bool: ...

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def _forget(self) -> None:
        """Drop the push in flight after a rollback."""

    # Scoring and endings ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def scoring(self, round_: Round | None = None) -> Iterator[None]:
        """Load the parameters and the mean of the workers' buffers; rows are pulled as they are needed. All are the
        present ones, or belong to the round if it is pinned.
        """
        self._ready()
        buffers = self._adapter.get_buffers()
        tables = self._adapter.tables
        pin = round_.number if round_ is not None and self._pins_rounds else 0
        self._take(self._parameters.pull({}, state=True, pin=pin).result())
        tables.source = _ServerRows(self._parameters, pin)
        try:
            yield
        finally:
            tables.source = tables
            self._adapter.set_buffers(buffers)

    def keep(self, epoch: int) -> None:
        self._ready()
        generation = self._servers.generation
        name = f"{manifests.BEST}{epoch:06d}-{generation:04d}"
        self._servers.ask(
            msg.TakeCheckpoint(generation, name, wait=True), msg.CheckpointTaken, CHECKPOINT_SECS
        )
        for old in self._list_best_checkpoints()[:-KEPT]:
            self._store.remove(old)

    def release(self, round_: Round) -> None:
        if self._pins_rounds and round_.measured_on:
            self._ready()
            self._parameters.unpin(round_.number)

    def remember(self, epoch: int) -> None:
        """Keep nothing: the servers have the weights."""
        return

    def postpone(self, epoch: int) -> None:
        raise RuntimeError("the parameters on servers go on while a round is measured, in any case")

    def drop(self, epoch: int) -> None:
        """Drop nothing, since nothing was postponed."""
        return

    def weights(self, epoch: int) -> Weights:
        with self.scoring():
            if not epoch:
                return export_parameters(self._parameters)
            of_epoch = [
                name
                for name in self._list_best_checkpoints()
                if name.startswith(f"{manifests.BEST}{epoch:06d}-")
            ]
            if not of_epoch:
                raise GoneError(f"the weights of epoch {epoch} are gone")
            return with_own(self._adapter, manifests.stream_weights(self._store.fetch(of_epoch[-1])))

    def _list_best_checkpoints(self) -> list[str]:
        """Return the names of the best epochs' checkpoints, oldest first."""
        names = [name for name in self._store.names(manifests.MANIFEST) if name.startswith(manifests.BEST)]
        return sorted(names, key=lambda name: name.rpartition("-")[::-1])  # by generation

    # Steps --------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        """Connect to the servers, first and after each rollback, and take their parameters."""
        if self._servers.connected:
            return
        self._forget()
        self.step = 0
        self._parameters.join()
        pulled = self._parameters.pull({}, state=True).result()
        self._take(pulled)
        self._pushed_state = None
        if pulled.private:
            self._adapter.set_random(pulled.private)
        elif not pulled.step:
            self._adapter.set_random(self._random)
        self._servers.connected = True

    def _take(self, pulled: PulledModel) -> None:
        """Load pulled parameters into the model."""
        self._learn(pulled)
        if pulled.dense is not None:
            self._adapter.set_trainable(self._parameters.dense.unflat(pulled.dense))
        if pulled.state is not None:
            self._adapter.set_buffers(pulled.state)

    def _learn(self, pulled: PulledModel) -> None:
        self.step = max(self.step, pulled.step)

    def _rate(self, step: int, rates: Rates | None) -> float:
        """Return the learning rate of the step after `step` steps of all workers."""
        return float(rates(step, 1)[0]) if rates is not None else self._adapter.learning_rate(step)

    def _changed_state(self, buffers: Floats) -> Floats | None:
        """Return the model's buffers, or None if they have not changed since the last push."""
        if not buffers.size:
            return None
        if self._pushed_state is not None and np.array_equal(buffers, self._pushed_state):
            return None
        self._pushed_state = buffers
        return buffers


class _ServerRows:
    """Reader of rows from the servers, the present ones or the pinned ones of a round."""

    def __init__(self, parameters: ServerParameters, pin: int) -> None:
        self._parameters = parameters
        self._pin = pin

    def rows(self, ids: Mapping[str, Ids], *, train: bool) -> dict[str, Floats]:
        return self._parameters.pull(ids, dense=False, pin=self._pin).result().blocks


def start_step(pulled: PulledModel, need: Need) -> StepStart:
    """Return a minibatch's pulled parameters."""
    return StepStart(pulled.dense, Fetched(need.ids, pulled.blocks, need.places))


def name_rows(need: Need, gradients: Mapping[str, Floats]) -> dict[str, RowGradients]:
    """Return the gradients of the rows that a minibatch has read, with their ids."""
    return {name: RowGradients(ids, gradients[name]) for name, ids in need.ids.items()}


def progress(done: Report) -> Progress:
    return Progress(done.task, done.rows, done.steps, done.loss, done.weight)
