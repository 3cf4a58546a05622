"""Steps of a script's training loop: tasks become this worker's parts of steps, and steps that were taken are reported.

    task of the log ─▶ steps ─▶ own parts ─▶ issued to the loop (a DataLoader may read ahead) ─▶ taken ─▶ reported

The loop pulls parts, and `commit` takes the step of the oldest one. When the group changes, parts that were issued are
void, so the loop must begin again: `Regrouped` leads out of it to `edl.elastic.run`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from edl.collectives.base import Group, GroupError
from edl.elastic.member import Alone, ScriptMember
from edl.errors import JobError
from edl.jobs.outcome import Outcome
from edl.tasks.ranges import partition
from edl.tasks.task import CONTROL, Conclusion, JobProgress, Report, Round, Task, TaskSource
from edl.worker.strategies.base import VoidError

AHEAD = 64  # tasks of a group that may be open: a DataLoader reads ahead within them

Part = tuple[int, int, int]  # epoch, and range of positions in its order


class Regrouped(BaseException):
    """Exit from a training loop whose group has changed, past its error handlers."""


@dataclass(frozen=True)
class _Issued:
    """Part of a step that was given to the loop.

    `share` is that of its rows in the step; `last` is True for the last part of this worker; `rows` are those of the
    step.
    """

    task: _Taken
    share: float
    whole: float
    last: bool
    rows: int


@dataclass
class _Taken:
    """Task that is not completely trained, and what is."""

    task: Task
    done: Report


class Steps:
    """Steps of this process, with tasks of `batch_size` rows a step from `source`.

    A part has at most `micro_batch` rows, 0 for any number. `draining` is set when this worker has to leave: taking a
    task raises VoidError then. `stepped` is called between two steps with the progress of the last one's task,
    `regrouped` in each new group, with the state of its members.
    """

    def __init__(
        self,
        source: TaskSource,
        strategy: ScriptMember | Alone,
        batch_size: int,
        micro_batch: int,
        *,
        draining: threading.Event | None = None,
        stepped: Callable[[Report], None] = lambda done: None,
        regrouped: Callable[[], None] = lambda: None,
    ) -> None:
        self._source = source
        self.strategy = strategy
        self._batch_size = batch_size
        self._micro_batch = micro_batch
        self._draining = draining or threading.Event()
        self._stepped = stepped
        self._regrouped = regrouped
        self._taken: deque[_Taken] = deque()
        self._issued: deque[_Issued] = deque()
        self._unsettled: deque[tuple[int, Report]] = deque()  # trained, not reported
        self._latest: Report | None = None  # progress of the task of the last step, until that is told
        self._began_at, self._passed = 0, False  # step at which the loop began an epoch; True at its end
        self._ended = False  # True if the last step was that of an epoch, until that is told

    # The loop -------------------------------------------------------------------------------------------------

    def epoch(self) -> int | None:
        """Return the present epoch, counted from 1, or None if training is over."""
        if self._passed and self._issued and self.strategy.step == self._began_at:
            raise JobError(
                "the loop has taken no step in a whole epoch",
                hint="call optimizer.step() of the optimizer that edl.elastic.checkpoint has got, for each part",
            )
        self._issued.clear()
        self._tell()
        found = self._taken[0] if self._taken else self._take()
        return found.task.number if found is not None else None

    def parts(self) -> Iterator[Part]:
        """Yield this worker's parts of the steps to the end of the present epoch."""
        epoch = self.epoch()
        self._began_at, self._passed = self.strategy.step, False
        waiting = deque(self._taken)
        while epoch is not None:
            found = waiting.popleft() if waiting else self._take()
            if found is None or found.task.number != epoch:
                return
            if not (yield from self._parts(found)):
                waiting = deque(self._taken)  # none in another group, which has tasks of its own
            elif found.task.settles:
                self._passed = True
                return

    def commit(
        self,
        gradients: Callable[[Group | None, float], None] | None = None,
        step: Callable[[], None] | None = None,
    ) -> None:
        """Take the step of the last part of this worker: sum the `gradients` over the group, and call `step`.

        Raises Regrouped if the group has to be left, so that the step is not taken.
        """
        part = self._issued[0]
        try:
            group = self.strategy.ready()
            if gradients is not None:
                gradients(group, part.whole)
            elif isinstance(self.strategy, ScriptMember):
                self.strategy.wait()
        except GroupError:
            self.strategy.leave()
            raise Regrouped from None
        if step is not None:
            step()
        self._issued.popleft()
        self._count(part)

    def next_issued(self) -> _Issued:
        """Return the part whose gradients are there now. Raises JobError if there is none."""
        if not self._issued:
            raise JobError(
                "optimizer.step() was called without a part of a step",
                hint="take the rows from edl.elastic.sampler or dataset, and call optimizer.step() once for each part",
            )
        return self._issued[0]

    def accumulate(self) -> None:
        """Count a part that is not the last one of its step."""
        self._issued.popleft()

    def join(self) -> None:
        """Join the next group, unless this worker is in one that goes on."""
        self._issued.clear()
        if self.strategy.leaves:
            self.strategy.join()
            self._begin_anew()

    def report_settled(self) -> bool:
        """Report trained tasks that all members have trained, and drop void ones. Return True if none is left."""
        while self._unsettled:
            mark, report = self._unsettled[0]
            valid = self._source.valid(report.task)
            if valid and not self.strategy.settled(mark):
                return False
            self._unsettled.popleft()
            if valid:
                self._source.report(report)
        return True

    @property
    def over(self) -> bool:
        """True if the job has nothing left to do."""
        return self._source.over("export")

    # Tasks ----------------------------------------------------------------------------------------------------

    def _take(self) -> _Taken | None:
        """Take the next training task, and do control tasks before it; return None if training is over."""
        if len(self._taken) >= AHEAD:
            raise JobError(
                f"the loop has read {AHEAD} tasks ahead of its steps",
                hint="call optimizer.step() for each part, and use fewer workers of the DataLoader",
            )
        while not self._source.over("export"):
            if self._draining.is_set():
                raise VoidError
            if self._source.over("train"):
                self._flush()
                if self._source.over("train") and not self._source.over("export"):
                    self._control(self._source.next(*CONTROL))
            elif task := self._source.next("train"):
                taken = _Taken(task, Report(task))
                self._taken.append(taken)
                return taken
            else:
                if self._source.turn():
                    self._leave_or_join()
                while self._source.pending and (task := self._source.next(*CONTROL)):
                    self._control(task)
        return None

    def _leave_or_join(self) -> None:
        """Join the next group here, unless the loop has parts of this one."""
        if self._issued:
            raise Regrouped
        self._flush()

    def _parts(self, taken: _Taken) -> Generator[Part, None, bool]:
        """Yield this worker's parts of the rest of a task. Return False if it is void because the group has changed."""
        task = taken.task
        first = task.start + task.skip + taken.done.rows
        for start, end in partition(first, task.end, self._batch_size):
            if self.strategy.leaves:
                self._leave_or_join()
                return False
            rank, size = self.strategy.rank, self.strategy.size
            own, after = (start + (end - start) * each // size for each in (rank, rank + 1))
            whole = (after - own) / (end - start)
            # A worker without a row computes one that has no weight: it must take the step with the others.
            ranges = partition(own, after, self._micro_batch or end - start) or [(start, start + 1)]
            for number, (low, high) in enumerate(ranges, 1):
                share = (high - low) / (end - start) if whole else 0.0
                self._issued.append(_Issued(taken, share, whole, number == len(ranges), end - start))
                yield task.number, low, high
                if not self._ended:
                    self._tell()
        return True

    def _count(self, part: _Issued) -> None:
        """Record that all members take the step. What follows of it waits until the loop comes back: see `_tell`."""
        taken = part.task
        self.strategy.stepped()
        self._latest = taken.done = Report(taken.task, taken.done.rows + part.rows, taken.done.steps + 1)
        self._source.progress(taken.done)
        if taken.done.rows >= taken.task.rows:
            self._taken.remove(taken)
            self._unsettled.append((self.strategy.mark(), taken.done))
            self._ended = taken.task.settles

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
        self._latest, self._ended, self._passed = None, False, False
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
