"""Supervisor's end of the connections to other machines: agents that join, instances on them, and their loss.

A machine is lost when its connection ends, or when nothing has come over it for SILENCE seconds, as after a cut of the
network. Its instances then count as lost, and are started elsewhere if there is room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from edl.build import present_build
from edl.cluster import Change, Instance, Room
from edl.cluster.local.instances import Instances
from edl.cluster.local.launcher import Key, Launcher
from edl.cluster.local.messages import Changed, Heartbeat, Start, Stop
from edl.cluster.nodes.joining import is_proof, make_proof, own_certificate, server_context
from edl.cluster.nodes.messages import (
    LONGEST,
    Ended,
    Join,
    Sorry,
    ToAgent,
    Welcome,
    from_agent_decoder,
    to_line,
)
from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder, NodesUse, RunSpec
from edl.tls import FILES

BEAT_SECS = 2.0  # between two signs of life
SILENCE = 10.0  # seconds without one after which a machine is lost
JOIN_SECS = 10.0  # time for an agent to make its offer
LAST_WORDS = 2.0  # time for the last messages to leave

Say = Callable[[str], None]


@dataclass(slots=True, eq=False)
class Node:
    """Machine with room for instances. The supervisor's own has no `writer`."""

    machine: str
    host: str
    slots: int
    writer: asyncio.StreamWriter | None = None
    keys: set[Key] = field(default_factory=set)  # of instances on it that have not ended

    @property
    def has_room(self) -> bool:
        return len(self.keys) < self.slots

    def send(self, message: ToAgent) -> None:
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(to_line(message))


