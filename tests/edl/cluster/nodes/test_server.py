"""Machines that join a supervisor over TLS, run instances, and are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.build import Build, present_build
from edl.cluster import Change, Instance, Room
from edl.cluster.local.children import Children
from edl.cluster.local.instances import Instances
from edl.cluster.local.messages import Changed, Heartbeat, Start, Stop
from edl.cluster.nodes import server as nodes
from edl.cluster.nodes.joining import agent_context, is_proof, make_proof
from edl.cluster.nodes.messages import Ended, Join, Sorry, Welcome, to_agent_decoder, to_line
from edl.cluster.nodes.server import NodeServer
from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder, NodesUse, RunSpec
from edl.tls import issue

TOKEN = "the join token of the tests"  # noqa: S105


class Local:
    """A launcher that only notes what it launches."""

    def __init__(self) -> None:
        self.launched: list[str] = []

    def launch(self, instance: Instance) -> None:
        self.launched.append(instance.name)

    def forget(self, key: tuple[str, int]) -> bool:
        return False

    def close(self) -> None: ...


class Agent:
    """The other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)

    def send(self, message: Any) -> None:
        self.writer.write(to_line(message))

    def offer(self, token: str = TOKEN, slots: int = 2, build: Build | None = None) -> None:
        proof = make_proof(token, "agent", self.certificate)
        self.send(Join(proof, "second", "10.0.0.2", slots, build or present_build()))

    async def next(self) -> Any:
        """The next message that is no sign of life; None at the end of the connection."""
        while line := await self.reader.readline():
            message = to_agent_decoder.decode(line)
            if not isinstance(message, Heartbeat):
                return message
        return None


class First:
    """The first machine of a job, with a server."""

    def __init__(self, folder: ClusterFolder, most: int) -> None:
        self.changes: list[Change] = []
        self.rooms: list[int] = []
        self.said: list[str] = []
        self.instances = Instances(Children(), self.changes.append)
        self.local = Local()
        self.agents: list[Agent] = []
        spec = RunSpec("torch")
        use = NodesUse("127.0.0.1:0", most, 2)
        self.server = NodeServer(folder, spec, use, self.instances, self._hear, self.said.append)
        self.server.local = self.local
        self.instances.launcher = self.server
        self.port = 0

    def _hear(self, room: Room) -> None:
        self.rooms.append(room.slots)

    async def join(self, **offer: Any) -> Agent:
        agent = await self.connect()
        agent.offer(**offer)
        return agent

    async def connect(self) -> Agent:
        agent = Agent(*await asyncio.open_connection("127.0.0.1", self.port, ssl=agent_context()))
        self.agents.append(agent)
        return agent

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                await asyncio.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path) -> ClusterFolder:
    folder = ClusterFolder(tmp_path / "job-1")
    (folder.job / "program").mkdir(parents=True)
    (folder.job / "program" / "job.json").write_text("{}")
    folder.write_identity(issue())
    folder.write_join_token(TOKEN)
    folder.write_token("the token of calls")
    folder.write_master_address("127.0.0.1:7")
    return folder


def serving(folder: ClusterFolder, do: Callable[[First], Awaitable[None]], most: int = 3) -> None:
    """Run a coroutine with a server that listens."""

    async def run() -> None:
        first = First(folder, most)
        async with await first.server.start() as listening:
            first.port = listening.sockets[0].getsockname()[1]
            await do(first)
            for agent in first.agents:
                agent.writer.close()
            await first.server.end("finished", "")

    asyncio.run(run())


def test_a_machine_with_the_token_gets_the_job_and_adds_room(folder: ClusterFolder) -> None:
    async def do(first: First) -> None:
        agent = await first.join(slots=4)
        welcome = await agent.next()
        assert isinstance(welcome, Welcome)
        assert is_proof(welcome.proof, TOKEN, "supervisor", agent.certificate)
        assert (welcome.job, welcome.token, welcome.address) == ("job-1", "the token of calls", "127.0.0.1:7")
        assert sorted(welcome.identity) == ["ca.crt", "tls.crt", "tls.key"]
        assert first.rooms == [6]
        asyncio.get_running_loop().call_soon(agent.writer.close)
        await first.until(lambda: first.rooms == [6, 2])

    serving(folder, do)


