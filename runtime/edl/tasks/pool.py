"""Pool of the tasks of one type and number: available, assigned, and done.

Done tasks are not listed: every range before the cursor is done unless it is assigned, was given back, or was taken
ahead of the cursor. So a pool of 100,000 tasks is stored as its exceptions.
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
    """Durable state of a pool. `returned` are (position, rows done) of tasks given back, `ahead` the positions taken
    after the cursor.
    """

    type: TaskType
    number: int
    cursor: int = 0
    done: int = 0
    returned: list[tuple[int, int]] = []
    ahead: list[int] = []
    summary: Summary = msgspec.field(default_factory=Summary)
    round: Round | None = None


class Pool:
    """Tasks of `ranges`, assigned by position, so that a single worker takes them in order even after some were given
    back.

    `doing` maps the position of each assigned task to the rows that were done before.
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
    def is_complete(self) -> bool:
        return self.state.done == len(self.ranges)

    def take(self, attempt: int = 0) -> Task | None:
        """Assign the next task, or return None if none is available."""
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
        """Assign a specific task; return False if it is not available."""
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
        """Return the task as it is assigned."""
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
        """Return a task to the queue, before later ones. `part` is its durable part since it was assigned."""
        skip = self.doing.pop(position)
        if part is not None:
            skip += part.rows
            add(self.state.summary, part, None)
        self._returned[position] = skip
        heapq.heappush(self._first, position)

    def finish(self, report: Report, merge: Merge | None) -> None:
        """Finish the assigned task of the report."""
        del self.doing[report.task.id]
        self.state.done += 1
        add(self.state.summary, report, merge)

    def to_state(self, *, doing: bool) -> PoolState:
        """Return the state to store. `doing`: assigned tasks stay assigned; otherwise they count as given back.

        The last ones then count as never assigned, because workers hold many in advance.
        """
        if doing:
            returned, cursor = self._returned, self.state.cursor
        else:
            returned, cursor = {**self.doing, **self._returned}, self.state.cursor
            while returned.get(cursor - 1, -1) == 0:
                cursor -= 1
                del returned[cursor]
        ahead = sorted(self._ahead)
        return msgspec.structs.replace(
            self.state, cursor=cursor, returned=list(returned.items()), ahead=ahead
        )

    def _hand_out(self, position: int, skip: int, attempt: int) -> Task:
        self.doing[position] = skip
        return self.task(position, attempt)


def add(summary: Summary, report: Report, merge: Merge | None) -> None:
    """Add a report to a summary. `merge` merges metric states; without it the states of each task are kept."""
    summary.rows += report.rows
    summary.steps += report.steps
    summary.loss += report.loss
    summary.weight += report.weight
    if not report.states:
        return
    summary.states = [*summary.states, dict(report.states)]
    # In order, as one process merges them. More than two are there when such a job continues with a master.
    while merge and len(summary.states) > 1:
        together = merge(summary.states[0], summary.states[1])
        if together is None:
            break
        summary.states = [dict(together), *summary.states[2:]]
