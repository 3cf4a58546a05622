"""Owners of tasks: a lease belongs to the name of a worker, or of a group; the group's members share it."""

from __future__ import annotations

from edl.master.rendezvous import RendezvousManager
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
