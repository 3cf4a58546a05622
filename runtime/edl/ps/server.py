"""Implementation of a parameter server's calls. `edl.ps.servicer` receives them.

A server has no state until it is arranged; then it has a replica (`edl.ps.replica`), and a new one when it is arranged
for a later generation or epoch. Server 0 leads: it coordinates the rounds of a synchronous job, and lets the others
take their checkpoints with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edl.checkpoints import CheckpointStore
from edl.errors import ClusterError, JobError
from edl.ps import messages as msg
from edl.ps.checkpoint import manifests, shard_file
from edl.ps.checkpoint.content import Shard
from edl.ps.checkpoint.replication import ShardCache, ShardReplication
from edl.ps.checkpoint.snapshot import CheckpointWriter
from edl.ps.counters import Counters
from edl.ps.locks import THREADS, LockWaits
from edl.ps.messages import GenerationError, NotReadyError
from edl.ps.peers import Peers
from edl.ps.replica import Replica, ReplicaSnapshot, ReplicaStart
from edl.ps.round_coordinator import RoundCoordinator
from edl.ps.update_log import UPDATES, UpdateLog, replay, take_over, trim
from edl.ps.wire import Array

Answer = tuple[msgspec.Struct, Sequence[Array]]
_CUT_SECONDS = 60.0  # timeout of another server that copies or writes
POLL = 0.1
REPEAT_SECS = 5.0  # time for workers to repeat pushes that some servers have and others refused


class Running(NamedTuple):
    """Replica with its helpers. `coordinator` is set on server 0 in sync only."""

    replica: Replica
    writer: CheckpointWriter
    coordinator: RoundCoordinator | None


class Server:
    """Parameter server. `token` is the job's, for calls to the others. `store` holds checkpoints that are files.
    `threads` answer calls.
    """

    def __init__(self, token: str, store: CheckpointStore, threads: int = THREADS) -> None:
        self.threads = threads
        self._waits = LockWaits(threads)
        self._token = token
        self._store = store
        self._counters = Counters()
        self._leaving = False
        self._heard = 0.0  # second of the master's last look
        self._retired = threading.Event()
        self._arranging = threading.Lock()
        self._running: Running | None = None
        self._peers = Peers((), token)
        self._memory = ShardCache()
        self._replication = ShardReplication(self._memory, token)
        self.calls: dict[type[msgspec.Struct], Callable[[Any, Sequence[Array]], Answer]] = {
            msg.Arrange: self._arrange,
            msg.Status: self._status,
            msg.Define: self._define,
            msg.Load: self._load,
            msg.Open: self._open,
            msg.Pull: self._pull,
            msg.Unpin: self._unpin,
            msg.Push: self._push,
            msg.Ticket: self._ticket,
            msg.Confirm: self._confirm,
            msg.Flush: self._flush,
            msg.Commit: self._commit,
            msg.Revoke: self._revoke,
            msg.TakeCheckpoint: self._take_checkpoint,
            msg.Seal: self._seal,
            msg.Reopen: self._reopen,
            msg.Retire: self._retire,
            msg.Export: self._export,
            msg.Keep: self._keep,
            msg.Fetch: self._fetch,
        }

    def answer(self, header: msgspec.Struct, arrays: Sequence[Array]) -> Answer:
        """Return the answer to a call, and its arrays.

        Raises NotReadyError, GenerationError or JobError with the meaning given in `edl.ps.channel`.
        """
        return self.calls[type(header)](header, arrays)

    def wait_for_another(self, silence: float, notice: float = 0.0) -> None:
        """Tell the master after `notice` seconds that this server is to end, and wait until it says that another server
        has followed, or has not looked for `silence` seconds: it is gone.
        """
        began = time.monotonic()
        while self._running is not None and time.monotonic() - self._heard < silence:
            self._leaving = time.monotonic() - began >= notice
            if self._retired.wait(POLL):
                return

    def close(self) -> None:
        """Refuse all calls, also waiting ones."""
        with self._arranging:
            self._end()
            self._peers.close()

    # Calls of the master -----------------------------------------------------------------------------------

    def _arrange(self, asked: msg.Arrange, arrays: Sequence[Array]) -> Answer:
        with self._arranging:
            replica = self._running.replica if self._running else None
            now = (replica.arranged.generation, replica.arranged.epoch) if replica else (-1, -1)
            if (asked.generation, asked.epoch) < now:
                raise GenerationError(f"server {asked.index} was arranged for a later generation")
            if replica is None or (asked.generation, asked.epoch) > now:
                self._end()
                self._running = self._begin(asked)
                replica = self._running.replica
            elif asked.addresses != replica.arranged.addresses:
                replica.arranged = msgspec.structs.replace(replica.arranged, addresses=asked.addresses)
                self._meet(asked)
            return msg.Arranged(replica.version, replica.store is not None, replica.is_open), ()

    def _status(self, asked: msg.Status, arrays: Sequence[Array]) -> Answer:
        self._heard = time.monotonic()
        if self._running is None:
            return self._counters.figures(), ()
        replica, writer, coordinator = self._running
        store = replica.store
        if replica.updates is not None and asked.checkpoint:
            trim(self._updates(replica.arranged), replica.arranged.generation, asked.checkpoint)
        figures = msgspec.structs.replace(
            self._counters.figures(),
            index=replica.arranged.index,
            generation=replica.arranged.generation,
            version=replica.version,
            defined=store is not None,
            open=replica.is_open,
            rows={name: len(table) for name, table in store.tables.items()} if store else {},
            evicted=sum(table.evicted for table in store.tables.values()) if store else 0,
            refused=sum(table.refused for table in store.tables.values()) if store else 0,
            bytes=store.nbytes if store else 0,
            stale=coordinator.stale if coordinator else 0,
            written=writer.written_shards(),
            lost=replica.push_log.lost,
            lost_rows=replica.push_log.lost_rows,
            staleness=replica.staleness.figures(),
            logged=replica.updates.size if replica.updates else 0,
            sealed=max(replica.sealed, coordinator.sealed if coordinator else ""),
            leaving=self._leaving,
        )
        return figures, ()

    def _revoke(self, asked: msg.Revoke, arrays: Sequence[Array]) -> Answer:
        replica, _, coordinator = self._at(asked.generation)
        return msg.Revoked((coordinator or replica).revoke(asked.leases)), ()

    def _reopen(self, asked: msg.Reopen, arrays: Sequence[Array]) -> Answer:
        replica, _, coordinator = self._at(asked.generation)
        replica.reopen(asked.checkpoint)
        if coordinator is not None:
            coordinator.reopen(asked.checkpoint)
        return msg.Done(), ()

    def _retire(self, asked: msg.Retire, arrays: Sequence[Array]) -> Answer:
        self._retired.set()
        return msg.Done(), ()

    def _take_checkpoint(self, asked: msg.TakeCheckpoint, arrays: Sequence[Array]) -> Answer:
        if asked.memory and asked.wait:
            raise JobError("a checkpoint in memory is completed by the master")
        replica, writer, coordinator = self._at(asked.generation)
        peers = self._peers
        if asked.memory:
            self._memory.forget(asked.folder, asked.kept)
        write = self._replication.write if asked.memory else self._write
        alone = asked.alone or replica.arranged.index != 0
        unfinished = {} if alone or not asked.last else self._seal_all(asked, replica, coordinator)
        others: list[msg.CheckpointTaken] = []
        with coordinator.pause() if coordinator and not alone else nullcontext():
            order = msgspec.structs.replace(asked, alone=True, wait=False)
            pending = [] if alone else peers.begin(order, _CUT_SECONDS)
            # A worker takes this checkpoint, not the master; or no process continues with it.
            reported = not (asked.wait or asked.last)
            changes = self._store.shared and not asked.memory
            taken = writer.take(asked.folder, write, reported=reported, changes=changes)
            others = [reply.result(msg.CheckpointTaken)[0] for reply in pending]
        if coordinator and any(other.version.step != taken.version.step for other in others):
            raise ClusterError(f"the checkpoint {asked.folder} was started at different versions")
        if not asked.wait:
            furthest_last = sorted(
                (*taken.progress, *(part for other in others for part in other.progress)),
                key=lambda part: part.rows,
            )
            progress = {part.task.attempt: part for part in furthest_last}
            return msg.CheckpointTaken(taken.version, tuple(progress.values()), unfinished=unfinished), ()
        parts = [taken.wait_for_shard(_CUT_SECONDS)]
        if not alone:
            order = msgspec.structs.replace(asked, alone=True)
            parts += [
                shard
                for other in peers.ask(order, msg.CheckpointTaken, _CUT_SECONDS)
                for shard in other.shards
            ]
            manifest = manifests.manifest_of(asked.folder, taken.version, replica.arranged.mode, parts)
            manifests.write_manifest(self._store, asked.folder, manifest)
        return msg.CheckpointTaken(taken.version, taken.progress, tuple(parts)), ()

    # Calls of workers --------------------------------------------------------------------------------------

    def _define(self, asked: msg.Define, arrays: Sequence[Array]) -> Answer:
        return self._of(asked.generation).define(asked.definition, arrays), ()

    def _load(self, asked: msg.Load, arrays: Sequence[Array]) -> Answer:
        self._of(asked.generation).load(asked.table, arrays)
        return msg.Done(), ()

    def _open(self, asked: msg.Open, arrays: Sequence[Array]) -> Answer:
        self._of(asked.generation).begin()
        return msg.Done(), ()

    def _pull(self, asked: msg.Pull, arrays: Sequence[Array]) -> Answer:
        return self._answer_pull(asked, arrays)

    def _unpin(self, asked: msg.Unpin, arrays: Sequence[Array]) -> Answer:
        self._of(asked.generation).unpin(asked.pin)
        return msg.Done(), ()

    def _push(self, asked: msg.Push, arrays: Sequence[Array]) -> Answer:
        replica = self._of(asked.generation)
        following = len(asked.pull.tables) if asked.pull else 0
        mine, ids = arrays[: len(arrays) - following], arrays[len(arrays) - following :]
        with self._counters.push(mine[1 : 1 + 2 * len(asked.tables) : 2]):
            taken = replica.push(asked, mine)
        if asked.confirm and taken and self._leading(asked.generation).confirm(asked.ticket).stale:
            return msg.Pushed(replica.version, stale=True), ()
        if asked.pull is None or not taken:
            return msg.Pushed(replica.version, revoked=not taken), ()
        pulled, pulled_arrays = self._answer_pull(asked.pull, ids)
        return msg.Pushed(replica.version, pulled=pulled), pulled_arrays

    def _answer_pull(self, asked: msg.Pull, ids: Sequence[Array]) -> tuple[msg.Pulled, Sequence[Array]]:
        replica = self._of(asked.generation)
        seconds = asked.wait_secs
        if asked.at_least > replica.version.step:
            replica.require_store()
            with self._waits.place(seconds) as seconds:
                replica.wait(asked.at_least, seconds)
        with self._counters.pull(ids):
            pulled, pulled_arrays = replica.pull(asked, ids)
        crowded = seconds < asked.wait_secs and pulled.version.step < asked.at_least
        return msgspec.structs.replace(pulled, crowded=crowded), pulled_arrays

    def _ticket(self, asked: msg.Ticket, arrays: Sequence[Array]) -> Answer:
        with self._waits.place(asked.wait_secs) as seconds:
            answer = self._leading(asked.generation).ticket(asked, seconds)
        crowded = seconds < asked.wait_secs and answer.outcome == "wait"
        return msgspec.structs.replace(answer, crowded=crowded), ()

    def _confirm(self, asked: msg.Confirm, arrays: Sequence[Array]) -> Answer:
        return self._leading(asked.generation).confirm(asked.ticket), ()

    def _flush(self, asked: msg.Flush, arrays: Sequence[Array]) -> Answer:
        with self._waits.place(asked.wait_secs) as seconds:
            answer = self._leading(asked.generation).flush(seconds)
        return msgspec.structs.replace(answer, crowded=seconds < asked.wait_secs and not answer.idle), ()

    def _export(self, asked: msg.Export, arrays: Sequence[Array]) -> Answer:
        store = self._of(asked.generation).require_store()
        with self._counters.busy():
            table = store.table(asked.table)
            ids, rows, more = table.chunk(asked.after, asked.limit)
            return msg.Exported(more, len(table)), (ids, rows)

    # Calls of server 0 -------------------------------------------------------------------------------------

    def _commit(self, asked: msg.Commit, arrays: Sequence[Array]) -> Answer:
        with self._counters.busy():
            self._of(asked.generation).commit(asked.step, asked.tickets)
        return msg.Done(), ()

    def _seal(self, asked: msg.Seal, arrays: Sequence[Array]) -> Answer:
        return self._of(asked.generation).seal(asked), ()

    def _seal_all(
        self, asked: msg.TakeCheckpoint, replica: Replica, coordinator: RoundCoordinator | None
    ) -> dict[str, int]:
        """Seal all servers with the same pushes. Return instances, with their incarnations, that have died or do not
        answer: some servers have their last push, and others lack it.
        """
        if coordinator is not None:
            coordinator.seal(asked.folder)
        seal = msg.Seal(asked.generation, asked.folder)
        pending = self._peers.begin(seal, _CUT_SECONDS)
        all_sealed = [replica.seal(seal), *(reply.result(msg.Sealed)[0] for reply in pending)]
        if coordinator is not None:  # a round is on all servers
            return {}
        last: dict[str, tuple[int, int]] = {}
        for sealed in all_sealed:
            last |= {name: max(at, last.get(name, at)) for name, at in sealed.applied.items()}
        seal = msgspec.structs.replace(seal, applied=last, wait_secs=REPEAT_SECS)
        pending = self._peers.begin(seal, _CUT_SECONDS)
        all_sealed = [replica.seal(seal), *(reply.result(msg.Sealed)[0] for reply in pending)]
        return {
            name: at[0]
            for name, at in last.items()
            if any(sealed_by_one.lacks(name, at) for sealed_by_one in all_sealed)
        }

    # Calls of adjacent servers -----------------------------------------------------------------------------

    def _keep(self, asked: msg.Keep, arrays: Sequence[Array]) -> Answer:
        self._replication.keep(asked, arrays)
        return msg.Done(), ()

    def _fetch(self, asked: msg.Fetch, arrays: Sequence[Array]) -> Answer:
        return msg.Done(), (self._replication.piece(asked),)

    # Replicas ----------------------------------------------------------------------------------------------

    def _at(self, generation: int) -> Running:
        """Return the running replica with its helpers. Raises GenerationError if it is of another generation."""
        running = self._running
        if running is None:
            raise NotReadyError("the server is not arranged yet")
        running.replica.check(generation)
        return running

    def _of(self, generation: int) -> Replica:
        return self._at(generation).replica

    def _leading(self, generation: int) -> RoundCoordinator:
        coordinator = self._at(generation).coordinator
        if coordinator is None:
            raise JobError("rounds are coordinated by server 0 of a synchronous job")
        return coordinator

    def _begin(self, asked: msg.Arrange) -> Running:
        if asked.mode.kind == "sync" and asked.mode.grads_to_wait < 1:
            raise JobError(f"a round cannot wait for {asked.mode.grads_to_wait} gradients")
        start = self._restore(asked) if asked.restore else None
        self._meet(asked)
        replica = Replica(asked, start)
        if asked.mode.logs_updates:
            self._continue_log(replica)
        leads = asked.index == 0 and asked.mode.kind == "sync"
        return Running(
            replica,
            CheckpointWriter(replica),
            RoundCoordinator(replica, lambda: self._peers) if leads else None,
        )

    def _continue_log(self, replica: Replica) -> None:
        """Bring the replica up to date from the logs of its predecessors, and begin one."""
        asked = replica.arranged
        if not self._store.shared:
            raise JobError(
                "updates are logged in a folder that all instances see, and EDL_CHECKPOINTS names none; "
                "leave train.durable_updates out"
            )
        folder = self._updates(asked)
        take_over(folder, asked.generation, asked.epoch)
        if asked.restore:
            manifest = manifests.read_manifest(self._store.fetch(asked.restore, manifests.MANIFEST))
            since = asked.restore if manifest.at.generation == asked.generation else ""
            replica.replay(replay(folder, asked.generation, since))
        synced = asked.mode.durable_updates == "machine"
        replica.updates = UpdateLog(folder, asked.generation, asked.epoch, synced=synced)

    def _updates(self, arranged: msg.Arrange) -> Path:
        return self._store.folder / UPDATES / f"server-{arranged.index}"

    def _restore(self, asked: msg.Arrange) -> ReplicaStart:
        if asked.manifest is not None:
            return self._replication.restore(asked, asked.manifest)
        index, servers = asked.index, len(asked.addresses)
        manifest = manifests.read_manifest(self._store.fetch(asked.restore, manifests.MANIFEST))
        folder = self._store.fetch(asked.restore, *manifests.files_for(manifest, index, servers))
        return manifests.restore(
            folder, manifest, index, servers, same_leases=manifests.goes_on(asked, manifest)
        )

    def _write(self, name: str, snapshot: ReplicaSnapshot) -> Shard:
        """Write the shard as a file and publish it. Raises OSError or SQLFlowError if that fails."""
        shard = shard_file.write(self._store.folder, name, snapshot)
        self._store.publish(name, shard.file)
        return shard

    def _end(self) -> None:
        """End the present replica; its calls are refused from then on."""
        running, self._running = self._running, None
        if running is not None:
            running.replica.close()
            running.writer.close()
            if running.coordinator is not None:
                running.coordinator.close()

    def _meet(self, asked: msg.Arrange) -> None:
        self._peers.close()
        others = [address for index, address in enumerate(asked.addresses) if index != asked.index]
        self._peers = Peers(others if asked.index == 0 else (), self._token)
