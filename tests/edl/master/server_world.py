"""One job with parameter servers under one random schedule: everybody may die, and every call may be lost.

The master's state machines are the real ones. A server is what `edl.ps` promises: it holds of each task the rows whose
gradients it took, says how far each lease is, and takes nothing of a lease that was revoked.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

from edl.errors import JobError
from edl.jobs.failure import to_failed
from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator, PendingCheckpoint
from edl.master.ps.ps_manager import Servers
from edl.master.ps.server_slot import Answer, Call
from edl.master.state import MasterState
from edl.master.tasks.recovery import ServerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.manifests import manifest_of
from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Done,
    Figures,
    Manifest,
    Mode,
    Progress,
    Reopen,
    Revoke,
    Revoked,
    Shard,
    TakeCheckpoint,
    Version,
)
from edl.rpc.channel import AwayError
from edl.spec import Checkpoints
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from edl.tasks.task import CONTROL, Report, Task, TaskType
from edl.worker.outbox import Outbox
from tests.edl.master.test_schedules import finished

LEASE = 10.0
PIECE = 4096  # rows of a push
WANT: dict[TaskType, int] = {"evaluate": 1, "conclude": 1, "export": 1, "train": 2}

Rows = Counter[tuple[int, int, int]]  # epoch, task, the first row of a piece: how often it is in


class Push(NamedTuple):
    """One push: sender and sequence identify it, piece is what it adds."""

    sender: tuple[str, int]
    sequence: int
    piece: tuple[int, int, int]
    progress: Progress


class Server:
    """One process. rows, progress, void, last, sealed, admitted: as `edl.ps` keeps them."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.last: dict[tuple[str, int], int] = {}
        self.sealed = ""
        self.admitted: dict[tuple[str, int], int] = {}
        self.name = name
        self.incarnation = incarnation
        self.address = f"{self.name}:{incarnation}"
        self.alive = True
        self.registered = False
        self.arranged: Arrange | None = None
        self.open = False
        self.step = 0
        self.rows: Rows = Counter()
        self.progress: dict[int, Progress] = {}
        self.void: set[int] = set()
        self.written: dict[str, Shard] = {}
        self.memory: set[tuple[str, int]] = set()  # cuts, and whose shards of them

    def refuses(self, lease: int) -> bool:
        """Return True if the lease was revoked, in its time or before."""
        assert self.arranged is not None
        before = lease <= self.arranged.leased and lease not in self.arranged.valid
        return before or lease in self.void

    def knows(self, push: Push) -> bool:
        return push.sequence <= self.last.get(push.sender, 0)

    def apply(self, push: Push) -> None:
        if not self.knows(push):
            self.last[push.sender] = push.sequence
            self.progress[push.progress.task.attempt] = push.progress
            self.step += 1
            self.rows[push.piece] += 1

    def replay(self, log: list[tuple[int, Push | str]], generation: int, since: str) -> None:
        """Apply what the log has of the generation, behind the checkpoint if that is of it."""
        entries = [entry for at, entry in log if at == generation]
        for entry in entries[entries.index(since) + 1 if since else 0 :]:
            if isinstance(entry, Push):
                self.apply(entry)

    def takes(self, push: Push) -> bool:
        return self.knows(push) or not self.refuses(push.progress.task.attempt)

    def waits(self, push: Push) -> bool:
        """Return True if the push has to be repeated, as other servers may follow."""
        return bool(self.sealed) and push.sequence > max(
            self.last.get(push.sender, 0), self.admitted.get(push.sender, 0)
        )

    @property
    def at(self) -> tuple[int, int]:
        return (self.arranged.generation, self.arranged.epoch) if self.arranged else (-1, -1)


class Saved:
    """A cut on disk, or on its way there."""

    def __init__(self, servers: list[Server], *, last: bool = False) -> None:
        self.is_last = last  # it is a file in any case
        self.rows = [Counter(server.rows) for server in servers]
        self.last = [dict(server.last) for server in servers]
        self.progress = [dict(server.progress) for server in servers]
        self.void = [set(server.void) for server in servers]
        self.generation = servers[0].at[0]
        self.step = servers[0].step
        self.servers = list(servers)
        self.writing = list(servers)
        self.complete = False

    def rows_of(self, index: int, count: int) -> Rows:
        """Return the start of a server: its shard, or its part of all of them."""
        if count == len(self.rows):
            return Counter(self.rows[index])
        found: Rows = Counter()
        for each in self.rows:
            found |= each
        return found


