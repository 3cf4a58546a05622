"""A master of an all-reduce job, with the clock in the test's hands, and workers that say what the test says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from edl.jobs.failure import Failed
from edl.master.rendezvous import JOIN_SECS, RendezvousManager
from edl.master.state import MasterState
from edl.master.tasks.recovery import AllReduceRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.spec import Training
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.protocol import Answer, JoinRequest, Request, TaskUpdate, UpdateKind, WorkerGroup
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import CONTROL, Report, Task, TaskType
from tests.edl.master.listed_checkpoints import ListedCheckpoints
from tests.edl.master.test_schedules import finished

LEASE = 10.0
PLAN = Plan("train", 3 * LEAST_ROWS, 100, Training(epochs=2, batch_size=512))


class GroupStage:
    """workers: their names, a letter each will do."""

    def __init__(
        self,
        workers: Collection[str],
        plan: Plan = PLAN,
        recovery: type[AllReduceRecovery] = AllReduceRecovery,
    ) -> None:
        self.plan = plan
        self._recovery = recovery
        self.now = 0.0
        self.notes: list[str] = []
        self.lost_cuts: set[str] = set()
        self.stored = ListedCheckpoints(lambda name: name not in self.lost_cuts)
        self.wanted = len(workers)
        self.holds: dict[str, int] = {}  # that each worker has the state of
        self.incarnations: dict[str, int] = {}
        self.held: dict[str, list[Report]] = {}
        self._heard: dict[str, int] = {}  # reports of each that the master counts
        self._start(None)
        for name in workers:
            self.start(name)

    def _start(self, kept: MasterState | None) -> None:
        self.master = TaskManager(
            self.plan,
            kept,
            self._recovery,
            lease_secs=LEASE,
            log=self.notes.append,
            checkpoints=self.stored,
        )
        self.master.want(self.wanted)

    def restart(self) -> None:
        """The master dies and comes back with all that it knew."""
        self._start(encoding.decode(encoding.encode(self.master.to_store()[0]), MasterState))

    @property
    def rendezvous(self) -> RendezvousManager:
        found = self.master.rendezvous
        assert isinstance(found, RendezvousManager)
        return found

    @property
    def present(self) -> WorkerGroup:
        present = self.rendezvous.present
        assert present is not None
        return present

    # Workers ------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        self.incarnations[name] = self.incarnations.get(name, -1) + 1
        assert self.master.join(name, self.incarnations[name], self.now)
        self.holds[name] = self._heard[name] = 0
        self.held[name] = []

    def kill(self, name: str) -> None:
        self.master.on_loss(name, self.incarnations[name], self.now, "was killed")

    def say(
        self,
        name: str,
        *reports: Report,
        join: JoinRequest | None = None,
        want: dict[TaskType, int] | None = None,
        kind: UpdateKind = "done",
        error: Failed | None = None,
        folder: str = "",
    ) -> Answer:
        before = self._heard[name]
        numbered = enumerate(reports, before + 1)
        told = [TaskUpdate(number, kind, report, error, folder=folder) for number, report in numbered]
        request = Request(
            name,
            self.incarnations[name],
            self.master.state.generation,
            tuple(told),
            tuple(self.held[name]),
            want or {},
            before,
            group=self.holds[name],
            join=join,
        )
        found = self.master.exchange(request, self.now)
        self.held[name] += [Report(task) for task in found.tasks]
        self._heard[name] = max(before, found.seen_upto)
        return found

    def join(self, names: Iterable[str], *, after: int | None = None, without: tuple[str, ...] = ()) -> None:
        for name in names:
            join = JoinRequest(f"{name}:1", self.rendezvous.number if after is None else after, without)
            self.say(name, join=join)

    def form(self, names: Iterable[str]) -> None:
        """They have the state of the present group."""
        for name in names:
            self.holds[name] = self.rendezvous.number
            self.say(name)

    def train_together(self, names: Iterable[str]) -> None:
        """A group of these begins, and trains."""
        self.join(names)
        self.pass_time(JOIN_SECS)
        assert set(self.present.members) == set(names)
        self.form(self.present.members)

    def take(self, name: str, kind: TaskType = "train") -> Task | None:
        found = self.say(name, want={kind: 1}).tasks
        return found[0] if found else None

    def work(self, name: str, until: Callable[[Task], bool] = lambda task: False) -> None:
        """Do what it holds and all that there is to do, but not the first task that is as said."""
        want: dict[TaskType, int] = dict.fromkeys((*CONTROL, "train"), 1)
        while not self.master.is_finished:
            if not self.held[name]:
                self.say(name, want=want)
            task = self.held[name][0].task
            if until(task):
                return
            del self.held[name][0]
            self.say(name, finished(task))

    def pass_time(self, seconds: float, speaking: Iterable[str] = ()) -> None:
        """Some of the workers say now and then that they train."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + 0.1)
            self.master.tick(self.now)
            for name in speaking:
                self.say(name)

    def write(self) -> None:
        self.master.on_written(self.master.to_store()[1])
