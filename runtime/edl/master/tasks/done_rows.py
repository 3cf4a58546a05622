"""Rows of done tasks by worker, for estimates of their speeds."""

from __future__ import annotations

from collections import Counter

from edl.master.rendezvous import NoGroups, RendezvousManager
from edl.master.tasks.ownership import GROUP


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
