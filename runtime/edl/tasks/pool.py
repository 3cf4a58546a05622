"""A pool: tasks of one type and number that are to do, being done, and done.

What is done is not listed: every range before the cursor is done unless it is being done, was given back, or was done
ahead of the cursor. So a pool of 100,000 tasks is written down in the size of its exceptions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

import msgspec

from edl.metrics import State
from edl.tasks.ranges import Ranges
from edl.tasks.task import Report, Round, Summary, Task, TaskType

States = Mapping[str, State]
Merge = Callable[[States, States], States | None]  # None: they stay apart


class PoolState(msgspec.Struct):
    """What is kept of a pool. returned: (position, rows done) of tasks given back. ahead: taken after the cursor."""

    type: TaskType
    number: int
    cursor: int = 0
    done: int = 0
    returned: list[tuple[int, int]] = []
    ahead: list[int] = []
    summary: Summary = msgspec.field(default_factory=Summary)
    round: Round | None = None


class Pool:
    """The tasks of `ranges`, handed out by position: whatever is given back, one worker takes them in their order.

    doing: position → rows done before, of the tasks that are handed out.
    """

    def __init__(self, state: PoolState, ranges: Ranges) -> None:
        self.state = state
        self.ranges = ranges
        self.doing: dict[int, int] = {}
        self._ahead = set(state.ahead)
        self._returned = dict(state.returned)
        self._first = sorted(self._returned)  # a heap of what was given back; some may be taken since

    @property
    def todo(self) -> int:
        return len(self.ranges) - self.state.done - len(self.doing)

    @property
    def complete(self) -> bool:
        return self.state.done == len(self.ranges)

    def take(self, attempt: int = 0) -> Task | None:
        """Hand out the next task; None when none is to do."""
        while self._first and self._first[0] not in self._returned:
            heapq.heappop(self._first)
        while self.state.cursor in self._ahead:
            self._ahead.discard(self.state.cursor)
            self.state.cursor += 1
        position = self.state.cursor
        if self._first and self._first[0] < position:
            position = heapq.heappop(self._first)
            return self._hand_out(position, self._returned.pop(position), attempt)
        if position == len(self.ranges):
            return None
        self.state.cursor += 1
        return self._hand_out(position, 0, attempt)

    def claim(self, position: int) -> bool:
        """Take a certain task out of those that are to do; False when it is not among them."""
        if position in self._returned:
            skip = self._returned.pop(position)
        elif self.state.cursor <= position < len(self.ranges) and position not in self._ahead:
            self._ahead.add(position)
            skip = 0
        else:
            return False
        self.doing[position] = skip
        return True

    def task(self, position: int, attempt: int) -> Task:
        """The task as it is handed out."""
        start, end = self.ranges[position]
        state = self.state
        return Task(
            position,
            state.type,
            start,
            end,
            state.number,
            self.doing[position],
            attempt,
            settles=not self.todo,
            round=state.round,
        )

    def give_back(self, position: int, part: Report | None = None) -> None:
        """The task is to do again, before later ones. part: what of it is done for good, since it was handed out."""
        skip = self.doing.pop(position)
        if part is not None:
            skip += part.rows
            add(self.state.summary, part, None)
        self._returned[position] = skip
        heapq.heappush(self._first, position)

    def finish(self, report: Report, merge: Merge | None) -> None:
        """The task of the report, which was handed out, is done."""
        del self.doing[report.task.id]
        self.state.done += 1
        add(self.state.summary, report, merge)

    def kept(self, *, doing: bool) -> PoolState:
        """What to keep of the pool. doing: as what is handed out stays so; else it counts as given back."""
        returned = list(self._returned.items())
        if not doing:
            returned = [*self.doing.items(), *returned]
        return msgspec.structs.replace(self.state, returned=returned, ahead=sorted(self._ahead))

    def _hand_out(self, position: int, skip: int, attempt: int) -> Task:
        self.doing[position] = skip
        return self.task(position, attempt)


def add(summary: Summary, report: Report, merge: Merge | None) -> None:
    """Count a report in. merge: how states of a metric become one; None keeps those of each task."""
    summary.rows += report.rows
    summary.steps += report.steps
    summary.loss += report.loss
    summary.weight += report.weight
    if not report.states:
        return
    together = merge(summary.states[0], report.states) if merge and summary.states else None
    if together is not None:
        summary.states = [dict(together)]
    else:
        summary.states = [*summary.states, dict(report.states)]
