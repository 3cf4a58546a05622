"""A job of thousands of workers in simulated time: the master's own code, and workers that say what workers say.

The event loop jumps to the next moment at which something happens. What it computes is the master's work, apart from
what `Meter` leaves out: the workers' side of an exchange. Calls take no time and cost nothing but the state machine;
what gRPC costs is measured apart (`benchmarks.scale`).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import random
import selectors
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from edl.checkpoints.folder import SharedFolder
from edl.cluster import Change, Instance, Reason, Room
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import EventLog
from edl.jobs.snapshot import Snapshot
from edl.master.backend import Backend, ClientResultStore
from edl.master.master import Master, restore_tasks
from edl.master.pace import collect_rarely
from edl.master.ps.server_slot import Answer, ServerCall
from edl.master.state_store import FileStateStore
from edl.master.stored_checkpoints import stored_checkpoints
from edl.ps.checkpoint.content import Mode, Progress, Shard, Version
from edl.ps.checkpoint.manifests import manifest_of
from edl.ps.messages import Arrange, Arranged, CheckpointTaken, Figures, Revoke, Revoked, TakeCheckpoint
from edl.spec import JobSpec, RegressionLabel, Rows
from edl.spec.job import Cluster
from edl.tasks.protocol import Flag, JoinRequest
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.master_client import MEMBERS, NEWS_SECS
from edl.worker.outbox import Outbox
from tests.edl import programs
from tests.edl.master.test_schedules import finished

T = TypeVar("T")
LEASE_SECS = 10.0

MODES = {
    "predict": Cluster(),
    "async": Cluster(parameter_servers=20, strategy="async"),
    "allreduce": Cluster(strategy="allreduce"),
}


def job_spec(mode: str, rows: int, workers: int) -> JobSpec:
    made = programs.job_spec("torch", (), RegressionLabel("y"), Rows(True, rows, rows), batch_size=512)
    kind = "predict" if mode == "predict" else "train"
    return msgspec.structs.replace(
        made, kind=kind, cluster=msgspec.structs.replace(MODES[mode], workers=workers)
    )


class SimulatedTime(asyncio.SelectorEventLoop):
    """Event loop in which waiting takes no time. Work for other threads is done at once."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_NoWait(self))
        self.set_default_executor(_Inline())

    def time(self) -> float:
        return self.now


