"""Client of the parameter servers: the master's calls to them, manifests, and removal of old checkpoints."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from edl.checkpoints import DAMAGED, CheckpointStore
from edl.errors import SQLFlowError
from edl.master.ps.checkpoint_coordinator import PendingCheckpoint
from edl.master.ps.ps_manager import Servers
from edl.master.ps.server_slot import Answer, Header, ServerCall
from edl.master.state_loop import StateLoop
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Done,
    Figures,
    Reopen,
    Retire,
    Revoke,
    Revoked,
    Status,
    TakeCheckpoint,
)
from edl.ps.update_log import UPDATES
from edl.reachability import Peer
from edl.rpc.channel import AwayError

RETIRE_SECS = 5.0  # timeout of the last call to a server that was replaced

_ANSWERS: dict[type, type[Answer]] = {
    Arrange: Arranged,
    Status: Figures,
    Revoke: Revoked,
    TakeCheckpoint: CheckpointTaken,
    Reopen: Done,
    Retire: Done,
}


class PsClient:
    """Makes the calls that `servers` requests. Everything except disk access runs in the event loop."""

    def __init__(
        self, servers: Servers, state_loop: StateLoop, mode: Mode, store: CheckpointStore, token: str
    ) -> None:
        self._servers = servers
        self._state_loop = state_loop
        self._mode = mode
        self._store = store
        self._token = token
        self._channels: dict[str, ServerChannel] = {}  # by name of the slot
        self._peers: dict[str, Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._removing = asyncio.Lock()

    async def start(self) -> None:
        """Remove checkpoints of earlier masters that the durable state does not refer to."""
        await self._remove_others()

    def tick(self, now: float) -> None:
        """Begin the calls that are due."""
        self._servers.tick(now)
        for call in self._servers.calls(now):
            if isinstance(call.header, TakeCheckpoint):  # remove incomplete ones before it
                self._spawn(self._remove_others())
            self._spawn(self._call(call))
        if taking := self._servers.checkpoints.to_complete():
            self._spawn(self._complete(taking))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels.values():
            channel.close()

    async def tidy(self) -> None:
        """Remove incomplete checkpoints, once this client is closed and no server writes any more."""
        self._servers.checkpoints.drop(self._state_loop.now())
        await self._remove_others()

    # Calls ----------------------------------------------------------------------------------------------------

    async def _call(self, call: ServerCall) -> None:
        try:
            # The epochs and checkpoints that the call names must be durable first.
            if isinstance(call.header, Arrange | TakeCheckpoint):
                await self._state_loop.write()
            answer = await self._ask(self._channel(call), call.header, call.secs)
        except SQLFlowError as error:
            if isinstance(error, AwayError):
                self._peer(call).on_failure()
            self._servers.on_unanswered(call, error, self._state_loop.now())
        else:
            self._peer(call).on_answer()
            self._servers.on_answer(call, answer, self._state_loop.now())
        self._state_loop.notify()
        self.tick(self._state_loop.now())

    async def _ask(self, channel: ServerChannel, header: Header | Retire, secs: float) -> Answer:
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        pending = channel.begin(header, (), secs)

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(done.set)

        pending.then(wake)
        try:
            await done.wait()
        finally:
            pending.cancel()
        return pending.result(_ANSWERS[type(header)])[0]

    def _peer(self, call: ServerCall) -> Peer:
        """Return the server of a slot as a peer, at the address of the call."""
        if call.home not in self._peers:
            self._peers[call.home] = Peer(call.home, "", tell=self._state_loop.tasks.log)
        peer = self._peers[call.home]
        peer.address = call.address
        return peer

    def _channel(self, call: ServerCall) -> ServerChannel:
        """Return the channel to the server of a slot, and close that to its predecessor."""
        channel = self._channels.get(call.home)
        if channel is None or channel.address != call.address:
            if channel is not None:
                channel.close()
            channel = self._channels[call.home] = ServerChannel(call.address, self._token)
        return channel

    # Checkpoints ----------------------------------------------------------------------------------------------

    async def _complete(self, taking: PendingCheckpoint) -> None:
        """Write the manifest, make this the checkpoint to go back to, and remove old ones.

        The manifest of a checkpoint in memory is kept in the state store alone.
        """
        shards = [*taking.shards.values()]
        try:
            manifest = manifests.manifest_of(taking.name, taking.version, self._mode, shards)
            if not taking.in_memory:
                await asyncio.to_thread(manifests.write_manifest, self._store, taking.name, manifest)
        except (OSError, SQLFlowError) as error:
            self._state_loop.tasks.log(f"the checkpoint {taking.name} cannot be completed: {error}")
            self._servers.checkpoints.drop(self._state_loop.now())
            return
        if self._servers.complete(taking, manifest):
            await self._state_loop.write()
            self._servers.checkpoints.durable = taking.name
            for home in self._channels.keys() - {*self._state_loop.tasks.state.homes}:
                self._spawn(self._retire(self._channels.pop(home)))
                if peer := self._peers.pop(home, None):
                    peer.on_gone()
            await self._remove_others()

    async def retire_all(self) -> None:
        """Tell all servers that they may leave, because they have written their last checkpoint."""
        channels, self._channels = [*self._channels.values()], {}
        await asyncio.gather(*map(self._retire, channels))

    async def _retire(self, channel: ServerChannel) -> None:
        """Tell a server that it may leave, and close the channel. One that does not hear it leaves later."""
        try:
            with contextlib.suppress(SQLFlowError):
                await self._ask(channel, Retire(), RETIRE_SECS)
        finally:
            channel.close()

    async def _remove_others(self) -> None:
        """Remove obsolete checkpoints.

        The folders are listed before the coordinator is asked what to keep, so that a checkpoint that begins meanwhile
        is not listed.
        """
        async with self._removing:
            try:
                stored, complete = await asyncio.to_thread(_list_checkpoints, self._store)
                for name in stored - self._servers.checkpoints.list_kept_folders(complete):
                    await asyncio.to_thread(self._store.remove, name)
            except (OSError, SQLFlowError) as error:  # they only occupy space
                self._state_loop.tasks.log(f"old checkpoints cannot be removed: {error}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _list_checkpoints(store: CheckpointStore) -> tuple[set[str], dict[str, object]]:
    """Return the names of all checkpoints to resume from that are not damaged, and the complete ones with the checksums
    of the whole files that they begin with.
    """
    damaged = {*store.names(DAMAGED)}
    stored, complete = (  # in this order: one that is written meanwhile is not listed, or complete
        {name for name in names if not name.startswith(manifests.BEST)} - damaged
        for names in (store.names(), store.names(manifests.MANIFEST))
    )
    return stored - {UPDATES}, {name: _first_files(store, name) for name in complete}


def _first_files(store: CheckpointStore, name: str) -> object:
    if not store.shared:  # each has files of its own
        return name
    try:
        manifest = manifests.read_manifest(store.folder / name)
    except SQLFlowError:  # damaged, or removed meanwhile
        return name
    return tuple(shard.parts[0].crc for shard in manifest.shards)
