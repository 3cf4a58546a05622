"""The course of a job: which tasks there are, in which order, and what follows when they are done.

A pure state machine. It knows no processes, no leases and no clock: time is handed in. A job in one process uses it
directly (`edl.tasks.local`), the master with leases around it (`edl.master.leases`).

    train      epoch 1 ─▶ round ─▶ conclude ─▶ epoch 2 ─▶ … ─▶ conclude ─▶ export
    evaluate   round over all rows ─▶ export
    predict    all rows

A round measures the validation rows; `conclude` makes figures of it and may end the training. Without such rows an
epoch is concluded at once, and the training rows are measured when training has ended. While a round is measured,
tasks of the next epoch may be handed out; they are void when the conclusion ends the training.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edl.spec import Evaluation, JobSpec, Rows, Training
from edl.spec.job import Work
from edl.tasks.curve import LearningCurve
from edl.tasks.events import EpochEnd, Figures
from edl.tasks.outcome import MeasuredOn, Outcome
from edl.tasks.pool import Merge, Pool, PoolState
from edl.tasks.ranges import STREAMED_ROWS, Ranges, epoch_ranges, epoch_steps, streamed_rows
from edl.tasks.task import Conclusion, JobProgress, Report, Round, Summary, Task, TaskType


class Plan(msgspec.Struct, frozen=True):
    """What a job is to do. rows: trained on, evaluated or predicted, from 0; validation: measured, after them.
    streamed: rows of a task that evaluates or predicts.
    """

    kind: Work
    rows: int
    validation: int = 0
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    streamed: int = STREAMED_ROWS

    @property
    def parts(self) -> int:
        """Of the result of a job that predicts: one of each task, and an empty one of no rows."""
        return max(1, -(-self.rows // self.streamed))


def plan(spec: JobSpec, rows: Rows) -> Plan:
    """What the job of the spec is to do with these rows."""
    if spec.kind == "train":
        return Plan("train", rows.training, rows.validation, spec.training, spec.evaluation)
    return Plan(spec.work, rows.total, streamed=streamed_rows(spec, rows.total))


class JobState(msgspec.Struct):
    """All that is kept of a job's course.

    epoch: the last that was begun. trained: epochs whose rows are all done and that are not concluded. measured: the
    last whose final round was begun. step, rows, loss, weight: sums over
    all training tasks that are done. rounds: that were begun. measured_at: the step and the second of the last one.
    rate: that the last conclusion to do so has set, with the number of its round. callbacks: the program has some.
    """

    pools: list[PoolState] = []
    epoch: int = 0
    step: int = 0
    rows: int = 0
    rounds: int = 0
    measured_at: tuple[int, float] = (0, 0.0)
    trained: dict[int, Summary] = {}
    measured: int = 0
    curve: LearningCurve = msgspec.field(default_factory=LearningCurve)
    figures: Figures = {}
    measured_on: MeasuredOn = ""
    stopped: str = ""
    finished: bool = False
    outcome: Outcome | None = None  # what the export came to
    rate: tuple[int, float] | None = None
    loss: float = 0.0
    weight: float = 0.0
    callbacks: bool = False


class Job:
    """The course of one job. `began`: the second at which it started, on the clock that is handed in.

    merge: how the metrics' states of two tasks become one; None keeps them apart until a worker
    concludes the round.
    """

    def __init__(
        self, plan: Plan, state: JobState | None = None, *, merge: Merge | None = None, began: float = 0.0
    ) -> None:
        self.plan = plan
        self._merge = merge
        self._began = began
        self.state = state or JobState()
        self._pools = [Pool(kept, self._ranges(kept)) for kept in self.state.pools]
        self.state.pools = []
        if state is None:
            self._begin()

    # What there is to do ---------------------------------------------------------------------------------

    @property
    def pools(self) -> tuple[Pool, ...]:
        return tuple(self._pools)

    @property
    def finished(self) -> bool:
        return self.state.finished

    @property
    def stopped(self) -> bool:
        """Whether training was ended before its last epoch."""
        return bool(self.state.stopped)

    @property
    def measuring(self) -> bool:
        """Whether a round is open: what it measures is not concluded."""
        return any(pool.state.type in ("evaluate", "conclude") for pool in self._pools)

    def waits(self, kind: TaskType) -> bool:
        """Whether a task of that type is to do now."""
        return any(pool.todo for pool in self._ready(kind)) or (kind == "train" and self._may_begin_epoch())

    def over(self, kind: TaskType) -> bool:
        """Whether there will be no task of that type any more."""
        if self.finished:
            return True
        if kind == "train":
            return self.stopped or not (any(self._of(kind)) or self._more_epochs())
        return kind == "predict" and not any(self._of(kind))

    def take(self, kind: TaskType, attempt: int = 0) -> Task | None:
        """Hand out a task; None when none of that type is to do now."""
        if kind == "train" and self.stopped:
            return None
        for pool in self._ready(kind):
            if task := pool.take(attempt):
                return self._informed(task)
        if kind == "train" and self._may_begin_epoch():
            self._begin_epoch()
            task = self._pools[-1].take(attempt)
            return self._informed(task) if task is not None else None
        return None

    def claim(self, task: Task, attempt: int) -> Task | None:
        """The task, handed out anew, if it is to do; None when it is done, or somebody else does it.

        With a task of the next epoch, that begins: it was handed out when nothing else of the last one was to do.
        """
        begins = task.type == "train" and task.number == self.state.epoch + 1 and not self.stopped
        if begins and self._more_epochs():
            self._begin_epoch()
        pool = next((pool for pool in self._ready(task.type) if pool.state.number == task.number), None)
        return (
            self._informed(pool.task(task.id, attempt)) if pool is not None and pool.claim(task.id) else None
        )

    def hold(self, kind: TaskType, number: int, position: int, skip: int) -> None:
        """Somebody has this task in hands, as `kept(doing=True)` was told."""
        pool = self._pool(kind, number)
        if pool is not None:
            pool.doing[position] = skip

    def give_back(self, task: Task, part: Report | None = None) -> None:
        """A task that was handed out is not done, or only in part: it is to do again, before later ones."""
        pool = self._pool(task.type, task.number)
        if pool is not None and task.id in pool.doing:
            pool.give_back(task.id, part)
            if part is not None:
                self._count(part)

    # What follows ----------------------------------------------------------------------------------------

    def done(self, report: Report, now: float = 0.0) -> list[EpochEnd]:
        """A task that was handed out is done; the rows of the learning curve that this completes."""
        pool = self._pool(report.task.type, report.task.number)
        if pool is None or report.task.id not in pool.doing:
            return []
        pool.finish(report, self._merge)
        if report.task.type == "train":
            self._count(report)
            if not pool.complete:  # the end of an epoch is measured anyway
                self._measure_by_step(now)
        if not pool.complete:
            return []
        self._pools.remove(pool)
        return self._complete(pool, report, now)

    def tick(self, now: float) -> None:
        """Time has passed: begin a round if one is due."""
        secs, delay = self.plan.evaluation.secs, self.plan.evaluation.start_delay_secs
        since = now - max(self.state.measured_at[1], self._began + delay - secs)
        if secs and since >= secs:
            self._measure_within_epoch(now)

    def stop(self, reason: str, now: float = 0.0) -> None:
        """End the training after the rounds that are open."""
        self.state.stopped = self.state.stopped or reason
        self._end_training_when_concluded(now)

    def kept(self, *, doing: bool = False) -> JobState:
        """What to keep. doing: what is handed out stays so, and is kept elsewhere; else it is to do again."""
        return msgspec.structs.replace(self.state, pools=[pool.kept(doing=doing) for pool in self._pools])

    # The course -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.plan.kind == "train":
            self._begin_epoch()
        elif self.plan.kind == "evaluate":
            self._open("evaluate", 1, Round(1, measured_on="all"))
        else:
            self._open("predict", 0)

    def _complete(self, pool: Pool, report: Report, now: float) -> list[EpochEnd]:
        kind = pool.state.type
        if kind == "train":
            return self._end_epoch(pool, now)
        if kind == "evaluate":
            self._end_round(pool, now)
        elif kind == "conclude":
            return self._conclude(pool, report.conclusion or Conclusion(), now)
        else:
            self.state.finished = True
            self.state.outcome = (report.conclusion or Conclusion()).outcome
        return []

    def _count(self, part: Report) -> None:
        self.state.step += part.steps
        self.state.rows += part.rows
        self.state.loss += part.loss
        self.state.weight += part.weight

    def _end_epoch(self, pool: Pool, now: float) -> list[EpochEnd]:
        """Measure what is trained: epochs in their order, though a later one may be done sooner."""
        self.state.trained[pool.state.number] = pool.state.summary
        while self.state.measured + 1 in self.state.trained:
            self.state.measured += 1
            self._measure(self.state.measured, final=True, now=now)
        return []

    def _measure(self, epoch: int, *, final: bool, now: float) -> None:
        """Begin a round on the validation rows; without such rows there is nothing to measure, only to conclude."""
        self.state.rounds += 1
        self.state.measured_at = (self.state.step, now)
        measured_on: MeasuredOn = "validation" if self.plan.validation else ""
        found = Round(
            self.state.rounds, epoch, final, self.state.step, self._trained(epoch), measured_on=measured_on
        )
        self._open("evaluate" if measured_on else "conclude", found.number, found)

    def _trained(self, epoch: int) -> Summary:
        """What the epoch has trained so far."""
        open_pools = {pool.state.number: pool.state.summary for pool in self._of("train")}
        return msgspec.structs.replace(self.state.trained.get(epoch) or open_pools[epoch])

    def _end_round(self, pool: Pool, now: float) -> None:
        found = msgspec.structs.replace(pool.state.round or Round(), measured=pool.state.summary)
        if self.plan.kind == "evaluate":
            self._export(found, now)
        else:
            self._open("conclude", found.number, found)

    def _conclude(self, pool: Pool, conclusion: Conclusion, now: float) -> list[EpochEnd]:
        found = pool.state.round or Round()
        if conclusion.figures:
            self.state.figures = conclusion.figures
            self.state.measured_on = found.measured_on
        if conclusion.rate is not None:
            self.state.rate = found.number, conclusion.rate
        if not found.epoch:  # the training rows were measured, after the last epoch
            self._export(found, now)
            return []
        row = EpochEnd(
            found.epoch,
            found.step,
            found.trained.mean_loss,
            conclusion.figures,
            now - self._began,
            final=found.final,
        )
        self.state.curve.add(row, self.plan.training.min_delta)
        self.state.callbacks = self.state.callbacks or conclusion.callbacks
        if found.final:
            self.state.trained.pop(found.epoch, None)
        self.state.stopped = self.state.stopped or conclusion.stop
        self._end_training_when_concluded(now)
        return [row]

    def _end_training_when_concluded(self, now: float) -> None:
        """Begin what comes after the last epoch, once nothing of the training is open."""
        if self.stopped:  # what was handed out of an epoch that is not to be is void
            self._pools = [pool for pool in self._pools if pool.state.type != "train"]
        elif any(self._of("train")) or self._more_epochs():
            return
        if any(pool.state.type != "train" for pool in self._pools) or self.finished:
            return
        self.state.rounds += 1
        found = Round(self.state.rounds, 0, True, self.state.step)
        if self.plan.validation:
            self._export(found, now)
        else:
            self._open("evaluate", found.number, msgspec.structs.replace(found, measured_on="training"))

    def _export(self, found: Round, now: float) -> None:
        state = self.state
        course = JobProgress(
            state.rows,
            state.step,
            now - self._began,
            state.curve.rows,
            state.figures,
            state.measured_on,
            state.stopped,
            state.curve.epochs,
            state.curve.standing,
        )
        self._open("export", 0, msgspec.structs.replace(found, course=course))

    # Epochs and rounds ------------------------------------------------------------------------------------

    def _more_epochs(self) -> bool:
        training = self.plan.training
        if self.plan.kind != "train" or self.state.epoch >= training.epochs:
            return False
        steps = self.state.epoch * epoch_steps(training, self.plan.rows)
        return not training.max_steps or steps < training.max_steps

    def _may_begin_epoch(self) -> bool:
        """The next epoch may begin before the last is concluded, not before its tasks are all handed out."""
        if self.stopped or not self._more_epochs() or any(pool.todo for pool in self._of("train")):
            return False
        return len(list(self._of("train"))) + len(self.state.trained) <= 1

    def _begin_epoch(self) -> None:
        self.state.epoch += 1
        self._open("train", self.state.epoch)

    def _measure_by_step(self, now: float) -> None:
        steps = self.plan.evaluation.steps
        if steps and self.state.step // steps > self.state.measured_at[0] // steps:
            self._measure_within_epoch(now)

    def _measure_within_epoch(self, now: float) -> None:
        """Begin a round in the middle of an epoch, unless one is open or the last was too short a time ago."""
        if not self.plan.validation or any(self._of("evaluate")) or any(self._of("conclude")):
            return
        throttle = self.plan.evaluation.throttle_secs
        if self.state.rounds and now - self.state.measured_at[1] < throttle:
            return
        epochs = [pool.state.number for pool in self._of("train") if pool.state.summary.rows]
        if epochs:
            self._measure(epochs[0], final=False, now=now)

    # Pools ------------------------------------------------------------------------------------------------

    def _informed(self, task: Task) -> Task:
        """Tell what the conclusions so far came to, whichever workers made them."""
        if task.type == "conclude" and task.round is not None:
            curve = self.state.curve
            rows = curve.rows if self.state.callbacks else ()
            found = msgspec.structs.replace(task.round, curve=rows, standing=curve.standing)
        elif task.type == "train" and self.state.rate is not None:
            number, rate = self.state.rate
            found = Round(number, rate=rate)
        else:
            return task
        return msgspec.structs.replace(task, round=found)

    def _open(self, kind: TaskType, number: int, found: Round | None = None) -> Pool:
        state = PoolState(kind, number, round=found)
        pool = Pool(state, self._ranges(state))
        self._pools.append(pool)
        return pool

    def _ranges(self, state: PoolState) -> Ranges:
        plan = self.plan
        if state.type == "train":
            return epoch_ranges(plan.training, plan.rows, state.number)
        if state.type in ("conclude", "export"):
            return Ranges(0, 0, 1)
        if state.round is not None and state.round.measured_on == "validation":
            return Ranges(plan.rows, plan.rows + plan.validation, plan.streamed)
        return Ranges(0, plan.rows, plan.streamed)

    def _of(self, kind: TaskType) -> Iterator[Pool]:
        return (pool for pool in self._pools if pool.state.type == kind)

    def _ready(self, kind: TaskType) -> Iterator[Pool]:
        """Pools whose tasks may be handed out: rounds are concluded one after another."""
        if kind != "conclude":
            return self._of(kind)
        rounds = [pool.state.number for pool in self._pools if pool.state.type in ("evaluate", "conclude")]
        return (pool for pool in self._of(kind) if pool.state.number == min(rounds))

    def _pool(self, kind: TaskType, number: int) -> Pool | None:
        return next((pool for pool in self._of(kind) if pool.state.number == number), None)
