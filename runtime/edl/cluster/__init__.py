"""Contract of a cluster that runs the instances of a job: processes on this machine, or pods of Kubernetes.

An *instance* is one start of a name: if `worker-0` dies and is started again, it has the same name and the next
incarnation. The caller (the master) chooses names and incarnations; a cluster starts, watches and stops instances.

`edl.cluster.local.cluster` implements the contract with processes. A job's supervisor (`edl.cluster.local.supervisor`,
comparable to a kubelet) owns them: it starts and restarts the master, starts instances at its request, and ends them
all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Literal, Protocol

import msgspec

from edl.errors import ClusterError

Role = Literal["worker", "ps"]

LEAVE_GRACE = 20.0  # seconds for a worker that has to leave to return its tasks, at least; a pod has 30
State = Literal["pending", "running", "ended"]
Reason = Literal[
    "done", "failed", "killed", "stopped", "preempted", "hung", "out of memory", "no room", "lost"
]


class NoRoomError(ClusterError):
    """Error of a cluster that has no room for another instance at present."""


class Instance(msgspec.Struct, frozen=True):
    """Single start of a name of lower-case letters, digits and hyphens. `incarnation` counts from 0 for each name."""

    name: str
    role: Role
    incarnation: int = 0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", self.name):  # it is part of file and pod names
            raise ValueError(f"{self.name!r} names no instance")

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.incarnation


class Change(msgspec.Struct, frozen=True):
    """State change of an instance.

    `place` is its location, such as `pid 1234`; empty while it is pending. `reason` is set once it has ended:

        done           exited by itself, with nothing left to do
        failed         exited with an error, or crashed
        killed         killed by a signal from outside the job
        stopped        ended by `stop`
        preempted      asked to leave by another party, and returned its tasks
        hung           ended itself, because the master saw no progress for too long
        out of memory  killed by the system because memory ran out
        no room        never ran, because there was no place for it; there may be later
        lost           the cause of the end is unknown

    `exit_code` is its process's exit code, negative for a signal, or None if unknown. `detail` is a description, `hint`
    a remedy for the user. `remedied` is True if the next incarnation gets the resources that this one lacked.
    `leaving`: it runs, and another party has asked it to leave.
    """

    instance: Instance
    state: State
    place: str = ""
    reason: Reason | None = None
    exit_code: int | None = None
    detail: str = ""
    hint: str = ""
    remedied: bool = False
    leaving: bool = False


class Wishes(msgspec.Struct, frozen=True):
    """Wishes of users about a running job: the numbers of workers and of parameter servers, None for those that the job
    has; to be paused. `resumed` changes whenever the job is resumed. `cancelled`: the job is about to be deleted.
    """

    workers: int | None = None
    paused: bool = False
    servers: int | None = None
    resumed: str = ""
    cancelled: bool = False


class Room(msgspec.Struct, frozen=True):
    """Number of instances that the job may have at once from now on; a job with more has to stop some."""

    slots: int


class Order(msgspec.Struct, frozen=True):
    """Order of a supervisor to end the job: to `interrupt` it after a checkpoint, so that it can be resumed, or to
    `cancel` it.
    """

    end: Literal["interrupt", "cancel"]


class Cluster(Protocol):
    """Cluster that starts and ends instances. All calls are idempotent and raise ClusterError if it refuses or is
    unreachable.

    `room` is the initial limit of instances, or None for no limit; `watch` reports its changes, and orders. `unfit` are
    instances that run where no other one is started any more.
    """

    room: Room | None

    @property
    def unfit(self) -> AbstractSet[str]: ...

    def start(self, instance: Instance) -> None:
        """Request the start of an instance and return at once. An instance that was started before is left as it is,
        even ended.

        Raises NoRoomError if there is no room for it at present; it may be requested again.
        """

    def stop(self, instance: Instance, grace: float) -> None:
        """Ask the instance to leave, kill it after `grace` seconds, and return at once.

        Instances that have ended or are unknown are ignored.
        """

    def list(self) -> list[Change]:
        """Return the present state of every instance; ended incarnations of restarted names may be left out."""

    def watch(self) -> Iterator[Change | Room | Order]:
        """Yield the changes from the last `list` on, or earlier; block until the cluster is closed.

        A change may be repeated. After a ClusterError, list and watch again: changes in between are not reported.
        """

    def close(self) -> None:
        """Stop watching. Instances keep running."""
