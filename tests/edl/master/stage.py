"""A master of a job with parameter servers, with a clock in the test's hands, and servers that answer as it says."""

from __future__ import annotations

from collections.abc import Iterable

from edl.errors import SQLFlowError
from edl.master.instances.instance_manager import InstanceManager
from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator
from edl.master.ps.ps_manager import Servers
from edl.master.ps.server_slot import Answer, ServerCall
from edl.master.state import MasterState
from edl.master.tasks.recovery import ServerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Mode, Progress, Shard, Version
from edl.ps.checkpoint.manifests import manifest_of
from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Figures,
    Revoke,
    Revoked,
    Status,
    TakeCheckpoint,
)
from edl.rpc.channel import AwayError
from edl.spec import Checkpoints, Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.listed_checkpoints import ListedCheckpoints

LEASE = 10.0
LARGE = 100_000_000  # bytes of parameters
PLAN = Plan("train", 6 * LEAST_ROWS, 0, Training(epochs=1, batch_size=512))

WANT: dict[TaskType, int] = {"train": 1}


class Stage:
    """servers: of the job; all of them are there and open after `open`."""

    def __init__(
        self,
        mode: Mode,
        servers: int = 2,
        when: Checkpoints | None = None,
        *,
        steps_per_version: int = 1,
        versions: int = 0,
        plan: Plan = PLAN,
    ) -> None:
        self.plan = plan
        self.mode = mode
        self.when = when or Checkpoints(secs=30.0, keep=3)
        self.steps_per_version = steps_per_version
        self.versions = versions
        self.full = False  # the disk
        self.logged = 0  # bytes of the first server's update log
        self.evicted: dict[str, int] = {}  # rows, by the server's address
        self.count = servers
        self.now = 0.0
        self.notes: list[str] = []
        self.lost_cuts: set[str] = set()
        self.stored = ListedCheckpoints(lambda name: name not in self.lost_cuts)
        self.progress: list[dict[int, Progress]] = [{} for _ in range(servers)]  # what each knows of leases
        self.asked: list[ServerCall] = []
        self.step = 0
        self.is_open = False
        self.mute: set[int | type] = set()  # servers that answer nothing, and calls that are not answered
        self.unheard: list[ServerCall] = []  # that were not
        self._start(None)

    def _start(self, kept: MasterState | None) -> None:
        self.leases = TaskManager(
            self.plan,
            kept,
            ServerRecovery,
            lease_secs=LEASE,
            log=self.notes.append,
            checkpoints=self.stored,
        )
        self.checkpoints = CheckpointCoordinator(
            self.leases,
            self.when,
            self.count,
            steps_per_version=self.steps_per_version,
            versions=self.versions,
        )
        self.servers = Servers(self.leases, self.mode, self.count, self.checkpoints)
        self.instances = InstanceManager(self.leases, 1, self.servers)

    def restart(self, servers: int = 0) -> None:
        """The master dies and comes back with all that it knew, and with so many servers, if that is said."""
        self.count = servers or self.count
        self._start(encoding.decode(encoding.encode(self.leases.to_store()[0]), MasterState))

    # Servers ------------------------------------------------------------------------------------------------

    def register(self, index: int, incarnation: int = 0) -> None:
        name = f"ps-{index}"
        assert self.servers.register(name, incarnation, f"{name}:{incarnation}", self.now)

    def lose(self, index: int, incarnation: int = 0) -> None:
        self.servers.on_loss(f"ps-{index}", incarnation, self.now, "was killed")

    def talk(self, seconds: float = 0.0) -> None:
        """Calls are made and answered, for so long."""
        end = self.now + seconds
        while True:
            self.servers.tick(self.now)
            while calls := self.servers.calls(self.now):
                self.asked += calls
                for call in calls:
                    if {call.index, type(call.header)} & self.mute:
                        self.unheard.append(call)
                    else:
                        self.servers.on_answer(call, self.answer(call), self.now)
            if self.now >= end:
                return
            self.now = min(end, self.now + 0.25)

    def answer(self, call: ServerCall) -> Answer:
        header = call.header
        version = Version(self.leases.state.generation, call.epoch, self.step)
        if isinstance(header, Arrange):
            return Arranged(version, self.is_open, self.is_open)
        if isinstance(header, Revoke):
            known = self.progress[call.index]
            return Revoked(tuple(known[lease] for lease in header.leases if lease in known))
        if isinstance(header, TakeCheckpoint):
            return CheckpointTaken(version, tuple(self.progress[0].values()))
        written = {
            str(one.header.folder): Shard(
                call.index, f"server-{call.index}.safetensors", error="it is full" if self.full else ""
            )
            for one in self.asked
            if isinstance(one.header, TakeCheckpoint)
        }
        return Figures(
            call.index,
            version.generation,
            version,
            open=self.is_open,
            bytes=LARGE,
            evicted=self.evicted.get(call.address, 0),
            written=written,
            logged=0 if call.index else self.logged,
        )

    def unmute(self) -> None:
        """All answer again, and what they did not answer has failed."""
        self.mute = set()
        for call in self.unheard:
            self.servers.on_unanswered(call, AwayError("lost"), self.now)
        self.unheard.clear()

    def refuse(self, error: SQLFlowError) -> None:
        """The next calls fail, but looks."""
        for call in self.servers.calls(self.now):
            if not isinstance(call.header, Status):
                self.servers.on_unanswered(call, error, self.now)

    def open(self) -> None:
        """All servers are there, and a worker has opened them."""
        for index in range(self.count):
            self.register(index)
        self.talk()
        self.is_open = True
        self.talk(0.5)

    def complete(self) -> str:
        """The cut under way becomes complete; its name."""
        self.talk(0.5)
        taking = self.checkpoints.to_complete()
        assert taking is not None
        shards = [*taking.shards.values()]
        assert self.checkpoints.complete(taking, manifest_of(taking.name, taking.version, self.mode, shards))
        return taking.name

    def said(self, kind: type) -> list[ServerCall]:
        """Calls of that kind that were made since the last time."""
        found = [call for call in self.asked if isinstance(call.header, kind)]
        self.asked = [
            call for call in self.asked if isinstance(call.header, TakeCheckpoint) and call not in found
        ]
        return found

    # Workers ------------------------------------------------------------------------------------------------

    def worker(self, name: str = "worker-0", incarnation: int = 0) -> Outbox:
        box = Outbox(name, incarnation)
        joined = self.leases.join(name, incarnation, self.now)
        assert joined is not None
        box.apply_registration(joined)
        return box

    def take(self, box: Outbox) -> Task | None:
        box.on_answer(self.leases.exchange(box.request(WANT), self.now))
        return box.take("train")

    def push(self, task: Task, rows: int, *, on: Iterable[int] | None = None) -> None:
        """So many rows of the task are in the parameters, on these servers."""
        for index in range(self.count) if on is None else on:
            self.progress[index][task.attempt] = Progress(task, rows, rows // 512, float(rows), float(rows))
        self.step += 1
