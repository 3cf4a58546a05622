"""Status of a running job: `cluster/snapshot.json`, replaced by the master on changes, at most once a second."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.files import replace_file

WAITING = "waiting for a slot"  # state of an instance without room


class Counts(msgspec.Struct, frozen=True):
    """Tasks of one kind."""

    todo: int = 0
    doing: int = 0
    done: int = 0


class InstanceLoad(msgspec.Struct, frozen=True):
    """Load of a parameter server. `rows` and `bytes` are what it holds; `pulled` and `pushed` are recent rows per
    second; `busy` is the fraction of time in calls, above 1 if calls overlapped. `tables` are the rows by table.
    """

    rows: int = 0
    bytes: int = 0
    pulled: float = 0.0
    pushed: float = 0.0
    busy: float = 0.0
    tables: dict[str, int] = {}


class Staleness(msgspec.Struct, frozen=True):
    """Staleness of asynchronous gradients: updates of a server between the pull and the push of each.

    `total` is the sum over `gradients`, `reduced` the number of those beyond `train.max_staleness`.
    """

    gradients: int = 0
    total: int = 0
    maximum: int = 0
    reduced: int = 0

    def __add__(self, other: Staleness) -> Staleness:
        return Staleness(
            self.gradients + other.gradients,
            self.total + other.total,
            max(self.maximum, other.maximum),
            self.reduced + other.reduced,
        )

    @property
    def mean(self) -> float:
        return self.total / self.gradients if self.gradients else 0.0


class ServerCounts(msgspec.Struct, frozen=True):
    """Events of parameter servers: `evicted` rows, `refused` gradients of ids without a row yet, `stale` gradients of
    `sync`, which are computed again, and the staleness of gradients of `async`.
    """

    evicted: int = 0
    refused: int = 0
    stale: int = 0
    staleness: Staleness = Staleness()

    def __add__(self, other: ServerCounts) -> ServerCounts:
        return ServerCounts(
            self.evicted + other.evicted,
            self.refused + other.refused,
            self.stale + other.stale,
            self.staleness + other.staleness,
        )


class Row(msgspec.Struct, frozen=True):
    """Status of an instance. `state` is a state of `edl.cluster.Change`, or what the master knows better: `WAITING`.

    `address` is where its own server listens, if it has one. `relaunches` counts starts of its name after the first.
    `task` describes its work. `rate` is a worker's recent rows per second. `load` is the load of a parameter server.
    `note` is `hot` for a server with more load than the others, `straggling` for one slower than the others at equal
    load, and for a worker outside of the group `joins` or the reason why it is left out; what the instance does not
    reach; and the exit reason of the previous incarnation.
    """

    name: str
    role: str
    incarnation: int
    state: str
    place: str = ""
    address: str = ""
    relaunches: int = 0
    task: str = ""
    rate: float = 0.0
    load: InstanceLoad | None = None
    note: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """Status of a job. Times are UTC in ISO 8601. `epoch` counts from 1, 0 if there is none.

    `rows` are done, over all epochs. `step` counts trained minibatches. `loss` is the mean of this epoch so far. `rate`
    is recent rows per second. `tasks` are by kind (`train`, `evaluate`, `predict`, `export`). `generation` grows when
    the job is rolled back to a checkpoint, and `checkpoint` is the last complete one. `group` is the number of the last
    worker group of an all-reduce job, and `members` are its workers, the leader first. `lost_updates` and `lost_rows`
    were applied by parameter servers, and lost. `counts` cover all servers since the start of the job, also earlier
    ones. `workers` is the wanted number of workers, `servers` the number of parameter servers, `wanted_servers` their
    number after the change that is under way, described by `server_change`. `paused`: no instance runs, and none will
    until the job is resumed; `kept`: its checkpoint is in its data source, and outlives all pods. `phase`, `total`,
    `seconds` and `limit` are as in `edl.jobs.events.Progress`, `scaling` as in `Tally` there; of a search `rows` counts
    ended trials.
    """

    started: str
    updated: str
    tasks: dict[str, Counts] = {}
    epoch: int = 0
    epochs: int = 0
    rows: int = 0
    instances: tuple[Row, ...] = ()
    generation: int = 0
    master_relaunches: int = 0
    checkpoint: str = ""
    step: int = 0
    loss: float | None = None
    rate: float = 0.0
    group: int = 0
    members: tuple[str, ...] = ()
    lost_updates: int = 0
    lost_rows: int = 0
    counts: ServerCounts = ServerCounts()
    workers: int = 0
    paused: bool = False
    servers: int = 0
    wanted_servers: int = 0
    server_change: str = ""
    phase: str = ""
    total: int = 0
    seconds: float = 0.0
    limit: float = 0.0
    kept: bool = False
    scaling: str = ""

    def write(self, path: Path) -> None:
        """Replace the file atomically."""
        replace_file(path, msgspec.json.encode(self))

    @property
    def waits(self) -> bool:
        """True if there is room for none of the instances."""
        return any(row.state == WAITING for row in self.instances) and not any(
            row.state in ("pending", "running") for row in self.instances
        )

    @property
    def relaunches(self) -> int:
        """Relaunches of all instances except the master."""
        return sum(row.relaunches for row in self.instances)

    @property
    def done_share(self) -> float | None:
        """Share of the work that is done: of the time of a search that has a limit, else of the rows or trials; None if
        unknown. A training may end earlier.
        """
        done, total = (self.seconds, self.limit) if self.limit else (self.rows, self.total)
        return min(1.0, done / total) if total else None

    @property
    def progress(self) -> tuple[int, int]:
        """Value that grows with the work: the epoch and the done tasks."""
        return self.epoch, sum(counts.done for counts in self.tasks.values())


def read_snapshot(path: Path) -> Snapshot | None:
    """Return the snapshot, or None if it is missing or cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Snapshot)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
