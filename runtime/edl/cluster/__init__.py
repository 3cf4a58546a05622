"""Where instances of a job run: what a master asks of processes on this machine, and of Kubernetes alike.

An *instance* is one start of a name: `worker-0` that died and is started again is the same name in the next
incarnation. Who asks decides names and incarnations; a cluster starts, watches and ends.

`edl.cluster.processes` implements it with processes. A job's supervisor (`edl.cluster.supervisor`, the local kubelet)
owns them: it starts the master, starts it again when it dies, starts instances for it, and ends them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, Protocol

import msgspec

from edl.errors import ClusterError

Role = Literal["worker", "ps"]
State = Literal["pending", "running", "ended"]
Reason = Literal["done", "failed", "killed", "stopped", "preempted", "out of memory", "no room", "lost"]


class NoRoomError(ClusterError):
    """The cluster starts no more instances for now."""


class Instance(msgspec.Struct, frozen=True):
    """One start of a name. name: of small letters, digits and hyphens. incarnation: counted from 0 for each name."""

    name: str
    role: Role
    incarnation: int = 0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", self.name):  # it names files and pods
            raise ValueError(f"{self.name!r} names no instance")

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.incarnation


class Change(msgspec.Struct, frozen=True):
    """What became of an instance.

    place: where it is, such as `pid 1234`; empty while it is pending. reason, when it ended:

        done           it ended by itself, with nothing left to do
        failed         it ended with an error, or crashed
        killed         somebody killed it
        stopped        `stop` ended it
        preempted      it was told to leave by somebody else, and gave back what it had
        out of memory  the system killed it because memory ran out
        no room        it never ran, because there was no place for it; there may be later
        lost           nobody knows how it ended

    exit_code: of its process, negative for the signal that ended it; None when there is none to know. detail: in words.
    hint: what a user could do about it. remedied: the next one of its name gets what this one lacked.
    """

    instance: Instance
    state: State
    place: str = ""
    reason: Reason | None = None
    exit_code: int | None = None
    detail: str = ""
    hint: str = ""
    remedied: bool = False


class Room(msgspec.Struct, frozen=True):
    """How many instances the job may have at once from now on; who has more is to stop some."""

    slots: int


class Cluster(Protocol):
    """Starts and ends instances. Every call may be repeated. ClusterError: it refuses, or cannot be reached.

    room: what there was when this began; None: as many instances as are asked for. `watch` tells how it changes.
    """

    room: Room | None

    def start(self, instance: Instance) -> None:
        """Have the instance started; nothing when it was, even when it ended since. Returns before it runs.

        NoRoomError: not now; it was not started, and may be later.
        """

    def stop(self, name: str, incarnation: int, grace: float) -> None:
        """End the instance: tell it to leave, and kill it after `grace` seconds. Returns before it has ended.

        Nothing when it has ended, or is unknown.
        """

    def list(self) -> list[Change]:
        """The present state of every instance; ended ones of names that were started again may be left out."""

    def watch(self) -> Iterator[Change | Room]:
        """What changes from the last `list` on, or earlier; blocks, and ends when the cluster is closed.

        A change may be told twice. After a ClusterError, list and watch again: changes in between are not told.
        """

    def close(self) -> None:
        """Watch no more. Instances go on."""