class NodeServer:
    """Server for agents, and launcher of instances on all machines.

    `local` launches on this machine. `notify` is called with the room of all machines together when it changes.
    """

    def __init__(
        self,
        folder: ClusterFolder,
        spec: RunSpec,
        use: NodesUse,
        instances: Instances,
        notify: Callable[[Room], None],
        say: Say,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._use = use
        self._instances = instances
        self._notify = notify
        self._say = say
        self._nodes = [Node("this machine", spec.environment.get("EDL_HOST", ""), use.slots)]
        self._tasks: set[asyncio.Task[None]] = set()
        self.local: Launcher | None = None
        instances.room = Room(use.slots)

    async def start(self) -> asyncio.Server:
        """Listen for agents. Raises ClusterError if the address cannot be listened on."""
        identity = self._folder.path / "tls"
        host, _, port = self._use.listen.rpartition(":")
        self._certificate = own_certificate(identity)
        try:
            server = await asyncio.start_server(
                self._accept, host, int(port), ssl=server_context(identity), limit=LONGEST
            )
        except OSError as error:
            raise ClusterError(
                f"no other machine can join at {self._use.listen}: {error.strerror or error}",
                hint="--rdzv_endpoint names an address of the first machine, and a free port",
            ) from None
        self._say(f"machines join at {self._use.listen}")
        return server

    async def end(self, state: str, error: str) -> None:
        """Tell all agents the end of the job."""
        for node in self._nodes[1:]:
            node.send(Ended(state, error))
        writers = [node.writer for node in self._nodes[1:] if node.writer is not None]
        for writer in writers:
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.drain(), LAST_WORDS)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_WORDS)  # agents close their connections

    # As a launcher ---------------------------------------------------------------------------------------

    def launch(self, instance: Instance) -> None:
        """Start an instance on the machine of its number, or on the first one with room."""
        self._forget_ended()
        number = int(instance.name.rpartition("-")[2])
        place = number // max(1, self._use.slots)
        preferred = self._nodes[place : place + 1]
        node = next((node for node in (*preferred, *self._nodes) if node.has_room), None)
        if node is None:
            self._instances.on_refusal(instance.key, "no machine has a free slot")
            return
        node.keys.add(instance.key)
        if node.writer is None:
            if self.local is None:
                raise RuntimeError("the launcher of this machine is not set")
            self.local.launch(instance)
            return
        self._instances.place_elsewhere(
            instance.key, lambda grace: node.send(Stop(0, instance, grace)), node.machine
        )
        node.send(Start(0, instance))

    def forget(self, key: Key) -> bool:
        return self.local is not None and self.local.forget(key)

    def close(self) -> None:
        if self.local is not None:
            self.local.close()

    def _forget_ended(self) -> None:
        alive = {change.instance.key for change in self._instances.list() if change.state != "ended"}
        for node in self._nodes:
            node.keys &= alive

    # Agents ----------------------------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            node = await asyncio.wait_for(self._welcome(reader, writer), JOIN_SECS)
        except (TimeoutError, OSError, msgspec.MsgspecError, ValueError, asyncio.IncompleteReadError):
            node = None
        if node is None:
            writer.close()
            return
        try:
            await self._serve(node, reader)
        except asyncio.CancelledError:  # the supervisor ends
            return
        finally:
            self._lose(node)

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Node | None:
        """Return the machine of an agent that knows the token; None for another caller."""
        offer = from_agent_decoder.decode(await reader.readline())
        token = self._folder.join_token()
        if not isinstance(offer, Join) or not is_proof(offer.proof, token, "agent", self._certificate):
            self._say("a caller without the join token was turned away")
            return None
        if not present_build().is_compatible(offer.build):
            why = f"{offer.build} there and {present_build()} on the first machine do not fit together"
            writer.write(to_line(Sorry(why)))
            self._say(f"{offer.machine} cannot join: {why}")
            await writer.drain()
            return None
        if len(self._nodes) >= self._use.most:
            writer.write(to_line(Sorry(f"the job has its {self._use.most} machines")))
            await writer.drain()
            return None
        node = Node(f"{offer.machine} ({offer.host})", offer.host, offer.slots, writer)
        node.send(self._invitation(token))
        self._nodes.append(node)
        self._say(f"{node.machine} has joined with {node.slots} slots")
        self._tell_room()
        return node

    def _invitation(self, token: str) -> Welcome:
        identity = self._folder.path / "tls"
        return Welcome(
            make_proof(token, "supervisor", self._certificate),
            self._folder.job.name,
            (self._folder.job / "program" / "job.json").read_bytes(),
            self._spec,
            self._folder.address(),
            self._folder.token(),
            {name: (identity / name).read_text(encoding="ascii") for name in FILES},
        )

    async def _serve(self, node: Node, reader: asyncio.StreamReader) -> None:
        """Take the messages of an agent until its connection ends, or it is silent for too long."""
        beating = asyncio.create_task(self._beat(node))
        try:
            while line := await asyncio.wait_for(reader.readline(), SILENCE):
                message = from_agent_decoder.decode(line)
                if isinstance(message, Changed) and message.change.instance.key in node.keys:
                    self._instances.change_elsewhere(_locate_change(node, message.change))
        except TimeoutError:
            self._say(f"{node.machine} has been silent for {SILENCE:g} s")
        except (OSError, msgspec.MsgspecError, ValueError):
            pass  # the connection is broken
        finally:
            beating.cancel()

    async def _beat(self, node: Node) -> None:
        while True:
            node.send(Heartbeat())
            await asyncio.sleep(BEAT_SECS)

    def _lose(self, node: Node) -> None:
        """Count the instances of a machine as lost."""
        if node.writer is not None:
            node.writer.close()
        self._forget_ended()
        self._nodes.remove(node)
        self._say(f"{node.machine} is gone, with {len(node.keys)} instances")
        self._tell_room()
        alive = {change.instance.key: change.instance for change in self._instances.list()}
        for key in sorted(node.keys):
            detail = f"its machine is gone: {node.machine}"
            self._instances.change_elsewhere(Change(alive[key], "ended", node.machine, "lost", detail=detail))

    def _tell_room(self) -> None:
        room = Room(sum(node.slots for node in self._nodes))
        self._instances.room = room
        self._notify(room)


def _locate_change(node: Node, change: Change) -> Change:
    place = f"{node.machine} {change.place}".rstrip()
    return msgspec.structs.replace(change, place=place)
