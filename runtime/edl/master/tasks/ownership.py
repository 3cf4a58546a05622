"""Owners of tasks and their done rows: a lease belongs to the name of a worker, or of a group that shares it."""

from __future__ import annotations

from collections import Counter

from edl.master.rendezvous import NoGroups, RendezvousManager
from edl.tasks.protocol import Request, TaskUpdate
from edl.tasks.task import TaskType

GROUP = "group"  # owner of a group's training tasks; no instance has this name


class Ownership:
    """Ownership in which each worker owns the tasks that it does."""

    def of_request(self, kind: TaskType, request: Request) -> str:
        """Return the owner of tasks of that type for the request, or an empty string if it has none."""
        return request.instance

    def of_update(self, update: TaskUpdate, request: Request) -> str:
        """Return the owner of a reported task, or an empty string if the report does not count."""
        return request.instance

    def list_owners(self, request: Request) -> list[str]:
        """Return the owners of the tasks that the request lists completely."""
        return [request.instance]

    def of_worker(self, instance: str) -> list[str]:
        """Return the owners of the tasks that a worker does."""
        return [instance]


class GroupOwnership(Ownership):
    """Ownership in which training tasks belong to the present group: its first member, the *leader*, requests, lists
    and reports them.
    """

    def __init__(self, rendezvous: RendezvousManager) -> None:
        self._rendezvous = rendezvous

    def of_request(self, kind: TaskType, request: Request) -> str:
        if kind == "train":
            return GROUP if self._rendezvous.leads(request) else ""
        return request.instance

    def of_update(self, update: TaskUpdate, request: Request) -> str:
        if update.report.task.type != "train":
            return request.instance
        counts = self._rendezvous.was_in if update.kind == "failed" else self._rendezvous.has_led
        return GROUP if counts(request) else ""

    def list_owners(self, request: Request) -> list[str]:
        return [request.instance, GROUP] if self._rendezvous.leads(request) else [request.instance]

    def of_worker(self, instance: str) -> list[str]:
        return [instance, GROUP] if self._rendezvous.has_member(instance) else [instance]


class DoneRows:
    """Rows that each worker has done since this master started; the rows of a group's tasks count in equal shares.

    To count a task takes the same time in a group of any size: members have their share of the present group's rows
    besides their own.
    """

    def __init__(self, rendezvous: NoGroups | RendezvousManager) -> None:
        self._rendezvous = rendezvous
        self._own: Counter[str] = Counter()
        self._sharing: frozenset[str] = frozenset()  # members of the group of the number `_group`
        self._share = self._group = 0

    def add(self, owner: str, rows: int) -> None:
        """Count the rows of a done task."""
        if owner != GROUP:
            self._own[owner] += rows
            return
        members = self._rendezvous.members
        if self._group != self._rendezvous.number:
            self._own.update(dict.fromkeys(self._sharing, self._share))
            self._sharing, self._share, self._group = frozenset(members), 0, self._rendezvous.number
        self._share += rows // max(1, len(members))

    def of(self, instance: str) -> int:
        return self._own[instance] + (self._share if instance in self._sharing else 0)
