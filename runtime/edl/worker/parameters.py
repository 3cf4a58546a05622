"""A model whose parameters and rows are on servers: what is said to the servers about it, and what they answer.

Dense parameters are on one server each; rows are spread over all, and asked of all at once. Nothing here decides when
to pull or push: that is a strategy's business (`edl.worker.asynchronous`, `edl.worker.synchronous`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from edl.nn.adapter import Adapter
from edl.nn.rows.table import Floats, Ids
from edl.nn.structure import Array
from edl.ps import messages as say
from edl.ps.place import Layout, Part, Placement, joined, split
from edl.worker.servers import CALL_SECS, Calls, ParameterServers, Request

LOADED_ROWS = 65_536  # of a table, in one call

IdsByTable = Mapping[str, Ids]
Weights = Callable[[], Mapping[str, Array] | None]  # to start from; None: the model's own


class Pulled(NamedTuple):
    """What the servers answered. versions: of each. blocks: rows by table. private: see `edl.ps.messages.Pull`."""

    versions: tuple[say.Version, ...]
    dense: dict[str, Floats]
    blocks: dict[str, Floats]
    state: dict[str, Floats] | None
    private: bytes

    @property
    def step(self) -> int:
        """Steps that were taken, as far as any server knows."""
        return max(version.step for version in self.versions)

    @property
    def least(self) -> say.Version:
        """Of synchronous servers, which come to a version one after another: what all have come to."""
        return min(self.versions, key=lambda version: version.step)


class Push(NamedTuple):
    """One push, to all servers. gradients: as an adapter gives them, the mean over `rows`. state: flat, None where it
    did not move."""

    gradients: Mapping[str, Any]
    rate: float
    rows: int
    progress: say.Progress
    state: Floats | None = None
    ticket: int = 0
    private: bytes = b""


class Pushed(NamedTuple):
    """counts: the lease is not void. step: that was taken, as far as any server knows. pulled: what was asked for."""

    counts: bool
    step: int
    pulled: Pulled | None = None


class Parameters:
    """Of the adapter's model. start: weights that training starts from, read again whenever servers start anew."""

    def __init__(
        self, adapter: Adapter, servers: ParameterServers, instance: str, incarnation: int, start: Weights
    ) -> None:
        self._adapter = adapter
        self._servers = servers
        self._instance = instance
        self._incarnation = incarnation
        self._start = start
        if (weights := start()) is not None:
            adapter.set_weights(weights)
        self.initial = adapter.get_trainable(), adapter.get_buffers()
        self.definition = _definition(adapter)
        self.tables = tuple(spec.name for spec in self.definition.tables)
        self.state = Layout(self.definition.state)
        self._placement = Placement(self.definition.dense, 1)
        self._sequence = 0
        self._forget_rows()

    # Before training ---------------------------------------------------------------------------------------

    def join(self) -> None:
        """Find the servers, and see to it that they know the model and are open."""
        self._servers.connect()
        count, generation = len(self._servers), self._servers.generation
        self._placement = Placement(self.definition.dense, count)
        dense, buffers = self.initial
        defining = {}
        for server in range(count):
            arrays = [self._placement.flat(dense, server)]
            arrays += [self.state.flat(buffers)] if server == 0 else []
            defining[server] = Request(say.Define(generation, self.definition), arrays)
        answers = self._servers.call(defining, say.Defined)
        closed = [server for server, (answer, _) in answers.items() if not answer.open]
        if not closed:
            return
        if (weights := self._start()) is not None:
            for name in self.tables:
                self._load(name, weights[f"{name}:ids"], weights[f"{name}:rows"])
        self._servers.call({server: Request(say.Open(generation)) for server in closed}, say.Done)

    def _load(self, table: str, ids: Ids, rows: Floats) -> None:
        """Give the servers a table's rows to start from."""
        for first in range(0, len(ids), LOADED_ROWS):
            some = slice(first, first + LOADED_ROWS)
            parts = split(ids[some], len(self._servers))
            header = say.Load(self._servers.generation, table)
            loads = {
                server: Request(header, [part.ids, part.of(rows[some])]) for server, part in enumerate(parts)
            }
            self._servers.call(loads, say.Done)

    def _forget_rows(self) -> None:
        """The rows are on the servers, not in the model's own tables."""
        self._adapter.tables.follow(self.definition.optimizer)

    # Training ----------------------------------------------------------------------------------------------

    def pull(
        self,
        ids: IdsByTable,
        *,
        dense: bool = True,
        state: bool = False,
        at_least: int = 0,
        wait_secs: float = 0.0,
    ) -> PullCall:
        """Begin to pull these rows and, if they are wanted, the dense parameters and the state."""
        parts = self._split(ids)
        wanted = self._wanted(parts, dense, state, at_least, wait_secs)
        requests = {
            server: Request(header, self._ids_of(parts, server), CALL_SECS + wait_secs)
            for server, header in enumerate(wanted)
        }
        return PullCall(self, self._servers.begin(requests, say.Pulled), parts)

    def push(self, push: Push, ids: IdsByTable | None = None) -> PushCall:
        """Begin to push. ids: of rows that are pulled in the same call, with the dense parameters, after the push.

        The push before must have been answered.
        """
        self._sequence += 1
        gradients = {name: push.gradients[name] for name in self.tables}
        pushed = self._split({name: given.ids for name, given in gradients.items()})
        parts = self._split(ids) if ids is not None else {}
        wanted = self._wanted(parts, True, False, 0, 0.0) if ids is not None else [None] * len(self._servers)
        requests = {}
        for server, pull in enumerate(wanted):
            leads = server == 0
            header = say.Push(
                self._servers.generation,
                self._instance,
                self._incarnation,
                self._sequence,
                push.rate,
                push.rows,
                self.tables,
                state=leads and push.state is not None,
                ticket=push.ticket,
                progress=push.progress,
                private=push.private if leads else b"",
                pull=pull,
            )
            arrays: list[Array] = [self._placement.flat(push.gradients, server)]
            for name, given in gradients.items():
                part = pushed[name][server]
                arrays += [part.ids, part.of(np.asarray(given.values))]
            if leads and push.state is not None:
                arrays.append(push.state)
            if ids is not None:
                arrays += self._ids_of(parts, server)
            requests[server] = Request(header, arrays)
        return PushCall(self, self._servers.begin(requests, say.Pushed), parts)

    def ticket(self, lease: int, version: say.Version, wait_secs: float) -> say.Ticketed:
        """Ask server 0 whether a gradient that was computed on `version` may join the round."""
        header = say.Ticket(
            self._servers.generation, self._instance, self._incarnation, lease, version, wait_secs
        )
        return self._servers.ask(header, say.Ticketed, CALL_SECS + wait_secs)

    def _split(self, ids: IdsByTable) -> dict[str, list[Part]]:
        """The ids of each server; tables that are read alike have the same array, which is split once."""
        found: dict[int, list[Part]] = {}
        for array in ids.values():
            if id(array) not in found:
                found[id(array)] = split(array, len(self._servers))
        return {name: found[id(array)] for name, array in ids.items()}

    def _wanted(
        self, parts: Mapping[str, list[Part]], dense: bool, state: bool, at_least: int, wait_secs: float
    ) -> list[say.Pull]:
        return [
            say.Pull(
                self._servers.generation,
                tuple(parts),
                dense=dense,
                state=state and server == 0,
                instance=self._instance if state and server == 0 else "",
                at_least=at_least,
                wait_secs=wait_secs,
            )
            for server in range(len(self._servers))
        ]

    def _ids_of(self, parts: Mapping[str, list[Part]], server: int) -> list[Array]:
        return [of_table[server].ids for of_table in parts.values()]

    def pulled(
        self, answers: Mapping[int, tuple[say.Pulled, list[Array]]], parts: Mapping[str, list[Part]]
    ) -> Pulled:
        """What the answers of all servers come to."""
        dense: dict[str, Floats] = {}
        blocks: dict[str, list[Floats]] = {name: [] for name in parts}
        state: dict[str, Floats] | None = None
        for server, (header, given) in sorted(answers.items()):
            arrays = iter(given)
            if header.dense:
                dense |= self._placement.unflat(next(arrays), server)
            for name in parts:
                blocks[name].append(next(arrays))
            if header.state:
                state = self.state.unflat(next(arrays))
        versions = tuple(header.version for _, (header, _) in sorted(answers.items()))
        rows = {name: joined(parts[name], found) for name, found in blocks.items()}
        return Pulled(versions, dense, rows, state, answers[0][0].private)


