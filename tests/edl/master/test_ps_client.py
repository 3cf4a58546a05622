"""The master's calls to real parameter servers, in threads of this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints import mark_damaged
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.integrity import Part
from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator
from edl.master.ps.ps_client import PsClient, _list_checkpoints
from edl.master.ps.ps_manager import Servers
from edl.master.state import ServerLoss
from edl.master.state_loop import StateLoop
from edl.master.tasks.recovery import ServerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint import manifests, shard_file
from edl.ps.checkpoint.content import Mode, Shard, Version
from edl.ps.replica import ReplicaSnapshot
from edl.spec import Checkpoints, Training
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Flag, Request
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.master.test_state_loop import MemoryStateStore, run
from tests.edl.ps import servers
from tests.edl.ps.servers import TOKEN, definition, first_values, progress

PLAN = Plan("train", 6 * LEAST_ROWS, 0, Training(batch_size=512))
ASYNC = Mode("async")
MODEL = definition()


@pytest.fixture(autouse=True)
def servers_are_asked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATUS_SECS", "HASTY_SECS"):
        monkeypatch.setattr(f"edl.master.ps.ps_manager.{name}", 0.02)


@pytest.fixture
def machines() -> Iterator[servers.Servers]:
    with servers.servers(2) as running:
        running.generation = 1
        yield running


class Master:
    """An state_loop that runs, with servers that have registered."""

    def __init__(self, checkpoints: Path, when: Checkpoints, mode: Mode) -> None:
        self.notes: list[str] = []
        self.state_store = MemoryStateStore()
        self.leases = TaskManager(PLAN, None, ServerRecovery, log=self.notes.append)
        self.servers = Servers(self.leases, mode, 2, CheckpointCoordinator(self.leases, when, 2))
        self.state_loop = StateLoop(
            self.leases, self.state_store, self.servers, on_tick=lambda now: self.serving.tick(now)
        )
        self.store = SharedFolder(checkpoints)
        self.serving = PsClient(self.servers, self.state_loop, mode, self.store, TOKEN)

    async def until(self, done: Callable[[], object]) -> None:
        while not done():
            await asyncio.sleep(0.02)

    async def register_server(self, machines: servers.Servers) -> None:
        machines.store.folder = self.store.folder
        for index, address in enumerate(machines.addresses):
            incarnation = self.leases.state.servers[index].incarnation
            if self.leases.state.servers[index].address != address:
                await self.state_loop.register_server(f"ps-{index}", incarnation + 1, address)
        await self.until(lambda: self.servers.is_ready)


@contextlib.asynccontextmanager
async def master(folder: Path, when: Checkpoints | None = None, mode: Mode = ASYNC) -> AsyncIterator[Master]:
    made = Master(folder, when or Checkpoints(secs=0.0, keep=2), mode)
    await made.serving.start()
    running = asyncio.create_task(made.state_loop.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await made.serving.close()


LATER = 1 << 50  # than any lease that a master gave out


def train(machines: servers.Servers, lease: int, rows: int) -> None:
    gradients = {name: np.ones_like(value) for name, value in first_values().items()}
    machines.push(MODEL, gradients, {}, progress=progress(lease, rows, of=LEAST_ROWS))


@pytest.mark.soak
def test_servers_are_arranged_and_their_first_checkpoint_is_complete_when_the_state_store_says_so(
    machines: servers.Servers, tmp_path: Path
) -> None:
    async def work() -> None:
        async with master(tmp_path) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            await subject.until(lambda: any(kept.checkpoint for kept in subject.state_store.written))
            assert manifests.complete(tmp_path) == ["000001-000001"]
            [*_, kept] = subject.state_store.written
            assert kept.checkpoint is not None
            assert kept.checkpoint.folder == "000001-000001"

    run(work())


def test_a13_the_last_checkpoints_are_kept(machines: servers.Servers, tmp_path: Path) -> None:
    (tmp_path / "000009-000009").mkdir(parents=True)  # an earlier master had begun it
    (tmp_path / "best-1").mkdir()

    async def work() -> None:
        async with master(tmp_path, Checkpoints(steps=1, secs=0.0, keep=2)) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            for number in range(1, 5):
                name = f"000001-00000{number}"
                await subject.until(lambda name=name: name in manifests.complete(tmp_path))
                await asyncio.to_thread(train, machines, LATER + 100, number)
            leave = {"000009-000009", "000001-000001", "000001-000002"}
            await subject.until(lambda: not leave & {path.name for path in tmp_path.iterdir()})
            assert {"best-1", "000001-000004"} <= {path.name for path in tmp_path.iterdir()}

    run(work())


def test_a13_a_job_that_is_over_leaves_the_last_checkpoints_and_no_half_of_another(
    machines: servers.Servers, tmp_path: Path
) -> None:
    names = [f"000001-00000{number}" for number in (1, 2, 3)]

    async def work() -> None:
        async with master(tmp_path, Checkpoints(steps=1, secs=0.0, keep=2)) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            for number, name in enumerate(names):
                if number:
                    await asyncio.to_thread(train, machines, LATER + 100, number)
                await subject.until(lambda name=name: name in manifests.complete(tmp_path))
        (tmp_path / "000001-000004").mkdir()
        await subject.serving.tidy()
        assert sorted(path.name for path in tmp_path.iterdir()) in (names[-2:], names[:2])

    run(work())


def test_a15_a_disk_that_is_full_is_not_filled_with_what_came_to_nothing(
    machines: servers.Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(folder: Path, name: str, snapshot: ReplicaSnapshot) -> Shard:
        if snapshot.arranged.index == 1:
            raise OSError("no space is left")
        return write_shard(folder, name, snapshot)

    write_shard = shard_file.write
    monkeypatch.setattr(shard_file, "write", write)
    monkeypatch.setattr("edl.master.ps.checkpoint_coordinator.AGAIN_SECS", 0.0)

    async def work() -> None:
        async with master(tmp_path) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            await subject.until(lambda: len(subject.notes) >= 5)
            assert set(subject.notes) == {"a checkpoint cannot be written: no space is left"}
            await subject.until(lambda: len(list(tmp_path.iterdir())) <= 2)

    run(work())


def test_a6_a_replaced_server_is_restored_from_the_last_checkpoint(
    machines: servers.Servers, tmp_path: Path
) -> None:
    async def work() -> None:
        async with master(tmp_path) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            await subject.until(lambda: subject.leases.state.checkpoint)
            before = await asyncio.to_thread(machines.pull, MODEL, {})
            await asyncio.to_thread(train, machines, LATER + 100, 1)
            await asyncio.to_thread(machines.replace, 1)
            await subject.register_server(machines)
            after = await asyncio.to_thread(machines.pull, MODEL, {})
        assert subject.leases.state.generation == 1
        moved = {name for name, value in before.items() if not np.array_equal(value, after[name])}
        assert moved == {"kernel"}  # which server 0 has

    run(work())


def test_a_replaced_server_has_the_updates_of_its_log_which_is_cut_when_a_checkpoint_is_durable(
    machines: servers.Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def segments() -> list[str]:
        return [path.stem[7:] for path in tmp_path.glob("updates/server-1/*/*.log")]

    async def work() -> None:
        often = Checkpoints(steps=1, secs=0.0)
        async with master(tmp_path, often, Mode("async", durable_updates="process")) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            await subject.until(lambda: segments() == ["000001-000001"])
            await asyncio.to_thread(train, machines, LATER + 100, 1)
            await subject.until(lambda: segments() == ["000001-000002"])
            monkeypatch.setattr(CheckpointCoordinator, "is_due", lambda *arguments: False)
            await asyncio.to_thread(train, machines, LATER + 100, 2)
            before = await asyncio.to_thread(machines.pull, MODEL, {})
            await asyncio.to_thread(machines.replace, 1)
            await subject.register_server(machines)
            after = await asyncio.to_thread(machines.pull, MODEL, {})
        for name, value in before.items():
            np.testing.assert_array_equal(value, after[name])
        assert subject.leases.state.losses == [ServerLoss(1, 1, "000001-000002")]

    run(work())


@pytest.mark.soak
def test_a_replaced_server_gets_its_shard_back_from_its_neighbour(
    machines: servers.Servers, tmp_path: Path
) -> None:
    async def work() -> None:
        async with master(tmp_path, Checkpoints(secs=0.0, copies="neighbours")) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            await subject.until(lambda: any(kept.checkpoint for kept in subject.state_store.written))
            before = await asyncio.to_thread(machines.pull, MODEL, {})
            await asyncio.to_thread(train, machines, LATER + 100, 1)
            await asyncio.to_thread(machines.replace, 1)
            await subject.register_server(machines)
            after = await asyncio.to_thread(machines.pull, MODEL, {})
        assert subject.leases.state.generation == 1
        moved = {name for name, value in before.items() if not np.array_equal(value, after[name])}
        assert moved == {"kernel"}  # which server 0 has
        assert not list(tmp_path.iterdir())

    run(work())


def test_a_lost_workers_lease_is_revoked_and_the_rest_of_its_task_given_to_another(
    machines: servers.Servers, tmp_path: Path
) -> None:
    async def work() -> None:
        async with master(tmp_path) as subject:
            await subject.register_server(machines)
            await asyncio.to_thread(machines.define, MODEL)
            await asyncio.to_thread(machines.open)
            for name in ("worker-0", "worker-1"):
                await subject.state_loop.join(name, 0, {})
            want = Request("worker-0", 0, 1, want={"train": 1})
            [task] = (await subject.state_loop.exchange(want, 0.0, Flag.NONE)).tasks
            await asyncio.to_thread(train, machines, task.attempt, 512)
            subject.leases.on_loss("worker-0", 0, subject.state_loop.now())
            await subject.until(lambda: not subject.leases.state.revoking)
            other = Request("worker-1", 0, 1, want={"train": 1})
            [again] = (await subject.state_loop.exchange(other, 0.0, Flag.NONE)).tasks
            assert (again.id, again.skip) == (task.id, 512)

    run(work())


def test_checkpoints_that_share_files_are_known_by_them_and_damaged_ones_are_left_alone(
    tmp_path: Path,
) -> None:
    store = SharedFolder(tmp_path)
    whole, other = Part("server-0.safetensors", 9, 1), Part("server-0.safetensors", 9, 2)
    for name, base in (("1", whole), ("2", whole), ("3", other), ("4", other)):
        changes = Shard(0, "server-0-1.safetensors", 5, int(name), earlier=(base,))
        manifests.write_manifest(store, name, manifests.manifest_of(name, Version(), Mode(), [changes]))
    mark_damaged(store, "4", "its disk lost a sector")
    assert _list_checkpoints(store) == ({"1", "2", "3"}, {"1": (1,), "2": (1,), "3": (2,)})


class BusyFolder(SharedFolder):
    """Store in which a server begins the weights of another best epoch after each list."""

    def names(self, having: str = "") -> list[str]:
        names = super().names(having)
        (self.folder / f"{manifests.BEST}{len(super().names()):06d}-0001").mkdir()
        return names


def test_weights_of_a_best_epoch_that_are_written_meanwhile_are_not_listed(tmp_path: Path) -> None:
    assert _list_checkpoints(BusyFolder(tmp_path)) == (set(), {})
