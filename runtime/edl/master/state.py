"""Durable state of a master: the content of its state store.

New fields are added at the end with a default, so that the stored state of a running job stays readable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from edl.jobs.failure import Failed
from edl.jobs.snapshot import ServerCounts
from edl.ps.checkpoint.content import Manifest, Progress
from edl.tasks.job_state import JobState
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import TaskType

COUNTER_BITS = 40  # of a lease's number


class Lease(msgspec.Struct, array_like=True):
    """Lease of one task. `rows`, `steps`, `loss` and `weight` are the done part that the last heartbeat reported.

    `pushed`: all of the task was in the parameters at the last checkpoint, though its worker has not reported it.
    """

    type: TaskType
    number: int
    id: int
    skip: int
    instance: str
    rows: int = 0
    steps: int = 0
    loss: float = 0.0
    pushed: Progress | None = None
    weight: float = 0.0


class LeaseRun(msgspec.Struct, array_like=True):
    """Leases of tasks of which nothing is done: `count` of them, with consecutive numbers and ids from these."""

    lease: int
    type: TaskType
    number: int
    id: int
    instance: str
    count: int = 1

    @property
    def leases(self) -> Iterator[tuple[int, Lease]]:
        for offset in range(self.count):
            yield self.lease + offset, Lease(self.type, self.number, self.id + offset, 0, self.instance)


class Member(msgspec.Struct, array_like=True):
    """Registered instance. `seen` is the second of its last request, `upto` the number of its accepted reports,
    `last_request` the number of its last request.
    """

    incarnation: int
    seen: float
    upto: int = 0
    gone: bool = False
    last_request: int = 0


class Failure(msgspec.Struct, array_like=True):
    """Number of times that a task has raised, and its last error."""

    times: int
    error: Failed


class Checkpoint(msgspec.Struct):
    """Checkpoint to resume training from: its folder, and the job state at that moment.

    `manifest` is set for a checkpoint that the parameter servers hold in memory; `folder` is its name then. `epochs`
    are the server epochs that hold it, by index. A replacement of a lost server holds it as soon as it is arranged.
    """

    folder: str
    job: JobState
    manifest: Manifest | None = None
    epochs: list[int] = msgspec.field(default_factory=list)


class ServerRecord(msgspec.Struct, array_like=True):
    """Instance that serves as the parameter server of an index: `ps-INDEX`, or a worker that stands in for it.

    `address` is host:port, or empty if the instance is lost or has not registered yet. `epoch` counts the processes
    that served the index, from 0; it is -1 before the first. `home` is the name of the instance that serves the index
    unless a worker stands in, `ps-INDEX` if it is empty. `counts` are the present process's in this generation.
    """

    instance: str = ""
    incarnation: int = -1
    address: str = ""
    epoch: int = -1
    home: str = ""
    counts: ServerCounts = ServerCounts()


class ServerChange(msgspec.Struct):
    """Change of the set of parameter servers that is under way. `homes` are the instances to come, by index; `joining`
    are the instances among them that serve no index yet.
    """

    homes: list[str]
    joining: list[ServerRecord]


class ServerLoss(msgspec.Struct, array_like=True):
    """Updates that the server of an index lost in async, as far as known: its replacement `epoch` has restored the
    checkpoint of that name, which lacks `updates` pushes with `rows` rows. Without a server, index -1, they are of a
    worker that ended, and some servers have them; the checkpoint is the last one before.
    """

    index: int
    epoch: int
    checkpoint: str
    updates: int = 0
    rows: int = 0


class Holder(msgspec.Struct, array_like=True):
    """Incarnation that holds the trained state. `group` is the number of the last group that it reported, `led` the
    last one that it was the first member of.
    """

    instance: str
    incarnation: int
    group: int = 0
    led: int = 0


class Pause(msgspec.Struct, array_like=True):
    """Exclusion of an instance from groups until the second `until`. `times` counts its exclusions, `group` is the one
    in which the last one was decided, `why` the reason.
    """

    until: float
    times: int
    group: int
    why: str


class RendezvousState(msgspec.Struct):
    """Durable state of the rendezvous.

    `number` is the last group's number, `present` the current group, `incarnations` its members' incarnations.
    `holders` hold the trained state, the longest holder first. `pauses` are by instance. `vain` counts consecutive
    groups that trained nothing though all members came back.
    """

    number: int = 0
    present: WorkerGroup | None = None
    incarnations: tuple[int, ...] = ()
    holders: list[Holder] = []
    pauses: dict[str, Pause] = {}
    vain: int = 0


class MasterState(msgspec.Struct):
    """Durable state of a job. `seconds` count from the start of the job.

    `revoking` holds leases of lost workers' training tasks until the parameter servers have reported their progress.
    `servers` is ordered by index. `workers` is the wanted number of workers if it was changed from the JobSpec's;
    `server_count` is the number of servers in the same way, and `server_change` a change that is under way. Servers
    that join get names from the number `next_server`, because the cluster knows the incarnations of earlier ones.
    `server_counts` are the counts of earlier processes and generations. `began` is the second from which the job's
    deadline counts: its start, or its last resumption. `digest` is the digest of the rows, the same for all masters of
    the job. `written` is the date of the last write in seconds since 1970, 0 before a pause: the time without a master
    is time of the job too. `held` is why the job is paused without a wish, and `resumed` the last wish to resume it
    before that. `kept` is the last checkpoint that was kept outside of the pods. `lease_runs` are further leases in the
    stored state: workers hold many tasks in advance.
    """

    epoch: int = 0  # epoch of the master
    counter: int = 0
    generation: int = 1
    seconds: float = 0.0
    job: JobState | None = None
    leases: dict[int, Lease] = {}
    members: dict[str, Member] = {}
    failures: dict[str, Failure] = {}
    done: dict[TaskType, int] = {}
    checkpoint: Checkpoint | None = None
    pending_checkpoints: list[Checkpoint] = msgspec.field(default_factory=list)
    failed: Failed | None = None
    cancelled: str = ""
    metric_kinds: dict[str, str] = {}
    revoking: dict[int, Lease] = {}
    servers: list[ServerRecord] = []
    rendezvous: RendezvousState = msgspec.field(default_factory=RendezvousState)
    losses: list[ServerLoss] = []
    workers: int | None = None
    began: float = 0.0
    digest: str = ""
    server_count: int | None = None
    server_change: ServerChange | None = None
    next_server: int = 0
    server_counts: ServerCounts = ServerCounts()
    written: float = 0.0
    held: str = ""
    resumed: str = ""
    kept: str = ""
    lease_runs: list[LeaseRun] = []

    def with_runs(self) -> MasterState:
        """Return the state to store, with most leases as runs."""
        leases, runs = _find_runs(self.leases)
        return msgspec.structs.replace(self, leases=leases, lease_runs=runs)

    def expand_runs(self) -> None:
        """Undo `with_runs`."""
        for run in self.lease_runs:
            self.leases.update(run.leases)
        self.leases = dict(sorted(self.leases.items()))
        self.lease_runs = []

    def begin_epoch(self) -> None:
        """Begin the epoch of a new master. From its point of view, every member was seen just now."""
        self.epoch += 1
        self.counter = 0
        for member in self.members.values():
            member.seen = self.seconds

    # Members --------------------------------------------------------------------------------------------------

    def is_alive(self, instance: str, incarnation: int) -> bool:
        """Return True if the incarnation is registered and not given up."""
        member = self.members.get(instance)
        return member is not None and member.incarnation == incarnation and not member.gone

    # Tasks ----------------------------------------------------------------------------------------------------

    @property
    def last_lease(self) -> int:
        """Greatest lease number assigned so far: the epoch of the master, then a counter."""
        return (self.epoch << COUNTER_BITS) + self.counter

    def next_lease(self) -> int:
        """Return a new lease number."""
        self.counter += 1
        return self.last_lease

    def of_type(self, kind: TaskType) -> dict[int, Lease]:
        """Return the leases of tasks of a type, by number."""
        return {number: lease for number, lease in self.leases.items() if lease.type == kind}

    def count_done(self, kind: TaskType, key: str) -> None:
        """Count a done task, and forget that the task of this key has raised."""
        self.failures.pop(key, None)
        self.done[kind] = self.done.get(kind, 0) + 1

    def count_failure(self, key: str, error: Failed) -> int:
        """Return how often the task of this key has raised by now."""
        earlier = self.failures.get(key)
        failure = self.failures[key] = Failure(earlier.times + 1 if earlier else 1, error)
        return failure.times

    # Checkpoints ----------------------------------------------------------------------------------------------

    @property
    def checkpoint_name(self) -> str:
        """Name of the checkpoint to go back to, or empty."""
        return self.checkpoint.folder if self.checkpoint else ""

    @property
    def checkpoint_step(self) -> int:
        """Optimizer step of the checkpoint to go back to; 0 without one."""
        return self.checkpoint.job.step if self.checkpoint else 0

    def begin_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Record a checkpoint that is being written; two may be at a time."""
        self.pending_checkpoints = [*self.pending_checkpoints[-1:], checkpoint]

    def end_checkpoint(self, name: str) -> None:
        """Make the written checkpoint of this name the one to go back to."""
        ended = [checkpoint for checkpoint in self.pending_checkpoints if checkpoint.folder == name]
        self.checkpoint = ended[-1] if ended else self.checkpoint
        self.pending_checkpoints = [
            checkpoint_left for checkpoint_left in self.pending_checkpoints if checkpoint_left not in ended
        ]

    def go_back(self) -> JobState | None:
        """Begin the next generation, without any task; return the job at the checkpoint, None at the start."""
        self.generation += 1
        self.pending_checkpoints = []
        self.leases.clear()
        self.revoking.clear()
        self.keep_counts(self.all_servers)
        # What was lost since the checkpoint is computed again.
        self.losses = [loss for loss in self.losses if loss.checkpoint < self.checkpoint_name]
        return self.checkpoint.job if self.checkpoint else None

    # Parameter servers ----------------------------------------------------------------------------------------

    @property
    def all_servers(self) -> list[ServerRecord]:
        """Servers by index, then the servers that join them when the change under way is complete."""
        return [*self.servers, *(self.server_change.joining if self.server_change else ())]

    @property
    def homes(self) -> list[str]:
        """Names of the instances of `all_servers`, apart from workers that stand in."""
        return [record.home or f"ps-{index}" for index, record in enumerate(self.all_servers)]

    def begin_server_change(self, count: int, leaving: Collection[str] = ()) -> None:
        """Begin to have `count` servers, without the instances `leaving`."""
        self.next_server = max(self.next_server, len(self.servers))
        stay = [home for home in self.homes if home not in leaving][:count]
        names = [f"ps-{self.next_server + number}" for number in range(count - len(stay))]
        self.next_server += len(names)
        self.server_change = ServerChange([*stay, *names], [ServerRecord(home=name) for name in names])

    def end_server_change(self) -> None:
        """Begin with the servers that were to come."""
        assert self.server_change is not None  # noqa: S101 - the caller has begun it
        self.keep_counts(self.all_servers)
        records = dict(zip(self.homes, self.all_servers, strict=True))
        self.servers = [records[home] for home in self.server_change.homes]
        for home, record in zip(self.server_change.homes, self.servers, strict=True):
            record.home = home
        self.server_count, self.server_change = len(self.servers), None

    def keep_counts(self, records: Iterable[ServerRecord]) -> None:
        """Keep the counts of servers that end, or begin to count anew."""
        for record in records:
            self.server_counts, record.counts = self.server_counts + record.counts, ServerCounts()

    def reset_servers(self, count: int) -> None:
        """Begin with `count` servers, and forget a checkpoint in the memory of others."""
        self.keep_counts(self.all_servers)
        self.servers = [ServerRecord() for _ in range(count)]
        self.server_change = None
        if self.checkpoint is not None and self.checkpoint.manifest is not None:
            self.checkpoint = None


def _find_runs(leases: Mapping[int, Lease]) -> tuple[dict[int, Lease], list[LeaseRun]]:
    """Divide leases into single ones, of tasks that are done in part, and runs."""
    others: dict[int, Lease] = {}
    runs: list[LeaseRun] = []
    for number, lease in sorted(leases.items()):
        if lease != Lease(lease.type, lease.number, lease.id, 0, lease.instance):
            others[number] = lease
            continue
        last = runs[-1] if runs else None
        continues = last is not None and (
            (last.lease + last.count, last.type, last.number, last.id + last.count, last.instance)
            == (number, lease.type, lease.number, lease.id, lease.instance)
        )
        if last is not None and continues:
            last.count += 1
        else:
            runs.append(LeaseRun(number, lease.type, lease.number, lease.id, lease.instance))
    return others, runs
