"""The figures of a running job: `cluster/snapshot.json`, replaced by the master at changes, at most once a second."""

from __future__ import annotations

from pathlib import Path

import msgspec

from edl.cluster.folder import replace_file

WAITING = "waiting for a slot"  # state of an instance that there is no room for


class Counts(msgspec.Struct, frozen=True):
    """Tasks of one kind."""

    todo: int = 0
    doing: int = 0
    done: int = 0


class Load(msgspec.Struct, frozen=True):
    """What a parameter server has and does. rows, bytes: that it holds. pulled, pushed: rows a second, of the last
    seconds. busy: the share of its time that it spent in calls; above 1 where it answered several at once.
    """

    rows: int = 0
    bytes: int = 0
    pulled: float = 0.0
    pushed: float = 0.0
    busy: float = 0.0


class Row(msgspec.Struct, frozen=True):
    """An instance. state: that of `edl.cluster.Change`, or what the master knows better: `WAITING`.

    address: where its own server listens, for those that have one. relaunches: starts of its name after the first.
    task: in words, what it does. rate: rows a second that a worker did of late. load: of a parameter server. note:
    `hot`, of a server with more to do than the others; `straggling`, slower than the others at the same; `joins`, or
    why it is left out, of a worker that is not in the ring; and how the start before this one ended.
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
    load: Load | None = None
    note: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """What the master knows. Times are UTC in ISO 8601. epoch: counted from 1, 0 without.

    rows: done, over all epochs. step: minibatches that were trained. loss: the mean over this epoch, so far. rate:
    rows a second, of late. tasks: by kind (`train`, `evaluate`, `predict`, `export`). generation: of the ledger; it
    grows when the job goes back to a checkpoint. cut: the last checkpoint that is complete. ring: the number of
    the last ring of an all-reduce job; members: who is in it, the one that leads first.
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
    cut: str = ""
    step: int = 0
    loss: float | None = None
    rate: float = 0.0
    ring: int = 0
    members: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Replace the file in one step."""
        replace_file(path, msgspec.json.encode(self))

    @property
    def waits(self) -> bool:
        """Whether there is room for none of the instances."""
        return any(row.state == WAITING for row in self.instances) and not any(
            row.state in ("pending", "running") for row in self.instances
        )

    @property
    def relaunches(self) -> int:
        """Of all instances, the master's apart."""
        return sum(row.relaunches for row in self.instances)

    @property
    def progress(self) -> tuple[int, int]:
        """Grows with the work that is done: the epoch, and the tasks that are done."""
        return self.epoch, sum(counts.done for counts in self.tasks.values())


def read_snapshot(path: Path) -> Snapshot | None:
    """None: there is none yet, or it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Snapshot)
    except (OSError, msgspec.MsgspecError):
        return None