class _NoWait(selectors.SelectSelector):
    def __init__(self, loop: SimulatedTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen")
        self._loop.now += max(1e-6, timeout)  # time never stands still: timers are rounded
        return []


class _Inline(ThreadPoolExecutor):
    def submit(self, do: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(do(*arguments, **named))
        except Exception as error:
            done.set_exception(error)
        return done


class Meter:
    """CPU seconds of this thread since the start, without those inside `left_out`."""

    def __init__(self) -> None:
        self._begun = time.thread_time()

    @property
    def seconds(self) -> float:
        return time.thread_time() - self._begun

    @contextlib.contextmanager
    def left_out(self) -> Iterator[None]:
        begun = time.thread_time()
        try:
            yield
        finally:
            self._begun += time.thread_time() - begun


@dataclass(frozen=True)
class Setting:
    """Workers of a simulated job. `speed` is rows per second of one, `most` of all of them together. Each `death_secs`
    one is killed, and each `freeze_secs` another falls silent; its replacement runs after `start_secs`. A tenth of the
    workers come after `later_secs`.
    """

    workers: int
    speed: float = 100.0
    most: float = math.inf
    death_secs: float = 2.0
    freeze_secs: float = 30.0
    start_secs: float = 5.0
    later_secs: float = 20.0


@dataclass
class Course:
    """Cost of a simulated job. `cpu` is seconds of the master by simulated second, `state` and `shown` the bytes of
    the last written state and of the last snapshot.
    """

    seconds: float = 0.0
    cpu: list[float] = field(default_factory=list)
    exchanges: int = 0
    writes: int = 0
    written: int = 0
    state: int = 0
    shown: int = 0
    deaths: int = 0
    groups: int = 0
    rows: int = 0
    finished: bool = False

    @property
    def cores(self) -> float:
        """CPU seconds of the master's state machines per simulated second."""
        return sum(self.cpu) / self.seconds

    @property
    def rate(self) -> float:
        """Exchanges per simulated second."""
        return self.exchanges / self.seconds


class _Store(FileStateStore):
    """The state store of a master on one machine; counts what is written."""

    def __init__(self, path: Path, course: Course) -> None:
        super().__init__(path)
        self._course = course

    def write(self, data: bytes) -> None:
        self._course.writes += 1
        self._course.written += len(data)
        self._course.state = len(data)
        super().write(data)


class _Cluster:
    """Starts simulated instances."""

    room: Room | None = None
    unfit: frozenset[str] = frozenset()

    def __init__(self, job: SimulatedJob) -> None:
        self._job = job

    def start(self, instance: Instance) -> None:
        asyncio.get_running_loop().call_later(self._job.setting.start_secs, self._job.started, instance)

    def stop(self, instance: Instance, grace: float) -> None:
        self._job.end(*instance.key, "stopped")

    def list(self) -> list[Change]:
        return []

    def watch(self) -> Iterator[Change | Room]:
        yield from ()

    def close(self) -> None:
        """Nothing is open."""


class _Master(Master):
    """The master without its port and without threads."""

    state_loop = property(lambda self: self._state_loop)
    tasks = property(lambda self: self._tasks)

    async def simulate(self) -> None:
        self._scaler._threads = _Inline()
        await self._state_loop.write()
        self._on_tick(self._state_loop.now())
        await self._state_loop.run()

    async def scale(self, workers: int) -> None:
        await self._scale(workers, None)

    def change(self, change: Change) -> None:
        self._on_change(change)


class SimulatedJob:
    """One job, from its start for `seconds` at most."""

    def __init__(self, spec: JobSpec, folder: Path, setting: Setting, seed: int = 0) -> None:
        self.setting = setting
        self.spec = spec
        self.random = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        self.course = Course()
        self.loop = SimulatedTime()
        self.workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self.groups: dict[int, Group] = {}
        self.pushed: dict[int, Progress] = {}
        job = ClusterFolder(folder)
        folder.joinpath("cluster").mkdir(parents=True)
        self._store = _Store(job.state, self.course)
        backend = Backend(
            cluster=_Cluster(self),
            state_store=self._store,
            events=EventLog(job.events),
            result_store=ClientResultStore(),
            show=self._show,
            address="",
            clock=self.loop.time,
        )
        self._folder = job
        store = SharedFolder(folder / "checkpoints")
        checkpoints = stored_checkpoints(spec, store)
        tasks = restore_tasks(spec, backend, checkpoints, LEASE_SECS)
        self.master = _Master(spec, job, tasks, backend, store, checkpoints)
        if self.master._servers is not None:
            self.master._ps_client = _Servers(self)  # type: ignore[assignment]

    def _show(self, snapshot: Snapshot) -> None:
        snapshot.write(self._folder.snapshot)
        self.course.shown = self._folder.snapshot.stat().st_size

    @property
    def now(self) -> float:
        return self.loop.time()

    def run(self, seconds: float) -> Course:
        before = gc.get_threshold()
        collect_rarely()
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._run(seconds))
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()
            self._store.close()
            gc.set_threshold(*before)
            gc.unfreeze()
        return self.course

    async def _run(self, seconds: float) -> None:
        self.meter = Meter()
        going = asyncio.ensure_future(self.master.simulate())
        happening = [
            asyncio.ensure_future(self._kill_now_and_then()),
            asyncio.ensure_future(self._freeze_now_and_then()),
            asyncio.ensure_future(self._add()),
        ]
        while not going.done() and self.now < seconds:
            await asyncio.wait([going], timeout=1.0)
            self.course.cpu.append(self.meter.seconds - sum(self.course.cpu))
        for each in [*happening, going]:
            each.cancel()
        self.course.seconds = self.now
        self.course.exchanges = self.master.state_loop.exchanges
        self.course.groups = self.master.tasks.rendezvous.number
        self.course.rows = self.master.tasks.job.state.rows
        self.course.finished = self.master.tasks.is_finished

    async def _kill_now_and_then(self) -> None:
        while self.setting.death_secs:
            await asyncio.sleep(self.setting.death_secs)
            if self.workers:
                name = self.random.choice([*self.workers])
                self.end(name, self.workers[name][0].incarnation, "killed")
                self.course.deaths += 1

    async def _freeze_now_and_then(self) -> None:
        while self.setting.freeze_secs:
            await asyncio.sleep(self.setting.freeze_secs)
            if self.workers:
                self.workers[self.random.choice([*self.workers])][1].cancel()

    async def _add(self) -> None:
        await asyncio.sleep(self.setting.later_secs)
        await self.master.scale(self.setting.workers)

    # Instances ----------------------------------------------------------------------------------------------

    def started(self, instance: Instance) -> None:
        self.master.change(Change(instance, "running", place="somewhere"))
        if instance.role == "ps":
            register = self.master.state_loop.register_server
            self._registering = asyncio.ensure_future(register(*instance.key, f"{instance.name}:1"))
            return
        with self.meter.left_out():
            worker = Worker(self, instance)
            self.workers[instance.name] = worker, asyncio.ensure_future(worker.live())

    def end(self, name: str, incarnation: int, reason: Reason) -> None:
        found = self.workers.get(name)
        if found is None or found[0].incarnation != incarnation:
            return
        del self.workers[name]
        found[1].cancel()
        for group in self.groups.values():
            group.lose(name)
        self.master.change(Change(Instance(name, "worker", incarnation), "ended", reason=reason))


class Worker:
    """One worker, as the master sees it."""

    def __init__(self, job: SimulatedJob, instance: Instance) -> None:
        self._job = job
        self.incarnation = instance.incarnation
        self.box = Outbox(instance.name, instance.incarnation)
        self._loop = job.master.state_loop
        self._heartbeat = 1.0
        self._after = 0  # number of the last group that it was told of
        cluster = job.spec.cluster
        self._served, self._grouped = (
            bool(cluster.parameter_servers),
            job.spec.kind == "train" and cluster.strategy == "allreduce",
        )

    async def live(self) -> None:
        await asyncio.sleep(self._job.random.random())
        while True:
            joined = await self._loop.join(self.box.instance, self.incarnation, {})
            if joined is None:
                break
            self.box.apply_registration(joined)
            self._heartbeat = joined.heartbeat_secs
            while not self.box.rejoin and not self.box.flags & Flag.FINISHED:
                await (self._in_group() if self._grouped else self._work())
            if not self.box.rejoin:
                break
        self._job.loop.call_soon(self._job.end, self.box.instance, self.incarnation, "done")

    async def _work(self) -> None:
        """Do the next task, or wait for one."""
        task = self.box.take(*CONTROL, "train", "predict")
        if task is None:
            want: dict[TaskType, int] = (
                {"predict": 1}
                if self._job.spec.kind == "predict"
                else {"evaluate": 1, "conclude": 1, "export": 1, "train": 1}
            )
            await self._exchange(self._heartbeat, want)
            return
        share = min(self._job.setting.speed, self._job.setting.most / len(self._job.workers))
        speed = share * (0.8 + 0.4 * self._job.random.random())
        end = self._job.now + task.rows / speed
        while (left := end - self._job.now) > 1e-6:
            await asyncio.sleep(min(left, self._heartbeat))
            rows = task.rows - max(0, int((end - self._job.now) * speed))
            self._progress(task, rows)
            if rows < task.rows:
                await self._exchange(0.0)
            if not self.box.holds_lease(task):
                return
        self.box.report("done", finished(task))
        await self._exchange(0.0)

    def _progress(self, task: Task, rows: int) -> None:
        with self._job.meter.left_out():
            self.box.progress(Report(task, rows, rows // 512, float(rows), float(rows)))
            if self._served and task.type == "train":
                self._job.pushed[task.attempt] = Progress(task, rows, rows // 512, float(rows), float(rows))

    async def _exchange(self, wait: float, want: dict[TaskType, int] | None = None) -> None:
        with self._job.meter.left_out():
            request = self.box.request(want or {})
            flags = self.box.flags
        answer = await self._loop.exchange(request, wait, flags)
        with self._job.meter.left_out():
            self.box.on_answer(answer)

    # Groups -------------------------------------------------------------------------------------------------

    async def _in_group(self) -> None:
        """Wait for a group, and be a member until it ends."""
        self.box.join(JoinRequest(f"{self.box.instance}.pods.svc:1", self._after))
        while self.box.found is None:
            await self._exchange(self._heartbeat)
            if self.box.rejoin or self.box.flags & Flag.FINISHED:
                return
        found, self.box.join_request = self.box.found, None
        self._after = found.number
        with self._job.meter.left_out():
            group = self._job.groups.setdefault(found.number, Group(found.members))
        if not await group.arrive(self.box.instance):
            return
        self._job.groups = {found.number: group}
        leads = found.members[0] == self.box.instance
        self.box.enter(found.number, group.open if leads else (), ())
        await self._exchange(0.0)
        while not (
            group.lost.is_set() or self.box.regroup or self.box.rejoin or self.box.flags & Flag.FINISHED
        ):
            await (self._lead(group) if leads else self._follow(group))
        group.lost.set()

    async def _lead(self, group: Group) -> None:
        if not group.open:
            task = self.box.take(*CONTROL, "train")
            if task is None:
                want: dict[TaskType, int] = {"evaluate": 1, "conclude": 1, "export": 1, "train": 2}
                await self._exchange(NEWS_SECS, want)
                return
            group.open = [Report(task)]
        task, rows = group.open[0].task, group.open[0].rows
        speed = min(self._job.setting.speed * len(group.members), self._job.setting.most)
        if await group.ends(min(NEWS_SECS, (task.rows - rows) / speed)):
            return
        rows = min(task.rows, rows + int(NEWS_SECS * speed) + 1)
        group.open = [Report(task, rows)] if rows < task.rows else []
        if group.open:
            self._progress(task, rows)
        else:
            self.box.report("done", finished(task))
        await self._exchange(0.0)

    async def _follow(self, group: Group) -> None:
        if not await group.ends(min(self._heartbeat, NEWS_SECS * max(1.0, len(group.members) / MEMBERS))):
            await self._exchange(0.0)


class Group:
    """Members that train together, until one of them is lost."""

    def __init__(self, members: tuple[str, ...]) -> None:
        self.members = members
        self.open: list[Report] = []
        self.lost = asyncio.Event()
        self._missing = set(members)
        self._complete = asyncio.Event()

    def lose(self, name: str) -> None:
        if name in self.members:
            self.lost.set()
            self._complete.set()

    async def arrive(self, name: str) -> bool:
        self._missing.discard(name)
        if not self._missing:
            self._complete.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._complete.wait(), 30.0)
        return not self._missing and not self.lost.is_set()

    async def ends(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.lost.wait(), seconds)
        return self.lost.is_set()


class _Servers:
    """Parameter servers that answer the master at once, in the place of its client."""

    def __init__(self, job: SimulatedJob) -> None:
        self._job = job
        self._master = job.master
        self._folder = ""  # of the last checkpoint
        self._step = 0

    async def start(self) -> None:
        """Nothing is connected."""

    def tick(self, now: float) -> None:
        servers = self._master._servers
        assert servers is not None
        servers.tick(now)
        while calls := servers.calls(now):
            for call in calls:
                servers.on_answer(call, self._answer(call), now)
        if taking := servers.checkpoints.to_complete():
            manifest = manifest_of(taking.name, taking.version, Mode("async"), [*taking.shards.values()])
            servers.checkpoints.complete(taking, manifest)
        self._master.state_loop.notify()

    def _answer(self, call: ServerCall) -> Answer:
        state, pushed = self._master.tasks.state, self._job.pushed
        version = Version(state.generation, call.epoch, self._step)
        header = call.header
        if isinstance(header, Arrange):
            return Arranged(version, True, True)
        if isinstance(header, Revoke):
            return Revoked(tuple(pushed[lease] for lease in header.leases if lease in pushed))
        if isinstance(header, TakeCheckpoint):
            with self._job.meter.left_out():
                for lease in pushed.keys() - state.leases.keys():
                    del pushed[lease]
            self._folder = header.folder
            return CheckpointTaken(version, tuple(pushed.values()))
        self._step += 1
        written = {self._folder: Shard(call.index, f"server-{call.index}")}
        return Figures(call.index, version.generation, version, open=True, written=written)
