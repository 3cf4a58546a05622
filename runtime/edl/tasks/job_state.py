"""State machine of a job: which tasks exist, in which order, and what follows when they are done.

It knows no processes, leases or clock; the caller passes the time. A job in one process uses it directly
(`edl.tasks.local`), the master with leases around it (`edl.master.tasks.task_manager`).

    train      epoch 1 ─▶ round ─▶ conclude ─▶ epoch 2 ─▶ … ─▶ conclude ─▶ export
    search     all candidates ─▶ export
    evaluate   round over all rows ─▶ export
    predict    all rows

A round measures the validation rows; `conclude` computes metrics from it and may end the training. Without such rows an
epoch is concluded at once, and the training rows are measured after the last epoch. While a round is measured, tasks of
the next epoch may be assigned; they are void if the conclusion ends the training. Those of later epochs may be assigned
too, up to the last epoch that is trained whatever the next conclusions decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from edl.jobs.events import EpochEnd, Figures, TrialEnd
from edl.jobs.outcome import MeasuredOn, Outcome
from edl.spec import SCRIPT, Evaluation, JobSpec, Rows, Training, Uncertainty
from edl.spec.job import Work
from edl.tasks.curve import LearningCurve
from edl.tasks.pool import Merge, Pool, PoolState
from edl.tasks.ranges import STREAMED_ROWS, Ranges, epoch_ranges, epoch_steps, streamed_rows
from edl.tasks.task import Conclusion, JobProgress, Report, Round, Summary, Task, TaskType

MOST_STEPS = 2**50  # of a script that decides when it ends; such a job has an epoch of steps instead of rows
MOST_EPOCHS = 64  # begun and not concluded; with many metrics, more would not fit into a ConfigMap
STEPWISE = Training(batch_size=1, minibatches_per_task=16, shuffle=False)


class Plan(msgspec.Struct, frozen=True):
    """Work of a job. `rows` are trained on, evaluated or predicted, starting at row 0; `validation` rows follow them.
    `streamed` is the number of rows of an evaluation or prediction task. Of a search, the rows are its turns. Unless
    there are validation rows or `measured` is False, the training rows are measured after the last epoch.
    """

    kind: Work
    rows: int
    validation: int = 0
    training: Training = Training()
    evaluation: Evaluation = Evaluation()
    streamed: int = STREAMED_ROWS
    measured: bool = True

    @property
    def is_endless(self) -> bool:
        """True if a script decides when it ends."""
        return self.rows == MOST_STEPS

    @property
    def parts(self) -> int:
        """Number of parts of a prediction's result: one for each task, and an empty one without rows."""
        return max(1, -(-self.rows // self.streamed))


def plan(spec: JobSpec, rows: Rows) -> Plan:
    """Return the plan of a job spec with these rows."""
    if spec.search is not None:
        return Plan("search", spec.search.turns, streamed=1)
    if spec.kind == "train":
        measured = spec.model.name != SCRIPT
        return Plan(
            "train", rows.training, rows.validation, spec.training, spec.evaluation, measured=measured
        )
    return Plan(spec.work, rows.total, streamed=streamed_rows(spec, rows.total))


class JobState(msgspec.Struct):
    """Durable state of a job.

    `epoch` is the last epoch begun. `trained` are epochs with all rows done, but not concluded; `measured` is the
    last one with a begun final round. `step`, `rows`, `loss` and `weight` are sums over all finished training tasks.
    `rounds` counts the rounds begun; `measured_at` is the step and second of the last one. `rate` is the learning rate
    that a conclusion has set last, with the number of its round.
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
    uncertainty: Uncertainty | None = None  # of the last round, as the figures

    @property
    def current_epoch(self) -> int:
        """The first epoch that is begun and not completely trained; tasks of later ones are assigned ahead."""
        return min((pool.number for pool in self.pools if pool.type == "train"), default=self.epoch)


class Job:
    """State machine of one job. `began` is the second of its start, on the caller's clock.

    `merge` merges the metric states of two tasks. If it returns None, they stay separate until a worker concludes the
    round. `reserves`: tasks of later epochs are assigned in advance.
    """

    def __init__(
        self,
        plan: Plan,
        state: JobState | None = None,
        *,
        merge: Merge | None = None,
        began: float = 0.0,
        reserves: bool = False,
    ) -> None:
        self.plan = plan
        self._reserves = reserves
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
    def current_epoch(self) -> int:
        """The first epoch that is begun and not completely trained, as of the stored state."""
        return min((pool.state.number for pool in self._of("train")), default=self.state.epoch)

    @property
    def is_finished(self) -> bool:
        return self.state.finished

    @property
    def is_stopped(self) -> bool:
        """True if training was ended before its last epoch."""
        return bool(self.state.stopped)

    @property
    def is_measuring(self) -> bool:
        """True if a round is open, so that its measurements are not concluded."""
        return any(pool.state.type in ("evaluate", "conclude") for pool in self._pools)

    @property
    def unconcluded_epoch(self) -> int:
        """First epoch that is begun and not concluded; 0: none."""
        return min([*(pool.state.number for pool in self._of("train")), *self.state.trained], default=0)

    @property
    def certain_epoch(self) -> int:
        """Last epoch that is trained whatever the next conclusions decide."""
        training, concluded = self.plan.training, self.state.curve.epochs
        if not concluded or self.state.callbacks or training.tolerance or training.time_limit:
            return concluded + 1
        if not training.early_stopping:
            return training.epochs
        return concluded + max(1, training.early_stopping - self.state.curve.standing.since)

    @property
    def available(self) -> set[TaskType]:
        """Types of the tasks that are available now."""
        types = {pool.state.type for pool in self._pools if pool.todo}
        if "conclude" in types and not any(pool.todo for pool in self._ready("conclude")):
            types.discard("conclude")
        return types if "train" in types or not self._may_begin_epoch() else {*types, "train"}

    def count_queue(self, kind: TaskType) -> int:
        """Return the number of available tasks of that type; at the end of an epoch, of the next one's."""
        pools = list(self._of(kind))
        todo = sum(pool.todo for pool in pools)
        if todo or kind != "train" or not self._may_begin_epoch():
            return todo
        return len(pools[-1].ranges if pools else self._ranges(PoolState("train", self.state.epoch + 1)))

    def waits(self, kind: TaskType) -> bool:
        """Return True if a task of that type is available now."""
        return kind in self.available

    def is_over(self, kind: TaskType) -> bool:
        """Return True if there will be no more tasks of that type."""
        if self.is_finished:
            return True
        if kind == "train":
            return self.is_stopped or not (any(self._of(kind)) or self._more_epochs())
        return kind == "predict" and not any(self._of(kind))

    def take(self, kind: TaskType, attempt: int = 0, upto: int = 0) -> Task | None:
        """Assign a task, or return None if none of that type is available now.

        `upto` is the last epoch of a training task; 0: any.
        """
        if kind == "train" and self.is_stopped:
            return None
        for pool in self._ready(kind):
            if (not upto or pool.state.number <= upto) and (task := pool.take(attempt)):
                return self._add_earlier_results(task)
        if kind == "train" and self._may_begin_epoch() and (not upto or self.state.epoch < upto):
            self._begin_epoch()
            task = self._pools[-1].take(attempt)
            return self._add_earlier_results(task) if task is not None else None
        return None

    def claim(self, task: Task, attempt: int) -> Task | None:
        """Assign a specific task again if it is available; return None if it is done or assigned.

        A task of the next epoch begins that epoch: it was assigned when nothing else of the last one was available.
        """
        begins = task.type == "train" and task.number == self.state.epoch + 1 and not self.is_stopped
        if begins and self._more_epochs():
            self._begin_epoch()
        pool = next((pool for pool in self._ready(task.type) if pool.state.number == task.number), None)
        return (
            self._add_earlier_results(pool.task(task.id, attempt))
            if pool is not None and pool.claim(task.id)
            else None
        )

    def again(self, kind: TaskType, number: int, position: int, attempt: int) -> Task | None:
        """Return an assigned task once more, under another lease; None if it is not assigned."""
        pool = self._pool(kind, number)
        if pool is None or position not in pool.doing:
            return None
        return self._add_earlier_results(pool.task(position, attempt))

    def hold(self, kind: TaskType, number: int, position: int, skip: int) -> None:
        """Mark a task as assigned that `kept(doing=True)` has kept as such."""
        pool = self._pool(kind, number)
        if pool is not None:
            pool.doing[position] = skip

    def give_back(self, task: Task, part: Report | None = None) -> None:
        """Return an assigned task to the queue, before later ones. `part` is its durable part."""
        pool = self._pool(task.type, task.number)
        if pool is not None and task.id in pool.doing:
            pool.give_back(task.id, part)
            if part is not None:
                self._count(part)

    # What follows ----------------------------------------------------------------------------------------

    def finish_task(self, report: Report, now: float = 0.0) -> list[EpochEnd | TrialEnd]:
        """Finish an assigned task, and return the rows of the learning curve, or the trial, that this completes."""
        pool = self._pool(report.task.type, report.task.number)
        if pool is None or report.task.id not in pool.doing:
            return []
        pool.finish(report, self._merge)
        trial = report.conclusion.trial if report.conclusion is not None else None
        if trial is not None:
            if pool.is_complete:
                self._pools.remove(pool)
                self._complete(pool, report, now)
            return [trial]
        if report.task.type == "train":
            self._count(report)
            if report.conclusion is not None:  # the loop of a script has ended
                self.stop(report.conclusion.stop, now)
                return []
            if not pool.is_complete:  # the end of an epoch is measured anyway
                self._measure_by_step(now)
        if not pool.is_complete:
            return []
        self._pools.remove(pool)
        return self._complete(pool, report, now)

    def tick(self, now: float) -> None:
        """Advance the time, and begin a round that is due."""
        secs, delay = self.plan.evaluation.secs, self.plan.evaluation.start_delay_secs
        since = now - max(self.state.measured_at[1], self._began + delay - secs)
        if secs and since >= secs:
            self._measure_within_epoch(now)

    def stop(self, reason: str, now: float = 0.0) -> None:
        """End the training after the open rounds."""
        self.state.stopped = self.state.stopped or reason
        self._end_training_when_concluded(now)

    def to_state(self, *, doing: bool = False) -> JobState:
        """Return the state to store. `doing`: assigned tasks stay assigned, and are stored elsewhere; otherwise they
        are available again.
        """
        return msgspec.structs.replace(self.state, pools=[pool.to_state(doing=doing) for pool in self._pools])

    # The progress-----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self.plan.kind == "train":
            self._begin_epoch()
        elif self.plan.kind == "evaluate":
            self._open("evaluate", 1, Round(1, measured_on="all"))
        else:
            self._open("predict", 0)

    def _complete(self, pool: Pool, report: Report, now: float) -> list[EpochEnd | TrialEnd]:
        kind = pool.state.type
        if kind == "train":
            return self._end_epoch(pool, now)
        if kind == "predict" and self.plan.kind == "search":
            self._export(Round(1, step=self.state.step), now)
        elif kind == "evaluate":
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

    def _end_epoch(self, pool: Pool, now: float) -> list[EpochEnd | TrialEnd]:
        """Measure finished epochs in their order, though a later one may finish earlier."""
        self.state.trained[pool.state.number] = pool.state.summary
        while self.state.measured + 1 in self.state.trained:
            self.state.measured += 1
            self._measure(self.state.measured, final=True, now=now)
        return []

    def _measure(self, epoch: int, *, final: bool, now: float) -> None:
        """Begin a round on the validation rows; without such rows conclude the epoch at once."""
        self.state.rounds += 1
        self.state.measured_at = (self.state.step, now)
        measured_on: MeasuredOn = "validation" if self.plan.validation else ""
        round_ = Round(
            self.state.rounds,
            epoch,
            final,
            self.state.step,
            self._epoch_summary(epoch),
            measured_on=measured_on,
        )
        self._open("evaluate" if measured_on else "conclude", round_.number, round_)

    def _epoch_summary(self, epoch: int) -> Summary:
        """Return the sums of the epoch so far."""
        open_pools = {pool.state.number: pool.state.summary for pool in self._of("train")}
        return msgspec.structs.replace(self.state.trained.get(epoch) or open_pools[epoch])

    def _end_round(self, pool: Pool, now: float) -> None:
        round_ = msgspec.structs.replace(pool.state.round or Round(), measured=pool.state.summary)
        if self.plan.kind == "evaluate":
            self._export(round_, now)
        else:
            self._open("conclude", round_.number, round_)

    def _conclude(self, pool: Pool, conclusion: Conclusion, now: float) -> list[EpochEnd | TrialEnd]:
        round_ = pool.state.round or Round()
        if conclusion.figures:
            self.state.figures = conclusion.figures
            self.state.measured_on = round_.measured_on
            self.state.uncertainty = conclusion.uncertainty
        if conclusion.rate is not None:
            self.state.rate = round_.number, conclusion.rate
        if not round_.epoch:  # the training rows were measured, after the last epoch
            self._export(round_, now)
            return []
        row = EpochEnd(
            round_.epoch,
            round_.step,
            round_.trained.mean_loss,
            conclusion.figures,
            now - self._began,
            final=round_.final,
        )
        settled = self._check_convergence(row)
        self.state.curve.add(row, self.plan.training.min_delta, conclusion.uncertainty)
        self.state.callbacks = self.state.callbacks or conclusion.callbacks
        if round_.final:
            self.state.trained.pop(round_.epoch, None)
        self.state.stopped = (
            self.state.stopped or conclusion.stop or settled or self._out_of_time(round_, now)
        )
        self._end_training_when_concluded(now)
        return [row]

    def _check_convergence(self, row: EpochEnd) -> str:
        """Return the reason to end the training if the loss no longer falls, else an empty string."""
        share, before = self.plan.training.tolerance, self.state.curve.ends.items[-1:]
        if not share or not row.final or not before or row.loss is None or before[0].loss is None:
            return ""
        settled = before[0].loss - row.loss < share * abs(before[0].loss)
        return f"its loss fell by less than {100 * share:g} %" if settled else ""

    def _out_of_time(self, round_: Round, now: float) -> str:
        """Return the reason to end the training if no other epoch fits into its time limit, else an empty string."""
        limit, spent = self.plan.training.time_limit, now - self._began
        if not (limit and round_.final and self._more_epochs()):
            return ""
        return f"the time limit of {round(limit, 2):g} s" if spent + spent / round_.epoch > limit else ""

    def _end_training_when_concluded(self, now: float) -> None:
        """Begin the final tasks after the last epoch, once no round of the training is open."""
        if self.is_stopped:  # what was handed out of an epoch that is not to be is void
            self._pools = [pool for pool in self._pools if pool.state.type != "train"]
        elif any(self._of("train")) or self._more_epochs():
            return
        if any(pool.state.type != "train" for pool in self._pools) or self.is_finished:
            return
        self.state.rounds += 1
        round_ = Round(self.state.rounds, 0, True, self.state.step)
        if self.plan.validation or not self.plan.measured:
            self._export(round_, now)
        else:
            self._open("evaluate", round_.number, msgspec.structs.replace(round_, measured_on="training"))

    def _export(self, round_: Round, now: float) -> None:
        state = self.state
        progress = JobProgress(
            state.rows,
            state.step,
            now - self._began,
            state.curve.rows,
            state.figures,
            state.measured_on,
            state.stopped,
            state.curve.epochs,
            state.curve.standing,
            state.uncertainty,
        )
        self._open("export", 0, msgspec.structs.replace(round_, progress=progress))

    # Epochs and rounds ------------------------------------------------------------------------------------

    def _more_epochs(self) -> bool:
        training = self.plan.training
        if self.plan.kind != "train" or self.state.epoch >= training.epochs:
            return False
        steps = self.state.epoch * epoch_steps(training, self.plan.rows)
        return not training.max_steps or steps < training.max_steps

    def _may_begin_epoch(self) -> bool:
        """Return True if all tasks of the last epoch are assigned; it need not be concluded."""
        if self.is_stopped or not self._more_epochs() or any(pool.todo for pool in self._of("train")):
            return False
        begun = len(list(self._of("train"))) + len(self.state.trained)
        return begun <= 1 or (
            self._reserves and begun < MOST_EPOCHS and self.state.epoch < self.certain_epoch
        )

    def _begin_epoch(self) -> None:
        self.state.epoch += 1
        self._open("train", self.state.epoch)

    def _measure_by_step(self, now: float) -> None:
        steps = self.plan.evaluation.steps
        if steps and self.state.step // steps > self.state.measured_at[0] // steps:
            self._measure_within_epoch(now)

    def _measure_within_epoch(self, now: float) -> None:
        """Begin a round in the middle of an epoch, unless one is open or the last was too recent."""
        if not self.plan.validation or any(self._of("evaluate")) or any(self._of("conclude")):
            return
        throttle = self.plan.evaluation.throttle_secs
        if self.state.rounds and now - self.state.measured_at[1] < throttle:
            return
        epochs = [pool.state.number for pool in self._of("train") if pool.state.summary.rows]
        if epochs:
            self._measure(epochs[0], final=False, now=now)

    # Pools ------------------------------------------------------------------------------------------------

    def _add_earlier_results(self, task: Task) -> Task:
        """Add the results of earlier conclusions, whichever workers made them, to a task."""
        if task.type == "conclude" and task.round is not None:
            curve = self.state.curve
            rows = curve.rows if self.state.callbacks else ()
            round_ = msgspec.structs.replace(task.round, curve=rows, standing=curve.standing)
        elif task.type == "train" and self.state.rate is not None:
            number, rate = self.state.rate
            round_ = Round(number, rate=rate)
        else:
            return task
        return msgspec.structs.replace(task, round=round_)

    def _open(self, kind: TaskType, number: int, round_: Round | None = None) -> Pool:
        state = PoolState(kind, number, round=round_)
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
        """Yield the pools of assignable tasks: rounds are concluded one after another."""
        if kind != "conclude":
            return self._of(kind)
        rounds = [pool.state.number for pool in self._pools if pool.state.type in ("evaluate", "conclude")]
        return (pool for pool in self._of(kind) if pool.state.number == min(rounds))

    def _pool(self, kind: TaskType, number: int) -> Pool | None:
        return next((pool for pool in self._of(kind) if pool.state.number == number), None)