class PullCall:
    """Parameters that are being pulled."""

    def __init__(
        self, parameters: Parameters, calls: Calls[say.Pulled], parts: Mapping[str, list[Part]]
    ) -> None:
        self._parameters = parameters
        self._calls = calls
        self._parts = parts

    def result(self) -> Pulled:
        return self._parameters.pulled(self._calls.results(), self._parts)


class PushCall:
    """Gradients that are being pushed, and perhaps parameters that are pulled."""

    def __init__(
        self, parameters: Parameters, calls: Calls[say.Pushed], parts: Mapping[str, list[Part]]
    ) -> None:
        self._parameters = parameters
        self._calls = calls
        self._parts = parts

    @property
    def answered(self) -> bool:
        return self._calls.answered

    def result(self) -> Pushed:
        answers = self._calls.results()
        step = max(header.version.step for header, _ in answers.values())
        if any(header.revoked for header, _ in answers.values()):
            return Pushed(False, step)
        pulled = {
            server: (header.pulled, arrays)
            for server, (header, arrays) in answers.items()
            if header.pulled is not None
        }
        return Pushed(True, step, self._parameters.pulled(pulled, self._parts) if pulled else None)


def _definition(adapter: Adapter) -> say.Definition:
    """What the model is. JobError: servers cannot follow its optimizer."""

    def described(values: Mapping[str, Array]) -> tuple[say.Dense, ...]:
        return tuple(say.Dense(name, value.shape) for name, value in values.items())

    tables = adapter.tables.tables.values()
    return say.Definition(
        adapter.optimizer_elsewhere(),
        described(adapter.get_trainable()),
        tuple(table.spec for table in tables),
        described(adapter.get_buffers()),
        next((table.seed for table in tables), 0),
    )
