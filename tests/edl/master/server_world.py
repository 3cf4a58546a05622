"""Master and servers of a job under one random schedule: everybody may die, and every call may be lost.

The master's state machines are the real ones. A server is what `edl.ps` promises: it holds of each task the rows of the
gradients that it took, says how far each lease is, and takes nothing of a lease that was revoked.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Literal

from edl.master.ps.checkpoint_coordinator import CheckpointCoordinator, PendingCheckpoint
from edl.master.ps.ps_manager import Servers
from edl.master.ps.server_slot import Answer, ServerCall
from edl.master.state import MasterState
from edl.master.tasks.recovery import ServerRecovery
from edl.master.tasks.task_manager import TaskManager
from edl.ps.checkpoint.content import Manifest, Mode, Progress, Shard, Version
from edl.ps.checkpoint.manifests import manifest_of
from edl.ps.messages import (
    Arrange,
    Arranged,
    CheckpointTaken,
    Done,
    Figures,
    Reopen,
    Revoke,
    Revoked,
    TakeCheckpoint,
)
from edl.rpc.channel import AwayError
from edl.spec import Checkpoints
from edl.tasks import encoding
from edl.tasks.job_state import Plan
from tests.edl.master.server_processes import Push, Saved, Server

LEASE = 10.0


class World:
    """Master and servers of a job of two epochs. copies: see `edl.spec.Checkpoints`."""

    def __init__(
        self,
        seed: int,
        plan: Plan,
        mode: Mode,
        *,
        servers: int,
        copies: Literal["files", "neighbours"],
    ) -> None:
        self.count = servers
        self.random = random.Random(seed)  # noqa: S311 (a schedule, no secret)
        self.plan = plan
        self.mode = mode
        self.copies = copies
        self.keep = self.random.choice([0, 1, 3])
        self.now = 0.0
        self.durable = b""
        self.notes: list[str] = []
        self.checkpoints: dict[str, Saved] = {}
        # What outlives a server, by index: the generation, and pushes, or names of checkpoints where they were taken.
        self.logs: defaultdict[int, list[tuple[int, Push | str]]] = defaultdict(list)
        self.processes: dict[str, Server] = {}
        self.calls: list[ServerCall] = []
        self.answers: list[tuple[ServerCall, Answer]] = []
        # Those that other servers followed, by generation.
        self.last_checkpoints: dict[int, Saved] = {}
        self.applied = self.counted = 0  # pushes of all servers, and the total that was last shown
        self.start(None)

    @property
    def machines(self) -> list[Server]:
        """Processes of the servers, by index."""
        return [self.process(home) for home in self.master.state.homes[: len(self.servers)]]

    def process(self, home: str) -> Server:
        if home not in self.processes:
            self.processes[home] = Server(home, 0)
        return self.processes[home]

    # The master -------------------------------------------------------------------------------------------

    def start(self, kept: MasterState | None) -> None:
        self.master = TaskManager(self.plan, kept, ServerRecovery, lease_secs=LEASE, log=self.notes.append)
        steps = self.random.choice([0, 5])
        when = Checkpoints(steps=steps, secs=20.0, keep=self.keep, copies=self.copies)
        count = self.count
        checkpoints = CheckpointCoordinator(self.master, when, count)
        self.servers = Servers(self.master, self.mode, count, checkpoints, lambda servers: when)
        self.write()
        state = self.master.state
        for home, place in zip(state.homes, state.all_servers, strict=True):  # as the cluster lists them
            machine = self.process(home)
            if not machine.alive:
                self.servers.on_loss(machine.name, machine.incarnation, self.now)
            if place.instance and place.incarnation < machine.incarnation:
                self.servers.on_loss(place.instance, place.incarnation, self.now)
        self.remove_others()
        self.counted = self.servers.counts.stale  # of the state, which may be behind

    def write(self) -> None:
        kept, marks = self.master.to_store()
        self.durable = encoding.encode(kept)
        self.master.on_written(marks)

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
        self.check_counts()
        for call in self.servers.calls(self.now):
            if isinstance(call.header, Arrange | TakeCheckpoint):
                self.write()
            self.calls.append(call)
        if taking := self.servers.checkpoints.to_complete():
            self.checkpoints[taking.name].complete = True
            if self.random.random() < 0.1:
                self.restart()
            elif self.servers.complete(taking, manifest(taking, self.mode)):
                if taking.last and self.random.random() < 0.1:  # before anything of it is written down
                    self.restart()
                    return
                self.write()
                if taking.last:
                    self.last_checkpoints[taking.version.generation] = self.checkpoints[taking.name]
                if self.random.random() < 0.1:
                    self.restart()
                self.remove_others()

    def check_counts(self) -> None:
        """Check that totals of the job never go down, and count nothing twice."""
        counted = self.servers.counts.stale
        assert self.counted <= counted <= self.applied
        self.counted = counted

    def remove_others(self) -> None:
        if self.copies == "neighbours":
            return
        complete = {name: name for name, checkpoint in self.checkpoints.items() if checkpoint.complete}
        stay = self.servers.checkpoints.list_kept_folders(complete)
        self.checkpoints = {name: checkpoint for name, checkpoint in self.checkpoints.items() if name in stay}
        assert not self.keep or sum(checkpoint.complete for checkpoint in self.checkpoints.values()) <= max(
            self.keep, 2
        )

    # Calls to servers ---------------------------------------------------------------------------------------

    def deliver(self, *, lose_request: bool = False, lose_answer: bool = False) -> None:
        """A call comes to its server, or an answer to the master, in any order."""
        if self.answers and self.random.random() < 0.5:
            call, answer = self.answers.pop(self.random.randrange(len(self.answers)))
            if lose_answer:
                self.servers.on_unanswered(call, AwayError("lost"), self.now)
            else:
                self.servers.on_answer(call, answer, self.now)
        elif self.calls:
            call = self.calls.pop(self.random.randrange(len(self.calls)))
            answer_ = None if lose_request else self.execute(call)
            if answer_ is None:
                self.servers.on_unanswered(call, AwayError("lost"), self.now)
            else:
                self.answers.append((call, answer_))

    def execute(self, call: ServerCall) -> Answer | None:
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
            stale=machine.counted,
        )

    def arrange(self, machine: Server, header: Arrange) -> Answer | None:
        if (header.generation, header.epoch) < machine.at:
            return None
        if (header.generation, header.epoch) > machine.at:
            index = header.index
            machine.rows, machine.progress, machine.void, machine.last = Counter(), {}, set(), {}
            machine.open = bool(header.restore)
            machine.step, machine.counted, machine.sealed = 0, 0, ""
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
                machine.counted = 0
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
        return CheckpointTaken(Version(*machine.at, machine.step), furthest(self.machines))

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
            for push in self.repeated():
                self.send(push, machines)
        unfinished = {
            sender[0]: sender[1]
            for each in machines
            for sender, last in each.admitted.items()
            if each.last.get(sender, 0) != last
        }
        for each in machines:
            each.admitted = {}
        self.checkpoints[header.folder] = Saved(machines, last=True)
        version = Version(*leader.at, leader.step)
        return CheckpointTaken(version, furthest(machines), unfinished=unfinished)

    def repeated(self) -> list[Push]:
        """Return the pushes that workers send again, because some servers have them."""
        return []

    def send(self, push: Push, to: list[Server]) -> bool:
        """Have these servers apply the push; whether all have it."""
        sync = self.mode.kind == "sync"
        if sync and any(machine.sealed for machine in to):
            return False
        for machine in to:
            if sync or (machine.takes(push) and not machine.waits(push)):
                assert machine.arranged is not None
                self.logs[machine.arranged.index].append((machine.at[0], push))
                self.applied += not machine.knows(push)
                machine.apply(push)
        return all(machine.knows(push) for machine in to)

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


def furthest(machines: list[Server]) -> tuple[Progress, ...]:
    """Return the greatest progress of each lease on any server."""
    furthest_last = sorted(
        (part for each in machines for part in each.progress.values()), key=lambda part: part.rows
    )
    return tuple({part.task.attempt: part for part in furthest_last}.values())


def manifest(taking: PendingCheckpoint, mode: Mode) -> Manifest:
    return manifest_of(taking.name, taking.version, mode, [*taking.shards.values()])
