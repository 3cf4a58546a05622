"""Task log of an all-reduce group: the first member writes it into the group's store, all members execute it.

    train       a training task
    aside       control tasks between two training tasks; at the end of an epoch, keep its weights
    concluded   an epoch is concluded; the best epoch so far
    over        no training task is left

All members execute the same entries in the same order, so they call the collectives in the same order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from edl.collectives.base import Store
from edl.tasks import encoding
from edl.tasks.task import Report


class Entry(msgspec.Struct, frozen=True):
    """Entry of the log.

    `task` is the task of `train`, as leased, with what was done of it before. `epoch` is the concluded epoch, or the
    one that has ended in `aside` (0 in the middle of one). `best` is the best epoch so far in `concluded`, 0 if
    unknown. Reports of leases up to `durable` survive the master.
    """

    kind: Literal["train", "aside", "concluded", "over"]
    task: Report | None = None
    epoch: int = 0
    best: int = 0
    durable: int = 0


class GroupProgress(msgspec.Struct, frozen=True):
    """Position of a group in its tasks.

    `open` has the open training tasks in order, with their progress; `told` the reports that the master may not have
    stored; `ended` the last trained epoch; `concluded` the last epoch that is known to be concluded.
    """

    open: tuple[Report, ...] = ()
    told: tuple[Report, ...] = ()
    ended: int = 0
    concluded: int = 0


class LeftError(Exception):
    """Error of a log whose group was left."""


class Log:
    """Log of one group, as far as this member has received and not taken it. It begins with the tasks that were open.

    `changed` is the lock, notified on every change.
    """

    def __init__(self, store: Store, tasks: Iterable[Report], changed: threading.Condition) -> None:
        self._store = store
        self._changed = changed
        self._entries = deque(Entry("train", task) for task in tasks)
        self._number = 0
        self.ended = False  # the group was left or is gone

    def take(self) -> Entry | None:
        """Return the next entry, or None if it has not arrived."""
        return self._entries.popleft() if self._entries else None

    def tasks(self) -> Iterator[Report]:
        """Yield the training tasks that were not taken."""
        return (entry.task for entry in self._entries if entry.task is not None)

    def append(self, entry: Entry) -> None:
        """Append an entry, on the first member. Errors of the store propagate."""
        self._store.set(str(self._number), encoding.encode(entry))
        self._put(entry)

    def read(self) -> Iterator[Entry]:
        """Yield entries as they are appended, on the other members, through `over`. Errors of the store propagate."""
        while True:
            entry = encoding.decode(self._store.get(str(self._number)), Entry)
            self._put(entry)
            yield entry
            if entry.kind == "over":
                return

    def end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _put(self, entry: Entry) -> None:
        with self._changed:
            if self.ended:
                raise LeftError
            self._number += 1
            self._entries.append(entry)
            self._changed.notify_all()


class AssignedTask:
    """Training task assigned to this member. `task` is the remaining part, without what was done `before`."""

    def __init__(self, before: Report) -> None:
        leased = before.task
        self.task = msgspec.structs.replace(leased, skip=leased.skip + before.rows)
        self._before = before
        self.done = before

    def total(self, done: Report) -> Report:
        """Return the progress of the task as it was leased."""
        before = self._before
        return Report(
            before.task,
            before.rows + done.rows,
            before.steps + done.steps,
            before.loss + done.loss,
            before.weight + done.weight,
        )


def complete(done: Report) -> bool:
    return done.rows >= done.task.rows
