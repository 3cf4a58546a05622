"""Steps of a script's training loop: this worker's parts of steps are issued, and steps that were taken are reported.

    cursor of a dataset ─▶ own parts ─▶ issued to the loop (a DataLoader may read ahead) ─▶ taken ─▶ charged to a task

The loop pulls parts, and `commit` takes the step of the oldest one. When the group changes, parts that were issued are
void, so the loop must begin again: `Regrouped` leads out of it to `edl.elastic.run`.

Which rows a step has is a function of the cursor alone. The tasks of the master say how much the group may do, and what
it has done. Of a single dataset with a number of epochs they are its rows, else they are steps.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group, GroupError
from edl.errors import JobError, SemanticError
from edl.extensions.elastic.collective import BROADCAST, END, sum_over_group
from edl.extensions.elastic.cursor import Cursor, Positions
from edl.extensions.elastic.member import Alone, ScriptMember
from edl.extensions.elastic.stream import Range, StreamCursor
from edl.jobs.outcome import Outcome
from edl.tasks.ranges import partition
from edl.tasks.task import CONTROL, Conclusion, JobProgress, Report, Round, Task, TaskSource
from edl.worker.strategies.base import VoidError

AHEAD = 64  # tasks of a group that may be open: a DataLoader reads ahead within them

_STEP = "call optimizer.step() of the optimizer that edl.elastic.checkpoint has got, for each part"

AnyCursor = Cursor | StreamCursor
Part = tuple[int, int, int]  # epoch, and range of positions in its order
Leased = tuple[list[Range], int, int]  # ranges of a step, and the records of this worker among them


class Regrouped(BaseException):
    """Exit from a training loop after a change of its group, past the loop's error handlers."""


@dataclass(frozen=True)
class _Issued:
    """Part of a step that was given to the loop.

    The cursor is at `end` after the step, which has so many `rows`. `share` is the part's share of them, `whole` this
    worker's share; `last` is True for the last part of this worker.
    """

    cursor: AnyCursor
    end: Any
    rows: int
    share: float
    whole: float
    last: bool


@dataclass
class _Taken:
    """Task that is not completely trained, and what is."""

    task: Task
    done: Report


