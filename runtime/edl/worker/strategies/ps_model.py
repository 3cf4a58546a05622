"""Client-side view of a model on parameter servers: requests for its parameters and the interpretation of the answers.

Each dense parameter is on one server; rows are partitioned over all servers, which are called concurrently. The
strategies decide when to pull and push (`edl.worker.strategies.ps_async`, `edl.worker.strategies.ps_sync`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from edl.arrays import Array
from edl.embeddings.model_tables import RowGradients
from edl.embeddings.table import Floats, Ids
from edl.frameworks.adapter import GradientAdapter
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Dense, ModelDefinition, Progress, Version
from edl.ps.partitioning import IdPart, Layout, Placement, join_blocks, split
from edl.spec import RowLimits
from edl.worker.strategies.ps_client import CALL_SECS, ParameterServers, PendingCalls, ServerRequest

LOADED_ROWS = 65_536  # rows of a table in one call

IdsByTable = Mapping[str, Ids]
Weights = Callable[[], Mapping[str, Array] | None]  # initial weights, or None for the model's own


class PulledModel(NamedTuple):
    """Answers of all servers to a pull: their `versions`, the vector of all dense parameters, if it was asked for, and
    rows by table in `blocks`. For `private` see `edl.ps.messages.Pull`.
    """

    versions: tuple[Version, ...]
    dense: Floats | None
    blocks: dict[str, Floats]
    state: dict[str, Floats] | None
    private: bytes

    @property
    def step(self) -> int:
        """Highest step that any server has applied."""
        return max(version.step for version in self.versions)

    @property
    def least(self) -> Version:
        """Lowest version of all servers: the one that all synchronous servers have reached."""
        return min(self.versions, key=lambda version: version.step)


class ModelPush(NamedTuple):
    """Content of one push to all servers.

    The gradients are the mean over `rows`, computed on the `versions` of the servers: `dense` is the vector of all
    dense parameters, `tables` has the rows by table. `state` has the flat buffers, or None if they have not changed.
    """

    dense: Floats
    tables: Mapping[str, RowGradients]
    rate: float
    rows: int
    progress: Progress
    versions: tuple[Version, ...] = ()
    state: Floats | None = None
    ticket: int = 0
    private: bytes = b""


class PushResult(NamedTuple):
    """Answer to a push. `counts` is False if the lease is void; `step` is the highest step of any server; `pulled` has
    what was requested with the push. `version` is the one of server 0; `stale`: the push was confirmed too late.
    """

    counts: bool
    step: int
    version: Version
    pulled: PulledModel | None = None
    stale: bool = False


class ServerParameters:
    """Parameters of the adapter's model on the servers.

    `start` returns the weights to start from; it is called again whenever servers start anew.
    """

    def __init__(
        self,
        adapter: GradientAdapter,
        servers: ParameterServers,
        instance: str,
        incarnation: int,
        start: Weights,
    ) -> None:
        self.adapter = adapter
        self.servers = servers
        self._instance = instance
        self._incarnation = incarnation
        self._start = start
        if (weights := start()) is not None:
            adapter.set_weights(weights)
        self.initial = adapter.get_trainable(), adapter.get_buffers()
        self.definition = _definition(adapter)
        self.tables = tuple(spec.name for spec in self.definition.tables)
        self.state = Layout(self.definition.state)
        self.dense = Layout(self.definition.dense)
        self._placement = Placement(self.definition.dense, 1)
        self._sequence = 0
        self._counted = (-1, 0, 0)  # generation, and the answered pushes and their rows in it
        self._forget_rows()

    # Before training ---------------------------------------------------------------------------------------

    def join(self) -> None:
        """Connect to the servers, define the model on them, and load and open those that are not open yet."""
        self.servers.connect()
        count, generation = len(self.servers), self.servers.generation
        self._placement = Placement(self.definition.dense, count)
        dense, buffers = self.initial
        defining = {}
        for server in range(count):
            arrays = [self._placement.flat(dense, server)]
            arrays += [self.state.flat(buffers)] if server == 0 else []
            defining[server] = ServerRequest(msg.Define(generation, self.definition), arrays)
        answers = self.servers.call(defining, msg.Defined)
        closed = [server for server, (answer, _) in answers.items() if not answer.open]
        if not closed:
            return
        if (weights := self._start()) is not None:
            for name in self.tables:
                self._load(name, weights[f"{name}:ids"], weights[f"{name}:rows"])
        self.servers.call({server: ServerRequest(msg.Open(generation)) for server in closed}, msg.Done)

    def _load(self, table: str, ids: Ids, rows: Floats) -> None:
        """Send a table's initial rows to the servers."""
        for first in range(0, len(ids), LOADED_ROWS):
            some = slice(first, first + LOADED_ROWS)
            parts = split(ids[some], len(self.servers))
            header = msg.Load(self.servers.generation, table)
            loads = {
                server: ServerRequest(header, [part.ids, part.of(rows[some])])
                for server, part in enumerate(parts)
            }
            self.servers.call(loads, msg.Done)

    def _forget_rows(self) -> None:
        """Clear the model's own tables: the rows are on the servers."""
        self.adapter.tables.follow(self.definition.optimizer, RowLimits())

    # Training ----------------------------------------------------------------------------------------------

    def pull(
        self,
        ids: IdsByTable,
        *,
        dense: bool = True,
        state: bool = False,
        at_least: int = 0,
        wait_secs: float = 0.0,
        pin: int = 0,
    ) -> PullCall:
        """Start to pull these rows and, if requested, the dense parameters and the buffers. `pin`: as they were at the
        first pull of a round of evaluation.
        """
        parts = self._split(ids)
        pulls = self._make_pulls(parts, dense, state, at_least, wait_secs, pin)
        requests = {
            server: ServerRequest(header, self._ids_of(parts, server), CALL_SECS + wait_secs)
            for server, header in enumerate(pulls)
        }
        return PullCall(self, self.servers.begin(requests, msg.Pulled), parts)

    def push(
        self,
        push: ModelPush,
        ids: IdsByTable | None = None,
        *,
        at_least: int = 0,
        wait_secs: float = 0.0,
        confirm: bool = False,
    ) -> PushCall:
        """Start a push. With `ids`, these rows and the dense parameters are pulled in the same call, after the push, as
        by `pull`. `confirm` confirms its ticket, if there is one server.

        The previous push must have been answered.
        """
        self._sequence += 1
        if self._counted[0] != self.servers.generation:
            self._counted = (self.servers.generation, 0, 0)
        _, earlier, earlier_rows = self._counted
        gradients = {name: push.tables[name] for name in self.tables}
        pushed = self._split({name: row_gradients.ids for name, row_gradients in gradients.items()})
        parts = self._split(ids) if ids is not None else {}
        pulls = (
            self._make_pulls(parts, True, False, at_least, wait_secs)
            if ids is not None
            else [None] * len(self.servers)
        )
        requests = {}
        for server, pull in enumerate(pulls):
            leads = server == 0
            header = msg.Push(
                self.servers.generation,
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
                earlier=earlier,
                earlier_rows=earlier_rows,
                computed_on=push.versions[server].step if push.versions else -1,
                confirm=confirm,
            )
            arrays: list[Array] = [self._placement.part(push.dense, server)]
            for name, row_gradients in gradients.items():
                part = pushed[name][server]
                arrays += [part.ids, part.of(row_gradients.values)]
            if leads and push.state is not None:
                arrays.append(push.state)
            if ids is not None:
                arrays += self._ids_of(parts, server)
            requests[server] = ServerRequest(header, arrays, CALL_SECS + wait_secs)
        return PushCall(self, self.servers.begin(requests, msg.Pushed), parts, push.rows)

    def unpin(self, pin: int) -> None:
        """Let the servers drop the parameters of a round of evaluation."""
        header = msg.Unpin(self.servers.generation, pin)
        self.servers.call({server: ServerRequest(header) for server in range(len(self.servers))}, msg.Done)

    def count(self, rows: int) -> None:
        """Count an answered push of so many rows."""
        generation, pushes, before = self._counted
        self._counted = generation, pushes + 1, before + rows

    def ask_for_ticket(self, lease: int, version: Version, wait_secs: float) -> PendingCalls[msg.Ticketed]:
        """Start to ask server 0 to admit a gradient that is computed on `version` to the open round."""
        header = msg.Ticket(
            self.servers.generation, self._instance, self._incarnation, lease, version, wait_secs
        )
        return self.servers.begin({0: ServerRequest(header, (), CALL_SECS + wait_secs)}, msg.Ticketed)

    def _split(self, ids: IdsByTable) -> dict[str, list[IdPart]]:
        """Partition the ids by server. Tables that share an array of ids share its partition."""
        by_array: dict[int, list[IdPart]] = {}
        for array in ids.values():
            if id(array) not in by_array:
                by_array[id(array)] = split(array, len(self.servers))
        return {name: by_array[id(array)] for name, array in ids.items()}

    def _make_pulls(
        self,
        parts: Mapping[str, list[IdPart]],
        dense: bool,
        state: bool,
        at_least: int,
        wait_secs: float,
        pin: int = 0,
    ) -> list[msg.Pull]:
        return [
            msg.Pull(
                self.servers.generation,
                tuple(parts),
                dense=dense,
                state=state and server == 0,
                instance=self._instance if state and server == 0 else "",
                at_least=at_least,
                wait_secs=wait_secs,
                pin=pin,
            )
            for server in range(len(self.servers))
        ]

    def _ids_of(self, parts: Mapping[str, list[IdPart]], server: int) -> list[Array]:
        return [of_table[server].ids for of_table in parts.values()]

    def combine_answers(
        self, answers: Mapping[int, tuple[msg.Pulled, list[Array]]], parts: Mapping[str, list[IdPart]]
    ) -> PulledModel:
        """Combine the answers of all servers."""
        dense: list[Floats] = []
        blocks: dict[str, list[Floats]] = {name: [] for name in parts}
        state: dict[str, Floats] | None = None
        for _, (header, answer_arrays) in sorted(answers.items()):
            arrays = iter(answer_arrays)
            if header.dense:
                dense.append(next(arrays))
            for name in parts:
                blocks[name].append(next(arrays))
            if header.state:
                state = self.state.unflat(next(arrays))
        versions = tuple(header.version for _, (header, _) in sorted(answers.items()))
        rows = {name: join_blocks(parts[name], blocks_of_table) for name, blocks_of_table in blocks.items()}
        whole = self._placement.whole(dense) if dense else None
        return PulledModel(versions, whole, rows, state, answers[0][0].private)