class Worker:
    """Does what a worker does, a step at a time."""

    def __init__(self, name: str, incarnation: int) -> None:
        self.outbox = Outbox(name, incarnation)
        self.task: Task | None = None
        self.done = 0  # rows of it that are pushed
        self.sequence = 0
        self.pending: Push | None = None  # one that was not answered
        self.generation = 0  # in which it was made


class World:
    """A job of two epochs. deaths: of servers, too. halves: of workers between two pushes of one gradient, in async.
    copies: see `edl.spec.Checkpoints`. changes: of the number of servers."""

    def __init__(
        self,
        seed: int,
        plan: Plan,
        mode: Mode,
        *,
        servers: int,
        workers: int,
        deaths: bool,
        halves: bool,
        copies: Literal["files", "neighbours"],
        changes: bool = False,
    ) -> None:
        self.count = servers
        self.changes = changes
        self.random = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        self.plan = plan
        self.mode = mode
        self.deaths = deaths
        self.halves = halves
        self.copies = copies
        self.keep = self.random.choice([0, 1, 3])
        self.now = 0.0
        self.durable = b""
        self.notes: list[str] = []
        self.checkpoints: dict[str, Saved] = {}
        self.acknowledged: set[tuple[int, int, int, int]] = set()  # generation, and the piece
        # What outlives a server, by index: the generation, and pushes, or names of checkpoints where they were taken.
        self.logs: defaultdict[int, list[tuple[int, Push | str]]] = defaultdict(list)
        self.processes: dict[str, Server] = {}
        self.workers = [Worker(f"worker-{number}", 0) for number in range(workers)]
        self.calls: list[Call] = []
        self.answers: list[tuple[Call, Answer]] = []
        self.exports = 0
        self.abandoned: set[tuple[int, int]] = set()  # pieces, by epoch and first row
        # Those that other servers followed, by generation.
        self.last_checkpoints: dict[int, Saved] = {}
        self.start(None)

    @property
    def machines(self) -> list[Server]:
        """Processes of the servers, by index."""
        return [self.process(home) for home in self.master.state.homes[: len(self.servers)]]

    def process(self, home: str) -> Server:
        return self.processes.setdefault(home, Server(home, 0))

    # The master -------------------------------------------------------------------------------------------

    def start(self, kept: MasterState | None) -> None:
        self.master = TaskManager(self.plan, kept, ServerRecovery, lease_secs=LEASE, log=self.notes.append)
        steps = self.random.choice([0, 5])
        when = Checkpoints(steps=steps, secs=20.0, keep=self.keep, copies=self.copies)
        count = self.count
        self.servers = Servers(self.master, self.mode, count, CheckpointCoordinator(self.master, when, count))
        self.write()
        state = self.master.state
        for home, place in zip(state.homes, state.all_servers, strict=True):  # as the cluster lists them
            machine = self.process(home)
            if not machine.alive:
                self.servers.lost(machine.name, machine.incarnation, self.now)
            if place.instance and place.incarnation < machine.incarnation:
                self.servers.lost(place.instance, place.incarnation, self.now)
        self.remove_others()

    def write(self) -> None:
        kept, marks = self.master.to_store()
        self.durable = encoding.encode(kept)
        self.master.written(marks)

    def restart(self) -> None:
        """The master dies, and is back with what it had written down; calls of it may still be on their way."""
        for call in self.calls:
            if self.random.random() < 0.5:
                self.execute(call)
        self.calls.clear()
        self.answers.clear()
        kept = encoding.decode(self.durable, MasterState)
        self.now = max(self.now, kept.seconds)
        self.start(kept)

    def tick(self) -> None:
        self.master.tick(self.now)
        self.servers.tick(self.now)
        for call in self.servers.calls(self.now):
            if isinstance(call.header, Arrange | TakeCheckpoint):
                self.write()
            self.calls.append(call)
        if taking := self.servers.checkpoints.to_complete():
            self.checkpoints[taking.name].complete = True
            if self.random.random() < 0.1:
                self.restart()
            elif self.servers.completed(taking, manifest(taking, self.mode)):
                if taking.last and self.random.random() < 0.1:  # before anything of it is written down
                    self.restart()
                    return
                self.write()
                if taking.last:
                    self.last_checkpoints[taking.version.generation] = self.checkpoints[taking.name]
                if self.random.random() < 0.1:
                    self.restart()
                self.remove_others()

    def remove_others(self) -> None:
        if self.copies == "neighbours":
            return
        complete = [name for name, checkpoint in self.checkpoints.items() if checkpoint.complete]
        stay = self.servers.checkpoints.kept(complete)
        self.checkpoints = {name: checkpoint for name, checkpoint in self.checkpoints.items() if name in stay}
        assert (
            not self.keep or sum(checkpoint.complete for checkpoint in self.checkpoints.values()) <= self.keep
        )

    # Calls to servers ---------------------------------------------------------------------------------------

    def deliver(self, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        """A call comes to its server, or an answer to the master, in any order."""
        if self.answers and self.random.random() < 0.5:
            call, answer = self.answers.pop(self.random.randrange(len(self.answers)))
            if lose_answer:
                self.servers.unanswered(call, AwayError("lost"), self.now)
            else:
                self.servers.answered(call, answer, self.now)
        elif self.calls:
            call = self.calls.pop(self.random.randrange(len(self.calls)))
            answer_ = None if lose_request else self.execute(call)
            if answer_ is None:
                self.servers.unanswered(call, AwayError("lost"), self.now)
            else:
                self.answers.append((call, answer_))

    def execute(self, call: Call) -> Answer | None:
        machine = next((each for each in self.processes.values() if each.address == call.address), None)
        if machine is None or not machine.alive:
            return None
        header = call.header
        if isinstance(header, Arrange):
            return self.arrange(machine, header)
        if isinstance(header, Revoke):
            if machine.at[0] != header.generation:
                return None
            machine.void.update(header.leases)
            return Revoked(tuple(machine.progress[n] for n in header.leases if n in machine.progress))
        if isinstance(header, TakeCheckpoint):
            return self.checkpoint(machine, header)
        if isinstance(header, Reopen):
            if machine.at[0] == header.generation and machine.sealed <= header.checkpoint:
                machine.sealed = ""
            return Done()
        version = Version(*machine.at, machine.step)
        return Figures(
            call.index,
            machine.at[0],
            version,
            open=machine.open,
            written=dict(machine.written),
            sealed=machine.sealed,
        )

    def arrange(self, machine: Server, header: Arrange) -> Answer | None:
        if (header.generation, header.epoch) < machine.at:
            return None
        if (header.generation, header.epoch) > machine.at:
            index = header.index
            machine.rows, machine.progress, machine.void, machine.last = Counter(), {}, set(), {}
            machine.open = bool(header.restore)
            machine.step, machine.sealed = 0, ""
            if header.restore:
                saved = self.checkpoints[header.restore]  # it is there
                assert saved.complete
                if header.manifest and not self.fetch(machine, header):
                    return None
                machine.rows, machine.step = saved.rows_of(index, len(header.addresses)), saved.step
                if (
                    header.epoch > 0 and saved.generation == header.generation
                ):  # it goes on for the leases of then
                    machine.progress, machine.void = dict(saved.progress[index]), set(saved.void[index])
                    machine.last = dict(saved.last[index])
                if self.mode.logs_updates:
                    same = saved.generation == header.generation
                    machine.replay(self.logs[index], header.generation, header.restore if same else "")
        machine.arranged = header
        return Arranged(Version(*machine.at, machine.step), machine.open, machine.open)

    def fetch(self, machine: Server, header: Arrange) -> bool:
        """What a server is to hold of a cut, from the servers beside it; whether they answer. They have it."""
        count = len(header.addresses)
        machines = {each.address: each for each in self.processes.values()}
        own, before = header.index, (header.index - 1) % count
        for index, holder in ((own, (own + 1) % count), (before, before)):
            shard = (header.restore, index)
            if shard not in machine.memory:
                other = machines.get(header.addresses[holder])
                if other is None or not other.alive:
                    return False
                assert shard in other.memory
                machine.memory.add(shard)
        return True

    def checkpoint(self, machine: Server, header: TakeCheckpoint) -> Answer | None:
        if not self.together or machine.at[0] != header.generation or not machine.open:
            return None
        if header.last:
            return self.close(machine, header)
        self.checkpoints[header.folder] = Saved(self.machines)
        for index in range(len(self.machines)):
            self.logs[index].append((header.generation, header.folder))
        for each in self.machines if header.memory else ():
            each.memory = {
                shard for shard in each.memory if shard[0] >= header.folder or shard[0] in header.kept
            }
        return CheckpointTaken(Version(*machine.at, machine.step), tuple(machine.progress.values()))

    def close(self, leader: Server, header: TakeCheckpoint) -> Answer | None:
        """Take the last checkpoint of these servers; some may be sealed alone."""
        machines = self.machines
        if any(each.sealed > header.folder for each in machines):
            return None
        failing = self.random.random() < 0.2
        for each in (
            self.random.sample(machines, self.random.randrange(len(machines))) if failing else machines
        ):
            each.sealed, each.admitted = header.folder, {}
        if failing:
            return None
        if self.mode.kind == "async":
            for sender in {sender for each in machines for sender in each.last}:
                last = max(each.last.get(sender, 0) for each in machines)
                for each in machines:
                    each.admitted[sender] = last
            for worker in self.workers:  # most repeat what some servers have
                if worker.pending is not None and self.random.random() < 0.8:
                    self.send(worker.pending, machines)
        unfinished = {
            sender[0]: sender[1]
            for each in machines
            for sender, last in each.admitted.items()
            if each.last.get(sender, 0) != last
        }
        for each in machines:
            each.admitted = {}
        self.checkpoints[header.folder] = Saved(machines, last=True)
        furthest_last = sorted(
            (part for each in machines for part in each.progress.values()), key=lambda part: part.rows
        )
        progress = {part.task.attempt: part for part in furthest_last}
        version = Version(*leader.at, leader.step)
        return CheckpointTaken(version, tuple(progress.values()), unfinished=unfinished)

    @property
    def together(self) -> bool:
        """Return True if all servers are there, and know one another."""
        first = self.machines[0].arranged
        addresses = tuple(machine.address for machine in self.machines)
        return all(
            machine.alive
            and machine.arranged is not None
            and first is not None
            and machine.arranged.generation == first.generation
            and machine.arranged.addresses == addresses
            for machine in self.machines
        )

    def write_shard(self) -> None:
        for name, saved in self.checkpoints.items():
            for machine in list(saved.writing):
                if machine.alive and self.random.random() < 0.5:
                    index = saved.servers.index(machine)
                    if self.copies == "neighbours" and not saved.is_last:
                        after = saved.servers[(index + 1) % len(saved.servers)]
                        if not after.alive:
                            continue
                        machine.memory.add((name, index))
                        after.memory.add((name, index))
                    saved.writing.remove(machine)
                    machine.written[name] = Shard(index, f"server-{index}.safetensors")

    # Workers ------------------------------------------------------------------------------------------------

    def call(self, worker: Worker, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        box = worker.outbox
        if lose_request:
            return
        if box.rejoin:
            joined = self.master.join(box.instance, box.incarnation, self.now)
            self.write()
            if joined is None:
                self.replace(worker)
            elif not lose_answer:
                box.joined(joined)
            return
        answer = self.master.exchange(box.request(WANT), self.now)
        if answer.tasks:
            self.write()  # a lease is written down before it is told
        if not lose_answer:
            box.answered(answer)

    def do(self, worker: Worker) -> None:
        """Push a piece of the task in hands, or finish it, or begin another."""
        task = worker.task
        if task is None:
            worker.task, worker.done, worker.pending = worker.outbox.take(*CONTROL, "train"), 0, None
        elif not worker.outbox.valid(task):
            if worker.generation == self.master.state.generation:  # it was given up
                self.abandon(worker)
            worker.task = None
        elif task.type != "train" or (worker.pending is None and worker.done == task.rows):
            self.exports += task.type == "export"
            worker.outbox.report("done", finished(task))
            worker.task = None
        else:
            self.push(worker, task)

    def push(self, worker: Worker, task: Task) -> None:
        servers, first = worker.outbox.servers, self.machines[0]
        here = tuple(machine.address for machine in self.machines)
        if (
            servers is None
            or not self.together
            or (servers.generation, servers.addresses) != (first.at[0], here)
        ):
            return
        for machine in self.machines:
            machine.open = True
        worker.generation = first.at[0]
        push = worker.pending = worker.pending or self.next_push(worker, task)
        if self.mode.logs_updates and self.deaths and self.random.random() < 0.03:
            self.die_in(push)
            return
        reached = self.machines
        if (
            self.changes and self.mode.kind == "async" and self.random.random() < 0.1
        ):  # some servers answer later, when it is repeated
            reached = self.random.sample(self.machines, self.random.randrange(len(self.machines)))
            self.send(push, reached)
            return
        if self.halves and self.random.random() < 0.02:  # it dies between two pushes
            reached = self.random.sample(self.machines, self.random.randrange(len(self.machines)))
            self.kill_worker(worker)
        if self.mode.kind == "sync":  # a ticket of server 0 is good on all
            taken = [] if first.refuses(task.attempt) else reached
        else:
            taken = [machine for machine in reached if machine.takes(push)]
        if not self.send(push, taken):
            return
        if len(taken) < len(reached):
            self.abandon(worker)
            worker.outbox.report("given back", Report(task))
            worker.task = None
        elif len(taken) == len(self.machines):
            self.acknowledged.add((first.at[0], *push.piece))
        worker.pending = None

    def send(self, push: Push, to: list[Server]) -> bool:
        """Have these servers apply the push; whether all have it."""
        sync = self.mode.kind == "sync"
        if sync and any(machine.sealed for machine in to):
            return False
        for machine in to:
            if sync or (machine.takes(push) and not machine.waits(push)):
                assert machine.arranged is not None
                self.logs[machine.arranged.index].append((machine.at[0], push))
                machine.apply(push)
        return all(machine.knows(push) for machine in to)

    def next_push(self, worker: Worker, task: Task) -> Push:
        start = task.start + task.skip + worker.done
        worker.done += min(PIECE, task.rows - worker.done)
        worker.sequence += 1
        progress = Progress(task, worker.done, -(-worker.done // 512), 2.0 * worker.done, float(worker.done))
        box = worker.outbox
        return Push((box.instance, box.incarnation), worker.sequence, (task.number, task.id, start), progress)

    def die_in(self, push: Push) -> None:
        """A server is killed when it has logged a push that some others have taken, before or after it applied it."""
        count = self.random.randrange(len(self.machines))
        self.send(push, self.machines[: count + 1])
        machine = self.machines[count]
        machine.alive = False
        self.see(machine)

    def replace(self, worker: Worker) -> None:
        new = Worker(worker.outbox.instance, worker.outbox.incarnation + 1)
        self.workers[self.workers.index(worker)] = new

    def abandon(self, worker: Worker) -> None:
        """The worker does not finish a push that some servers may have."""
        if worker.pending is not None:
            self.abandoned.add((worker.pending.piece[0], worker.pending.piece[2]))

    def kill_worker(self, worker: Worker) -> None:
        self.abandon(worker)
        self.replace(worker)
        if self.random.random() < 0.5:  # the cluster sees it; else the lease runs out
            self.master.lost(worker.outbox.instance, worker.outbox.incarnation, self.now)

    def drain(self, worker: Worker) -> None:
        pushing = worker.pending is not None  # it ends that first
        if worker.task is not None and worker.outbox.valid(worker.task) and not pushing:
            worker.outbox.report("given back", Report(worker.task, worker.done))
            worker.task = None
            worker.outbox.give_back_received()

    def raise_error(self, worker: Worker) -> None:
        """A task fails in its middle, with a part of it pushed; once in a job."""
        if worker.task is not None and worker.task.type == "train" and not self.master.state.failures:
            self.abandon(worker)
            worker.outbox.report("failed", Report(worker.task), error=to_failed(OSError("no"), ""))
            worker.task = None

    # Instances ----------------------------------------------------------------------------------------------

    def kill_server(self) -> None:
        spared = (
            self.copies == "neighbours" and self.master.state.checkpoint is None
        )  # so that there is one to lose
        if self.deaths and not spared:
            machine = self.process(self.random.choice(self.master.state.homes))
            if machine.alive:
                machine.alive = False
                self.see(machine)

    def see(self, machine: Server) -> None:
        """The cluster tells of its end, now or later."""
        if self.random.random() < 0.7:
            self.servers.lost(machine.name, machine.incarnation, self.now, "was killed")

    def start_server(self, home: str = "") -> None:
        """A server registers; one that died is replaced first."""
        home = home or self.random.choice(self.master.state.homes)
        machine = self.process(home)
        if not machine.alive:
            self.servers.lost(machine.name, machine.incarnation, self.now, "was killed")
            if home not in self.master.state.homes:  # it was to replace another one, which is lost
                return
            machine = self.processes[home] = Server(home, machine.incarnation + 1)
        place = self.master.state.all_servers[self.master.state.homes.index(home)]
        if (place.incarnation, place.address) != (machine.incarnation, machine.address):
            assert self.servers.register(machine.name, machine.incarnation, machine.address, self.now)
            self.write()

    def scale(self) -> None:
        """A user changes the number of servers, or a node is to be emptied."""
        if not self.changes:
            return
        homes = self.master.state.homes
        with contextlib.suppress(JobError):
            if self.random.random() < 0.3 and self.master.state.server_change is None:
                self.servers.scale(len(self.servers), [self.random.choice(homes)])
            else:
                self.servers.scale(self.random.randint(1, 4))
        if self.random.random() < 0.8:
            self.write()

    # Schedules ----------------------------------------------------------------------------------------------

    def step(self) -> None:
        worker = self.random.choice(self.workers)
        actions: dict[Callable[[], object], int] = {
            partial(self.call, worker): 30,
            partial(self.do, worker): 60,
            partial(self.call, worker, lose_request=True): 4,
            partial(self.call, worker, lose_answer=True): 4,
            self.deliver: 40,
            partial(self.deliver, lose_request=True): 3,
            partial(self.deliver, lose_answer=True): 3,
            self.write_shard: 10,
            self.tick: 30,
            self.pass_time: 6,
            self.write: 3,
            self.start_server: 12,
            self.scale: 2,
            partial(self.kill_worker, worker): 2,
            self.kill_server: 2 if self.copies == "files" else 8,
            self.restart: 2,
            partial(self.drain, worker): 2,
            partial(self.raise_error, worker): 1,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        action()

    def pass_time(self) -> None:
        self.now += self.random.random() * LEASE / 2
        self.tick()

    def finish(self) -> None:
        """From now on nothing goes wrong."""
        for _ in range(5_000):
            if self.master.finished:
                return
            for home in list(self.master.state.homes):
                if home in self.master.state.homes:
                    self.start_server(home)
            self.tick()
            while self.calls or self.answers:
                self.deliver()
            self.write_shard()
            for worker in list(self.workers):
                self.call(worker)
                self.do(worker)
            self.now += 0.3
        raise AssertionError("the job does not end")


def manifest(taking: PendingCheckpoint, mode: Mode) -> Manifest:
    return manifest_of(taking.name, taking.version, mode, [*taking.shards.values()])


def run(
    seed: int,
    plan: Plan,
    mode: Mode,
    *,
    servers: int = 2,
    workers: int = 3,
    deaths: bool = True,
    halves: bool = False,
    copies: Literal["files", "neighbours"] = "files",
    changes: bool = False,
) -> World:
    world = World(
        seed,
        plan,
        mode,
        servers=servers,
        workers=workers,
        deaths=deaths,
        halves=halves,
        copies=copies,
        changes=changes,
    )
    for _ in range(600):
        if world.master.finished:
            break
        world.step()
    world.finish()
    return world
