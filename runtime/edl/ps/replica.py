"""Server from an Arrange of a greater generation or epoch to the next: its content, and the application of pushes.

A replica is *defined* when a worker has described the model, and *open* when its initial state is complete. One that
restored a checkpoint is both from the start.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from edl.embeddings.table import Floats, Ids
from edl.errors import ClusterError, JobError
from edl.ps import messages as msg
from edl.ps.checkpoint.content import ModelDefinition, Progress, Version
from edl.ps.checkpoint.pins import Pin, Pins
from edl.ps.counters import StalenessMeter
from edl.ps.gradients import Gradients, RowGradients, mean_gradients
from edl.ps.locks import RWLock
from edl.ps.messages import GenerationError, NotReadyError
from edl.ps.push_log import PushLog, PushLogState
from edl.ps.store import ParameterStore, StoreCut, StoreMark
from edl.ps.update_log import UpdateLog
from edl.ps.wire import Array

LONGEST_WAIT = 60.0  # seconds of a long poll


class ReplicaStart(NamedTuple):
    """State restored from a checkpoint."""

    store: ParameterStore
    push_log: PushLog
    step: int


class ReplicaSnapshot(NamedTuple):
    """Content of a replica at one moment. `first` is the initial state, before any worker pushed one."""

    arranged: msg.Arrange
    version: Version
    definition: ModelDefinition
    store: StoreCut
    push_log: PushLogState
    first: Floats
    states: dict[str, Floats]


class _Staged(NamedTuple):
    """Push that waits for its round."""

    push: msg.Push
    gradients: Gradients
    state: Floats | None


class Replica:
    """State of a server under one arrangement, restored from `start` or empty. Thread-safe.

    `updates`: pushes are written to it, if it is set, before they are applied.
    """

    def __init__(self, arranged: msg.Arrange, start: ReplicaStart | None) -> None:
        self.arranged = arranged
        self.lock = RWLock()
        self.push_log = start.push_log if start else PushLog(np.empty(0, np.float32))
        self.staleness = StalenessMeter(arranged.mode.max_staleness)
        self.updates: UpdateLog | None = None
        self._store = start.store if start else None
        self._step = start.step if start else 0
        self._open = start is not None
        self._closed = False
        self._defining = threading.Lock()
        self._changed = threading.Condition()
        self._pushing: dict[str, threading.Lock] = {}
        self.sealed = ""  # the last checkpoint that nothing is applied after
        # Pushes that a sealed replica applies; see `msg.Seal`.
        self._admitted: Mapping[str, tuple[int, int]] = {}
        self._staged: dict[int, _Staged] = {}
        self._pins, self._pinning = Pins(), threading.Lock()

    # Identity ----------------------------------------------------------------------------------------------

    @property
    def version(self) -> Version:
        return Version(self.arranged.generation, self.arranged.epoch, self._step)

    @property
    def store(self) -> ParameterStore | None:
        return self._store

    @property
    def is_open(self) -> bool:
        return self._open

    def check(self, generation: int) -> None:
        """Raise GenerationError unless calls of this generation are for this replica."""
        if self._closed or generation != self.arranged.generation:
            raise GenerationError(
                f"server {self.arranged.index} is of generation {self.arranged.generation}, "
                f"the call is of generation {generation}"
            )

    def require_store(self) -> ParameterStore:
        """Return the store. Raises NotReadyError if it is not open yet."""
        if self._store is None or not self._open:
            raise NotReadyError(f"server {self.arranged.index} is not open yet")
        return self._store

    def close(self) -> None:
        """Refuse all calls, also waiting ones: another replica follows."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self.updates is not None:
            self.updates.close()

    # Before training ---------------------------------------------------------------------------------------

    def define(self, definition: ModelDefinition, arrays: Sequence[Array]) -> msg.Defined:
        """Define the model, or compare it with the first definition. Raises JobError if they differ."""
        with self._defining:
            if self._store is None:
                first = _floats(arrays[1] if self._leads and len(arrays) > 1 else np.empty(0, np.float32))
                values = _floats(arrays[0]) if arrays else None
                store = ParameterStore(definition, self.arranged.index, len(self.arranged.addresses), values)
                if first.shape != (store.state_layout.size,):
                    raise JobError(f"the state has {store.state_layout.size:,} numbers, not {first.size:,}")
                self.push_log = PushLog(first.copy())
                self._store = store
            elif differing := _differing_parts(self._store.definition, definition):
                raise JobError(f"a worker's model differs from that of the servers in: {differing}")
        return msg.Defined(self.version, self._open)

    def load(self, table: str, arrays: Sequence[Array]) -> None:
        """Store initial rows; ignored once the server is open."""
        with self._defining:
            if self._store is None:
                raise NotReadyError(f"server {self.arranged.index} has no model yet")
            if len(arrays) != 2:
                raise JobError("initial rows are ids and values")
            if not self._open:
                self._store.table(table).put(arrays[0], arrays[1])

    def begin(self) -> None:
        with self._defining:
            if self._store is None:
                raise NotReadyError(f"server {self.arranged.index} has no model yet")
            self._open = True

    # Training ----------------------------------------------------------------------------------------------

    def wait(self, step: int, seconds: float) -> None:
        """Wait until the version has that step, at most so many seconds. Raises GenerationError if the replica was
        closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._step >= step, min(seconds, LONGEST_WAIT))
        self.check(self.arranged.generation)

    def pull(self, pull: msg.Pull, ids: Sequence[Ids]) -> tuple[msg.Pulled, list[Array]]:
        store = self.require_store()
        if len(ids) != len(pull.tables):
            raise JobError(f"a pull of {len(pull.tables)} tables has ids of {len(ids)}")
        if pull.state and not self._leads:
            raise JobError("the state is on server 0")
        pin = self._find_pin(pull.pin, store) if pull.pin else None
        if pin is not None:
            checked = [_ids(wanted_ids) for wanted_ids in ids]
            pinned = pin.read(store, pull.tables, checked, dense=pull.dense, state=pull.state)
            return msg.Pulled(pin.version, pull.dense, pull.state), pinned
        with self.lock.share():
            version = self.version
            arrays: list[Array] = [store.flat.read()] if pull.dense else []
            arrays += [
                store.table(name).read(_ids(wanted_ids))
                for name, wanted_ids in zip(pull.tables, ids, strict=True)
            ]
            private = b""
            if pull.state:
                arrays.append(self.push_log.state())
                private = self.push_log.private(pull.instance)
        return msg.Pulled(version, pull.dense, pull.state, private), arrays

    def unpin(self, number: int) -> None:
        """Drop the parameters of a round of evaluation that is concluded."""
        with self._pinning:
            self._pins.drop(number)

    def _find_pin(self, number: int, store: ParameterStore) -> Pin | None:
        """Return the parameters of a round, those between two pushes at its first pull; None for one that is over."""
        with self._pinning:
            if self._pins.has(number):
                return self._pins.find(number, lambda: self._pin(store))
            with self.lock.exclusive():
                return self._pins.find(number, lambda: self._pin(store))

    def _pin(self, store: ParameterStore) -> Pin:
        cuts = {name: table.cut() for name, table in store.tables.items()}
        return Pin(self.version, store.flat.read(), self.push_log.state(), cuts)

    def push(self, push: msg.Push, arrays: Sequence[Array]) -> bool:
        """Apply the push, or stage it for its round, once. Return False if its lease is void, and nothing was done."""
        store = self.require_store()
        gradients, state = self._split_arrays(push, arrays)
        store.check(gradients)
        with self._pushing.setdefault(push.instance, threading.Lock()):
            if self.push_log.knows(push):
                return True
            if self.arranged.mode.kind == "sync" and push.rows:
                if not push.ticket:
                    raise JobError("a push of a synchronous job needs a ticket")
                self._staged[push.ticket] = _Staged(push, gradients, state)
                return True
            with self.lock.share():
                self.check(push.generation)
                if push.progress is not None and self.is_void(push.progress.task.attempt):
                    return False
                if self.sealed and not self._admits(push):
                    raise NotReadyError(f"server {self.arranged.index} waits for other servers to follow")
                if push.rows and push.computed_on >= 0:
                    factor = self.staleness.weigh(max(0, self._step - push.computed_on))
                    gradients = gradients._replace(rate=push.rate * factor)
                if self.updates is not None:
                    logged = msgspec.structs.replace(push, pull=None, rate=gradients.rate)
                    self.updates.append(logged, arrays)
                if push.rows:
                    store.apply(gradients)
                    self._advance()
                self.push_log.record(push, state)
        if self.sealed:
            with self._changed:
                self._changed.notify_all()
        return True

    def replay(self, pushes: Iterable[tuple[msg.Push, Sequence[Array]]]) -> None:
        """Apply what the update log has beyond the restored checkpoint, before this replica answers.

        A push may not have been applied by the process that logged it: it did not answer, and the worker repeats it.
        """
        store = self.require_store()
        for push, arrays in pushes:
            gradients, state = self._split_arrays(push, arrays)
            store.check(gradients)
            if push.rows:
                store.apply(gradients)
                self._advance()
            self.push_log.record(push, state)
        self.push_log.resume()

    def commit(self, step: int, tickets: Sequence[int]) -> None:
        """Apply the mean of the pushes with these tickets as the round `step`, once."""
        store = self.require_store()
        with self.lock.exclusive():
            if step <= self._step:
                return
            if step != self._step + 1 or not all(ticket in self._staged for ticket in tickets):
                raise ClusterError(
                    f"server {self.arranged.index} cannot commit round {step}: some of its pushes are missing"
                )
            pushes = [self._staged[ticket] for ticket in tickets]
            store.apply(mean_gradients([staged.gradients for staged in pushes]))
            for staged in pushes:
                self.push_log.record(staged.push, staged.state)
            self._staged.clear()  # tickets of the next round are granted after all servers have committed this one
            self._advance()

    def revoke(self, leases: Sequence[int]) -> tuple[Progress, ...]:
        """Void these leases while no push is in progress; return their progress in the parameters."""
        with self.lock.exclusive():
            return self.push_log.revoke(leases)

    def seal(self, seal: msg.Seal) -> msg.Sealed:
        """Seal this replica, between two pushes; return what it has applied. Raises ClusterError if it is sealed for a
        later checkpoint.
        """
        with self.lock.exclusive():
            if seal.checkpoint < self.sealed:
                raise ClusterError(f"the checkpoint {self.sealed} has followed {seal.checkpoint}")
            self.sealed, self._admitted = seal.checkpoint, seal.applied
        with self._changed:
            self._changed.wait_for(self._has_admitted, min(seal.wait_secs, LONGEST_WAIT))
        self.check(seal.generation)
        heard = None if self.arranged.mode.logs_updates else self.push_log.pushed_by()
        return msg.Sealed(self.push_log.last_pushes(), heard)

    def reopen(self, checkpoint: str) -> None:
        with self.lock.exclusive():
            if self.sealed <= checkpoint:
                self.sealed, self._admitted = "", {}

    def _admits(self, push: msg.Push) -> bool:
        return (push.incarnation, push.sequence) <= self._admitted.get(push.instance, (-1, 0))

    def _has_admitted(self) -> bool:
        applied = self.push_log.last_pushes()
        return self._closed or all(
            applied.get(instance, (-1, 0)) >= last for instance, last in self._admitted.items()
        )

    def cut(
        self, name: str = "", *, reported: bool = True, after: StoreMark | None = None
    ) -> ReplicaSnapshot:
        """Return the content between two pushes, for the checkpoint of that name. Its `store` has to be closed.

        See `PushLog.snapshot` for `reported`; only these checkpoints are restored with the update log. `after`: see
        `Store.cut`.
        """
        store = self.require_store()
        room = store.flat.room()  # allocated before the lock stops all calls
        with self.lock.exclusive():
            if self.updates is not None and reported:
                self.updates.begin(name)
            if name == self.sealed:
                self._admitted = {}  # nothing is applied after the last copy
            content = store.cut(room, after)
            push_log, states = self.push_log.snapshot(reported=reported)
            return ReplicaSnapshot(
                self.arranged, self.version, store.definition, content, push_log, self.push_log.first, states
            )

    def is_void(self, lease: int) -> bool:
        """Return True if the lease was revoked, before or after the arrangement."""
        before = lease <= self.arranged.leased and lease not in self.arranged.valid
        return before or self.push_log.is_void(lease)

    @property
    def _leads(self) -> bool:
        return self.arranged.index == 0

    def _advance(self) -> None:
        with self._changed:
            self._step += 1
            self._changed.notify_all()

    def _split_arrays(self, push: msg.Push, arrays: Sequence[Array]) -> tuple[Gradients, Floats | None]:
        """Return the gradients and the state from the arrays of a push. Raises JobError if they have another form."""
        if len(arrays) != 1 + 2 * len(push.tables) + push.state:
            raise JobError(f"a push of {len(push.tables)} tables has {len(arrays)} arrays")
        remaining = iter(arrays[1:])
        tables = {name: RowGradients(next(remaining), next(remaining)) for name in push.tables}
        # A copy, so that the payload can be freed.
        state = np.array(_floats(next(remaining))) if push.state else None
        if state is not None and state.shape != self.push_log.first.shape:
            raise JobError(f"the state has {self.push_log.first.size:,} numbers, not {state.size:,}")
        return Gradients(arrays[0], tables, push.rate, push.rows), state


def _differing_parts(ours: ModelDefinition, theirs: ModelDefinition) -> str:
    """Return the names of the parts that differ between two definitions."""
    fields = ("optimizer", "dense", "tables", "state", "seed", "limits")
    return ", ".join(name for name in fields if getattr(ours, name) != getattr(theirs, name))


def _floats(array: Array) -> Floats:
    if array.dtype != np.float32 or array.ndim != 1:
        raise JobError(f"flat parameters are float32, not {array.dtype} of {array.shape}")
    return array


def _ids(array: Array) -> Ids:
    if array.dtype != np.int64 or array.ndim != 1:
        raise JobError(f"ids are int64, not {array.dtype} of {array.shape}")
    return array