class PullCall:
    """Pull in flight."""

    def __init__(
        self, parameters: ServerParameters, calls: PendingCalls[msg.Pulled], parts: Mapping[str, list[IdPart]]
    ) -> None:
        self._parameters = parameters
        self._calls = calls
        self._parts = parts

    def result(self) -> PulledModel:
        return self._parameters.combine_answers(self._calls.results(), self._parts)


class PushCall:
    """Push in flight, optionally with a pull."""

    def __init__(
        self,
        parameters: ServerParameters,
        calls: PendingCalls[msg.Pushed],
        parts: Mapping[str, list[IdPart]],
        rows: int,
    ) -> None:
        self._parameters = parameters
        self._calls = calls
        self._parts = parts
        self._rows = rows

    @property
    def is_answered(self) -> bool:
        return self._calls.is_answered

    def result(self) -> PushResult:
        answers = self._calls.results()
        step, version = max(header.version.step for header, _ in answers.values()), answers[0][0].version
        if any(header.revoked for header, _ in answers.values()):
            return PushResult(False, step, version)
        self._parameters.count(self._rows)
        pulled = {
            server: (header.pulled, arrays)
            for server, (header, arrays) in answers.items()
            if header.pulled is not None
        }
        model = self._parameters.combine_answers(pulled, self._parts) if pulled else None
        return PushResult(True, step, version, model, answers[0][0].stale)


def _definition(adapter: GradientAdapter) -> ModelDefinition:
    """Return the model's definition for the servers. Raises JobError if they don't support its optimizer."""

    def described(values: Mapping[str, Array]) -> tuple[Dense, ...]:
        return tuple(Dense(name, value.shape) for name, value in values.items())

    tables = adapter.tables.tables.values()
    return ModelDefinition(
        adapter.optimizer_elsewhere(),
        described(adapter.get_trainable()),
        tuple(table.spec for table in tables),
        described(adapter.get_buffers()),
        next((table.seed for table in tables), 0),
        adapter.tables.limits,
    )