@pytest.mark.parametrize("token", ["", "the join token of another job"])
def test_a_caller_without_the_token_learns_nothing(token: str, folder: ClusterFolder) -> None:
    async def do(first: First) -> None:
        agent = await first.connect()
        if token:
            agent.offer(token)
        else:
            agent.send(Heartbeat())
        assert await agent.next() is None
        assert first.rooms == []
        assert first.said[-1] == "a caller without the join token was turned away"

    serving(folder, do)


def test_another_protocol_and_one_machine_too_many_are_refused_with_the_reason(folder: ClusterFolder) -> None:
    async def do(first: First) -> None:
        old = await first.join(build=msgspec.structs.replace(present_build(), protocol=99))
        answer = await old.next()
        assert isinstance(answer, Sorry)
        assert "do not fit together" in answer.why
        assert isinstance(await (await first.join()).next(), Welcome)
        assert await (await first.join()).next() == Sorry("the job has its 2 machines")

    serving(folder, do, most=2)


def test_workers_are_placed_by_their_numbers_and_where_there_is_room(folder: ClusterFolder) -> None:
    async def do(first: First) -> None:
        agent = await first.join()
        await agent.next()
        for number in (0, 1, 2):
            first.instances.start(Instance(f"worker-{number}", "worker"))
        assert first.local.launched == ["worker-0", "worker-1"]
        assert await agent.next() == Start(0, Instance("worker-2", "worker"))
        first.instances.start(Instance("worker-9", "worker"))
        assert (await agent.next()).instance.name == "worker-9"
        with pytest.raises(ClusterError, match="all 4 slots are taken"):
            first.instances.start(Instance("worker-3", "worker"))

    serving(folder, do)


def test_changes_of_instances_elsewhere_have_their_place_and_stops_reach_them(folder: ClusterFolder) -> None:
    worker = Instance("worker-2", "worker")

    async def do(first: First) -> None:
        agent = await first.join()
        await agent.next()
        first.instances.start(worker)
        await agent.next()
        agent.send(Changed(Change(worker, "running", "pid 7")))
        await first.until(lambda: first.instances.list()[0].state == "running")
        assert first.instances.list()[0].place == "second (10.0.0.2) pid 7"
        first.instances.stop(worker, 3.0)
        assert await agent.next() == Stop(0, worker, 3.0)
        agent.send(Changed(Change(worker, "ended", "pid 7", "stopped", -15)))
        await first.until(lambda: first.instances.alive_count == 0)
        assert first.instances.list()[0].reason == "stopped"

    serving(folder, do)


def test_the_instances_of_a_machine_that_is_gone_are_lost(folder: ClusterFolder) -> None:
    worker = Instance("worker-2", "worker")

    async def do(first: First) -> None:
        agent = await first.join()
        await agent.next()
        first.instances.start(worker)
        await agent.next()
        agent.writer.transport.abort()
        await first.until(lambda: first.instances.alive_count == 0)
        [change] = first.instances.list()
        assert (change.reason, change.detail) == ("lost", "its machine is gone: second (10.0.0.2)")
        assert first.rooms == [4, 2]

    serving(folder, do)


def test_a_silent_machine_is_lost(folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "SILENCE", 0.3)

    async def do(first: First) -> None:
        agent = await first.join()
        await agent.next()
        await first.until(lambda: first.rooms == [4, 2])
        assert "second (10.0.0.2) has been silent for 0.3 s" in first.said

    serving(folder, do)


def test_agents_learn_the_end_of_the_job(folder: ClusterFolder) -> None:
    async def do(first: First) -> None:
        agent = await first.join()
        await agent.next()
        ending = asyncio.create_task(first.server.end("failed", "the script failed"))
        assert await agent.next() == Ended("failed", "the script failed")
        agent.writer.close()
        await ending

    serving(folder, do)


def test_an_address_of_another_machine_cannot_be_listened_on(folder: ClusterFolder) -> None:
    async def listen() -> None:
        use = NodesUse("192.0.2.1:29400", 2, 1)
        instances = Instances(Children(), lambda change: None)
        await NodeServer(folder, RunSpec("torch"), use, instances, print, print).start()

    with pytest.raises(ClusterError, match=r"no other machine can join at 192\.0\.2\.1:29400"):
        asyncio.run(listen())
