"""What the members of a ring do, one after another: a log that the first member writes in the ring's store.

    train       a training task
    aside       turn to what goes between two training tasks; at the end of an epoch, its weights may be the best
    concluded   the epoch is; which one is the best by now
    over        there is no training task any more

All members do the same entries in the same order, so they call each other's collectives in the same order.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from edl.nn.collective import Store
from edl.tasks import encoding
from edl.tasks.task import Report


class Entry(msgspec.Struct, frozen=True):
    """task: of `train`, as it was leased, and what was done of it before. epoch: of `aside`, that has ended, 0 in the
    middle of one. best: of `concluded`, the best epoch so far, 0: it is not known. durable: reports of leases up to
    this number survive the master."""

    kind: Literal["train", "aside", "concluded", "over"]
    task: Report | None = None
    epoch: int = 0
    best: int = 0
    durable: int = 0


class Course(msgspec.Struct, frozen=True):
    """Where the tasks of a ring stand. open: training tasks in their order, and how far each is. told: reports that the
    master may not have written down. ended: the last epoch that is trained. concluded: the last that is known to be."""

    open: tuple[Report, ...] = ()
    told: tuple[Report, ...] = ()
    ended: int = 0
    concluded: int = 0


class LeftError(Exception):
    """The ring of this log was left."""


class Log:
    """One ring's log, as far as this member has it and did not take it. changed: the lock, and told of every change.

    It begins with the tasks that were open.
    """

    def __init__(self, store: Store, tasks: Iterable[Report], changed: threading.Condition) -> None:
        self._store = store
        self._changed = changed
        self._entries = deque(Entry("train", task) for task in tasks)
        self._number = 0
        self.ended = False  # it was left, or the ring is gone

    def take(self) -> Entry | None:
        """The next entry, if it is here."""
        return self._entries.popleft() if self._entries else None

    def tasks(self) -> Iterator[Report]:
        """That were not taken."""
        return (entry.task for entry in self._entries if entry.task is not None)

    def append(self, entry: Entry) -> None:
        """Of the first member. It may raise what the store does."""
        self._store.set(str(self._number), encoding.encode(entry))
        self._put(entry)

    def read(self) -> Iterator[Entry]:
        """Of the others: what is appended, until it is over. It raises what the store does."""
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


class Given:
    """A training task in this member's hands. task: as the loop has it, without what was done `before`."""

    def __init__(self, before: Report) -> None:
        leased = before.task
        self.task = msgspec.structs.replace(leased, skip=leased.skip + before.rows)
        self._before = before
        self.done = before

    def total(self, done: Report) -> Report:
        """What is done of the task as it was leased."""
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