class Steps:
    """Steps of this process at `positions`, charged to tasks from `source`.

    `bounded`: the tasks are the rows of the only dataset; else they are steps, and the end of the script's loop is the
    end of the training. `draining` is set when this worker has to leave: the next step raises VoidError then. `stepped`
    is called between two steps with the progress of the last one's task, `leaving` in the same way before that
    VoidError, `regrouped` in each new group, with the state of its members.
    """

    def __init__(
        self,
        source: TaskSource,
        strategy: ScriptMember | Alone,
        positions: Positions,
        *,
        bounded: bool,
        draining: threading.Event | None = None,
        stepped: Callable[[Report], None] = lambda done: None,
        leaving: Callable[[Report], None] = lambda done: None,
        regrouped: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self.strategy = strategy
        self.positions = positions
        self.bounded = bounded
        self._draining = draining or threading.Event()
        self._stepped = stepped
        self._leaving = leaving
        self._regrouped = regrouped
        self._taken: deque[_Taken] = deque()
        self._issued: deque[_Issued] = deque()
        self._unsettled: deque[tuple[int, Report]] = deque()  # trained, not reported
        self._latest: Report | None = None  # progress of the task of the last step, until that is told
        self._told: Report | None = None  # the same, once it is told
        self._began_at, self._passed = 0, False  # step at which the loop began an epoch; True at its end
        self._ended = False  # True if the last step ended an epoch's tasks, until that is told
        self._groups = 0  # joined so far

    # The loop -------------------------------------------------------------------------------------------------

    def epochs(self, cursor: Cursor) -> Iterator[int]:
        """Yield each epoch that is not over, from 0; the present one again in another group.

        An epoch is over when the loop comes back: what it does behind the last step is part of it.
        """
        cursor.loop = loop = object()
        if not cursor.loops:
            self._end_epoch(cursor)
        try:
            while True:
                self._come_back(cursor)
                if cursor.is_over or self.is_over:
                    return
                epoch, cursor.loops = cursor.epoch, True
                yield epoch
                if cursor.epoch == epoch:
                    self._end_epoch(cursor)
        finally:
            if cursor.loop is loop:
                cursor.loop = None

    def parts(self, cursor: Cursor) -> Iterator[Part]:
        """Yield this worker's parts of the steps to the end of the present epoch."""
        self._come_back(cursor)
        cursor.closed = False
        if cursor.loop is None:
            self._end_epoch(cursor)
        epoch, row = cursor.epoch, cursor.row
        self._began_at, self._passed = self.strategy.step, False
        try:
            while row < cursor.rows.rows and not cursor.is_over:
                groups = self._groups
                end = min(row + cursor.rows.batch_size, cursor.rows.rows)
                if self.strategy.leaves:
                    self._leave_or_join()
                elif not self._reserve(end - row if self.bounded else 1):
                    return
                if groups == self._groups:
                    for low, high in self._parts_of(cursor, end - row, end):
                        yield epoch, row + low, row + high
                    row = end
                elif cursor.epoch == epoch:  # another group, at a step of this epoch
                    row = cursor.row
                else:
                    return
        except GeneratorExit:
            cursor.closed = True
            raise
        self._passed = True

    def lease_steps(self, cursor: StreamCursor, lease: Callable[[], list[Range]]) -> Iterator[Leased]:
        """Yield this worker's parts of the steps of a stream. On rank 0, `lease` finds the records of the next step."""
        self._come_back(cursor)
        cursor.closed = False
        try:
            while True:
                if self.strategy.leaves:
                    self._leave_or_join()
                elif not self._reserve(1):
                    return
                ranges: list[Range] = self.broadcast(lease() if self.strategy.rank == 0 else None)
                if not ranges:
                    continue
                rows = sum(after - first for _, first, after in ranges)
                for low, high in self._parts_of(cursor, rows, {key: after for key, _, after in ranges}):
                    yield ranges, low, high
                if any(part.cursor is cursor for part in self._issued):
                    raise JobError(
                        f"the loop has taken no step with the records of the stream {cursor.name!r}",
                        hint=_STEP,
                    )
        except GeneratorExit:
            cursor.closed = True
            raise

    def commit(
        self,
        gradients: Callable[[Group | None, float], None] | None = None,
        step: Callable[[], None] | None = None,
    ) -> None:
        """Take the step of the last part of this worker: sum the `gradients` over the group, and call `step`.

        Raises Regrouped if the group has to be left, so that the step is not taken.
        """
        part = self._issued[0]
        with self._in_group() as group:
            if gradients is not None:
                gradients(group, part.whole)
            elif isinstance(self.strategy, ScriptMember):
                self.strategy.wait()
        if step is not None:
            step()
        self._issued.popleft()
        part.cursor.advance(part.end)
        self.positions.trained += 1
        self._count(part.rows if self.bounded else 1)

    def sum(self, kind: float, flat: Array, then: Callable[[], None]) -> None:
        """Take a step without gradients: sum `flat` over the group as `sum_over_group` does, and call `then`.

        Raises Regrouped if the group has to be left, so that the step is not taken.
        """
        if not self._reserve(1):
            raise VoidError
        with self._in_group() as group:
            if group is not None:
                sum_over_group(group, kind, flat)
        then()
        self._count(1)

    def broadcast(self, value: Any) -> Any:
        """Return the value of rank 0. Raises Regrouped if the group has to be left, and SemanticError for an object."""
        try:
            encoded = msgspec.msgpack.encode(value)
        except (TypeError, OverflowError) as error:
            raise SemanticError(
                f"edl.elastic.broadcast: {error}", hint="give a number, a text, or a list of such"
            ) from None
        with self._in_group() as group:
            if group is None:
                return value
            sum_over_group(group, BROADCAST, np.zeros(1, np.float32))
            return msgspec.msgpack.decode(group.broadcast(encoded if group.rank == 0 else None, 0))

    @contextlib.contextmanager
    def _in_group(self) -> Iterator[Group | None]:
        """Provide the group, None if this worker is alone. Raises Regrouped if the group has to be left."""
        try:
            yield self.strategy.ready()
        except GroupError:
            self.strategy.leave()
            raise Regrouped from None

    def next_issued(self) -> _Issued:
        """Return the part that has its gradients now. Raises JobError if there is none, or which one is unknown."""
        names = sorted({part.cursor.name for part in self._issued})
        if not names:
            raise JobError(
                "optimizer.step() was called without a part of a step",
                hint="take the rows from edl.elastic.sampler or dataset, and call optimizer.step() once for each part",
            )
        if len(names) > 1:
            raise JobError(
                f"optimizer.step() was called with rows of the datasets {' and '.join(names)}",
                hint="call it for the rows of each; a DataLoader that alternates with another has num_workers=0",
            )
        return self._issued[0]

    def accumulate(self) -> None:
        """Count a part that is not the last one of its step."""
        self._issued.popleft()

    def join(self) -> None:
        """Join the next group, unless this worker is in one that goes on."""
        self._issued.clear()
        if self._draining.is_set():
            self._leave()
        if self.strategy.leaves:
            self.strategy.join()
            self._begin_anew()

    def end(self) -> None:
        """Wait for the end of the training: the end of all workers' loops unless the tasks are bounded."""
        self._issued.clear()
        self._tell()
        if not (self.bounded or self.positions.ended):
            self.sum(END, np.zeros(1, np.float32), self._leave_loop)
        while (taken := self._taken[0] if self._taken else self._take()) is not None:
            self._flush()
            if self._taken and self._taken[0] is taken:  # else there is another group, with tasks of its own
                self._taken.popleft()
                stop = Conclusion(stop="the script has left its loop")
                self._source.report(msgspec.structs.replace(taken.done, conclusion=stop))

    def _leave_loop(self) -> None:
        self.positions.ended = True

    def report_settled(self) -> bool:
        """Report trained tasks that all members have trained, and drop void ones. Return True if none is left."""
        while self._unsettled:
            mark, report = self._unsettled[0]
            valid = self._source.holds_lease(report.task)
            if valid and not self.strategy.is_durable(mark):
                return False
            self._unsettled.popleft()
            if valid:
                self._source.report(report)
        return True

    @property
    def is_over(self) -> bool:
        """True if the job has nothing left to do."""
        return self._source.is_over("export")

    # Tasks ----------------------------------------------------------------------------------------------------

    def _take(self) -> _Taken | None:
        """Take the next training task, and do control tasks before it; return None if training is over."""
        if len(self._taken) >= AHEAD:
            raise JobError(
                f"the loop has read {AHEAD} tasks ahead of its steps",
                hint="call optimizer.step() for each part, and use fewer workers of the DataLoader",
            )
        while not self._source.is_over("export"):
            if self._draining.is_set():
                raise VoidError
            if self._source.is_over("train"):
                self._flush()
                if self._source.is_over("train") and not self._source.is_over("export"):
                    self._control(self._source.next(*CONTROL))
            elif task := self._source.next("train"):
                taken = _Taken(task, Report(task))
                self._taken.append(taken)
                return taken
            else:
                if self._source.turn():
                    self._leave_or_join()
                while self._source.is_pending and (task := self._source.next(*CONTROL)):
                    self._control(task)
        return None

    def _reserve(self, units: int) -> bool:
        """Take tasks for what was issued and `units` more; return False if training is over."""
        if self._draining.is_set():
            self._leave()
        issued = sum(part.rows if self.bounded else 1 for part in self._issued if part.last)
        while sum(taken.task.rows - taken.done.rows for taken in self._taken) < issued + units:
            if self._take() is None:
                return False
        return True

    def _leave(self) -> None:
        """Leave with the state of this step. Raises VoidError."""
        done, self._latest, self._told = self._latest or self._told, None, None
        if done is not None and self.report_settled():  # else the checkpoint before counts
            self._leaving(done)
        raise VoidError

    def _leave_or_join(self) -> None:
        """Join the next group here, unless the loop has parts of this one or may be at different points in workers."""
        if self._draining.is_set():
            self._leave()
        if self._issued or not (self.bounded or self.positions.ended):
            raise Regrouped
        self._flush()

    def _parts_of(self, cursor: AnyCursor, rows: int, end: Any) -> Iterator[tuple[int, int]]:
        """Yield this worker's parts of a step of so many rows. The cursor is at `end` after the step."""
        rank, size = self.strategy.rank, self.strategy.size
        first, after = (rows * end_rank // size for end_rank in (rank, rank + 1))
        whole = (after - first) / rows
        # A worker without a row computes one that has no weight: it must take the step with the others.
        ranges = partition(first, after, cursor.micro_batch or rows) or [(0, 1)]
        if any(part.cursor.closed for part in self._issued):
            self._issued = deque(part for part in self._issued if not part.cursor.closed)
        for number, (low, high) in enumerate(ranges, 1):
            share = (high - low) / rows if whole else 0.0
            self._issued.append(_Issued(cursor, end, rows, share, whole, number == len(ranges)))
            yield low, high
            if not self._ended:
                self._tell()

    def _count(self, units: int) -> None:
        """Record that all members take a step. What follows of it waits until the loop comes back: see `_tell`."""
        self.strategy.on_step()
        taken = self._taken[0]
        self._latest = Report(taken.task, taken.done.rows + units, taken.done.steps + 1)
        self._report_progress(self._latest)

    def _report_progress(self, done: Report) -> None:
        """Record what is done of the first task that was taken."""
        self._taken[0].done = done
        self._source.progress(done)
        if done.rows >= done.task.rows:
            self._taken.popleft()
            self._unsettled.append((self.strategy.mark(), done))
            self._ended = done.task.settles

    def _come_back(self, cursor: AnyCursor) -> None:
        """Take note that the loop begins an iteration: parts of an earlier one are void."""
        if self._passed and self._issued and self.strategy.step == self._began_at:
            raise JobError(
                "the loop has taken no step in a whole epoch",
                hint=_STEP,
            )
        self._issued = deque(part for part in self._issued if part.cursor is not cursor)
        self._tell()
        if isinstance(cursor, Cursor) and cursor.loaded:
            if self.bounded:
                self._catch_up(cursor)
            cursor.loaded = False

    def _catch_up(self, cursor: Cursor) -> None:
        """Report the rows before the position that the script has loaded as done, without a step."""
        while (taken := self._taken[0] if self._taken else self._take()) is not None:
            task, before = taken.task, taken.done
            counted = (task.number - 1) * cursor.rows.rows + task.start + task.skip + before.rows
            rows = min(cursor.epoch * cursor.rows.rows + cursor.row - counted, task.rows - before.rows)
            if rows <= 0:
                return
            self._report_progress(Report(task, before.rows + rows, before.steps))
            if self._ended:
                self._flush()

    def _end_epoch(self, cursor: Cursor) -> None:
        """Begin the next epoch if all rows of the present one are trained."""
        if not cursor.is_epoch_over:
            return
        cursor.epoch, cursor.row, cursor.loops = cursor.epoch + 1, 0, False
        if not self.bounded and self.strategy.rank == 0:
            done = f"{cursor.name}: epoch {cursor.epoch} done at step {self.positions.trained:,}"
            print(done, file=sys.stderr, flush=True)

    def _tell(self) -> None:
        """Report complete tasks, and give an occasion for a checkpoint.

        The state must be that between two steps: the loop may step a scheduler after the optimizer, or after an epoch.
        """
        if self._ended:
            self._flush()
        else:
            self.report_settled()
        if self._latest is not None:
            latest, self._latest = self._latest, None
            self._told = latest
            self._stepped(latest)

    def _flush(self) -> None:
        """Wait until all members have taken the last step, and report it; or join the next group."""
        self._ended = False
        try:
            self.strategy.flush()
        except VoidError:
            self._begin_anew()
        self.report_settled()

    def _begin_anew(self) -> None:
        """Drop tasks of an earlier group. What was done of them is part of the next one's position."""
        self._taken.clear()
        self._issued.clear()
        self._latest, self._told, self._ended, self._passed = None, None, False, False
        self._groups += 1
        self._regrouped()

    def _control(self, task: Task | None) -> None:
        if task is None:
            return
        conclusion = None
        if task.type == "export":
            conclusion = Conclusion(outcome=_outcome((task.round or Round()).progress or JobProgress()))
        elif task.type == "conclude":
            conclusion = Conclusion()
        self._source.report(Report(task, task.rows, conclusion=conclusion))


def _outcome(progress: JobProgress) -> Outcome:
    return Outcome(
        "train",
        progress.rows,
        progress.seconds,
        steps=progress.steps,
        epochs=progress.epochs,
        curve=progress.curve,
    )
