"""The progress of a job: what is handed out, and what follows when it is done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.jobs.events import EpochEnd, TrialEnd
from edl.jobs.outcome import Outcome
from edl.spec import Evaluation, Training
from edl.tasks import encoding
from edl.tasks.job_state import MOST_STEPS, STEPWISE, Job, JobState, Plan
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import CONTROL, Conclusion, Report, Task

ROWS = 3 * LEAST_ROWS + 100


def plan(
    kind: Any = "train", *, validation: int = 0, evaluation: Evaluation | None = None, **training: Any
) -> Plan:
    return Plan(
        kind, ROWS, validation, Training(**{"batch_size": 512, **training}), evaluation or Evaluation()
    )


def done(task: Task, *, stop: str = "") -> Report:
    """What a worker reports: a loss of 2 for each row."""
    conclusion = None
    if task.type == "conclude":
        conclusion = Conclusion({"loss": float(task.number)}, stop)
    elif task.type == "export":
        conclusion = Conclusion(outcome=Outcome("train", 0, 0.0))
    return Report(
        task, task.rows, -(-task.rows // 512), 2.0 * task.rows, float(task.rows), conclusion=conclusion
    )


def run(job: Job, *, stop_at: int = 0) -> list[Task]:
    """Do a whole job in one thread; the tasks in the order in which they were done."""
    found: list[Task] = []
    while not job.is_finished:
        task = next(task for kind in (*CONTROL, "train", "predict") if (task := job.take(kind)))
        found.append(task)
        stop = "enough" if task.round is not None and task.round.epoch == stop_at > 0 else ""
        job.finish_task(done(task, stop=stop))
        assert len(found) < 10_000
    return found


def kinds(tasks: list[Task]) -> list[str]:
    """Types in order, each run of one type once."""
    found = [task.type for task in tasks]
    return [kind for position, kind in enumerate(found) if position == 0 or found[position - 1] != kind]


def test_a_conclusion_has_the_standing_and_for_callbacks_the_curve_of_the_earlier_ones() -> None:
    job = Job(plan(validation=100, epochs=3))
    rounds = [task.round for task in run(job) if task.type == "conclude" and task.round is not None]
    assert [(found.standing.best, found.standing.since) for found in rounds] == [(0, 0), (1, 0), (1, 1)]
    assert [found.curve for found in rounds] == [(), (), ()]

    job = Job(plan(validation=100, epochs=3))
    job.state.callbacks = True
    rounds = [task.round for task in run(job) if task.type == "conclude" and task.round is not None]
    assert [[(row.epoch, row.metrics) for row in found.curve] for found in rounds] == [
        [],
        [(1, {"loss": 1.0})],
        [(1, {"loss": 1.0}), (2, {"loss": 2.0})],
    ]


def test_a_rate_that_a_conclusion_sets_goes_out_with_the_tasks_that_follow() -> None:
    job = Job(plan(validation=100, epochs=3))
    rates: list[tuple[int, float | None]] = []
    while not job.is_finished:
        task = next(task for kind in (*CONTROL, "train") if (task := job.take(kind)))
        if task.type == "train":
            rates.append((task.number, task.round.rate if task.round is not None else None))
        report = done(task)
        if task.type == "conclude" and task.round is not None and task.round.epoch == 2:
            report = msgspec.structs.replace(report, conclusion=Conclusion({"loss": 1.0}, rate=0.25))
        job.finish_task(report)
        job = Job(job.plan, encoding.decode(encoding.encode(job.to_state()), JobState))
    assert dict(rates) == {1: None, 2: None, 3: 0.25}


def test_an_epoch_is_measured_and_concluded_before_the_next() -> None:
    job = Job(plan(validation=100, epochs=2))
    tasks = run(job)
    assert kinds(tasks) == ["train", "evaluate", "conclude", "train", "evaluate", "conclude", "export"]
    assert [(row.epoch, row.step, row.loss) for row in job.state.curve.rows] == [(1, 49, 2.0), (2, 98, 2.0)]
    assert [(task.start, task.end) for task in tasks if task.type == "evaluate"] == [(ROWS, ROWS + 100)] * 2


def test_without_held_out_rows_the_training_rows_are_measured_at_the_end() -> None:
    job = Job(plan(epochs=2))
    tasks = run(job)
    assert kinds(tasks) == ["train", "conclude", "train", "conclude", "evaluate", "conclude", "export"]
    assert [(task.start, task.end) for task in tasks if task.type == "evaluate"] == [(0, ROWS)]
    assert job.state.measured_on == "training"
    assert tasks[-1].round is not None
    progress = tasks[-1].round.progress
    assert progress is not None
    assert (progress.rows, progress.steps, progress.epochs) == (2 * ROWS, 98, 2)


def test_a_script_ends_its_loop_in_the_middle_of_a_task() -> None:
    job = Job(Plan("train", MOST_STEPS, training=STEPWISE, measured=False))
    taken, other = job.take("train"), job.take("train")
    assert taken is not None
    assert other is not None
    job.finish_task(Report(taken, 7, 7, conclusion=Conclusion(stop="the loop has ended")))
    assert job.is_over("train")
    assert job.take("train") is None
    assert kinds(run(job)) == ["export"]
    assert (job.state.step, job.state.rows, job.state.stopped) == (7, 7, "the loop has ended")


def test_a_conclusion_ends_the_training_and_voids_what_was_handed_out() -> None:
    job = Job(plan(validation=100, epochs=9))
    tasks = run(job, stop_at=2)
    assert (job.state.stopped, len(job.state.curve.rows)) == ("enough", 2)
    assert tasks[-1].type == "export"
    assert {task.number for task in tasks if task.type == "train"} == {1, 2}


def test_the_next_epoch_is_handed_out_ahead_but_only_one() -> None:
    job = Job(plan(validation=100, epochs=5))
    taken = list(iter(lambda: job.take("train"), None))
    assert {task.number for task in taken} == {1, 2}
    assert not job.is_over("train")
    assert (job.state.epoch, job.current_epoch, job.to_state().current_epoch) == (2, 1, 1)
    for task in taken[:4]:
        job.finish_task(done(task))
    assert job.current_epoch == job.to_state().current_epoch == 2
    assert job.waits("evaluate")
    assert job.take("train") is None


def test_an_evaluation_has_one_round_and_an_export() -> None:
    assert kinds(run(Job(plan("evaluate")))) == ["evaluate", "export"]


def test_a_search_reports_each_trial_and_exports_when_all_have_ended() -> None:
    job = Job(Plan("search", 3, streamed=1))
    for number in (1, 2, 3):
        task = job.take("predict")
        assert task is not None
        assert (task.start, task.rows) == (number - 1, 1)
        assert job.take("export") is None
        trial = TrialEnd(number, 3, "a model", "rmse", 0.5, 1.0)
        assert job.finish_task(Report(task, 1, conclusion=Conclusion(trial=trial))) == [trial]
    assert job.is_over("predict")
    export = job.take("export")
    assert export is not None
    job.finish_task(done(export))
    assert job.is_finished


def test_a_prediction_is_over_when_its_rows_are_done() -> None:
    job = Job(plan("predict"))
    assert kinds(run(job)) == ["predict"]
    assert job.is_over("predict")


def test_rounds_are_begun_by_steps() -> None:
    job = Job(plan(validation=100, shuffle=False, evaluation=Evaluation(steps=20)))
    run(job)
    assert [(row.step, row.final) for row in job.state.curve.rows] == [(32, False), (48, False), (49, True)]


def test_the_end_of_an_epoch_is_measured_once() -> None:
    """Though a round by steps were due there too."""
    job = Job(plan(validation=100, shuffle=False, epochs=2, evaluation=Evaluation(steps=49)))
    run(job)
    assert [(row.step, row.final) for row in job.state.curve.rows] == [(49, True), (98, True)]


def test_rounds_are_begun_by_seconds_after_a_delay_and_not_too_often() -> None:
    evaluation = Evaluation(secs=10, start_delay_secs=60, throttle_secs=15)
    job = Job(plan(validation=100, epochs=1, evaluation=evaluation), began=1000.0)
    task = job.take("train")
    assert task is not None
    job.finish_task(done(task), 1001.0)
    for now in (1010.0, 1059.0):
        job.tick(now)
        assert not job.waits("evaluate")
    job.tick(1060.0)
    measured = job.take("evaluate")
    assert measured is not None
    job.finish_task(done(measured), 1061.0)
    conclusion = job.take("conclude")
    assert conclusion is not None
    (row,) = job.finish_task(done(conclusion), 1061.0)
    assert (row.final, row.seconds) == (False, 61.0)
    job.tick(1071.0)
    assert not job.waits("evaluate")
    job.tick(1075.0)
    assert job.waits("evaluate")


def test_a_part_that_was_given_back_is_counted_and_not_done_again() -> None:
    job = Job(plan(epochs=1, shuffle=False))
    task = job.take("train")
    assert task is not None
    job.give_back(task, Report(task, 1024, 2, 2048.0, 1024.0))
    again = job.take("train")
    assert again is not None
    assert (again.id, again.skip, again.rows) == (task.id, 1024, task.rows - 1024)
    job.finish_task(done(again))
    run(job)
    assert (job.state.rows, job.state.step, job.state.curve.rows[0].loss) == (ROWS, 49, 2.0)


def test_a_task_that_settles_an_epoch_says_so() -> None:
    job = Job(plan(validation=100, epochs=1))
    tasks = [task for _ in range(3) if (task := job.take("train"))]
    for task in tasks:
        assert not task.settles
        job.finish_task(done(task))
    last = job.take("train")
    assert last is not None
    assert last.settles


@given(st.data())
def test_a_job_that_is_written_down_at_any_time_goes_on_to_the_same_end(data: st.DataObject) -> None:
    """Whatever is handed out, done, given back, and forgotten by a crash: each row counts once per epoch."""
    epochs = data.draw(st.integers(1, 3))
    job = Job(plan(validation=100, epochs=epochs))
    doing: list[Task] = []
    for _ in range(200):
        if job.is_finished:
            break
        action = data.draw(st.sampled_from(["take", "done", "give back", "crash"]))
        if action == "take":
            kind = data.draw(st.sampled_from([*CONTROL, "train"]))
            if task := job.take(kind):
                doing.append(task)
        elif action == "crash":
            kept = msgspec.msgpack.encode(job.to_state())
            job, doing = Job(job.plan, msgspec.msgpack.decode(kept, type=JobState)), []
        elif doing:
            task = doing.pop(data.draw(st.integers(0, len(doing) - 1)))
            if action == "done":
                job.finish_task(done(task))
            else:
                job.give_back(task)
    for task in doing:
        job.give_back(task)
    run(job)
    assert job.state.rows == epochs * ROWS
    assert [(row.epoch, row.loss) for row in job.state.curve.rows] == [
        (epoch, 2.0) for epoch in range(1, epochs + 1)
    ]


@pytest.mark.parametrize("claimed", [0, 2])
def test_a_certain_task_can_be_claimed_once(claimed: int) -> None:
    job = Job(plan(epochs=1))
    task = msgspec.structs.replace(job.take("train"), id=claimed) if claimed else job.take("train")
    assert task is not None
    if not claimed:
        job.give_back(task)
    assert job.claim(task, 7) is not None
    assert job.claim(task, 8) is None
    assert claimed not in [other.id for other in iter(lambda: job.take("train"), None)]


def test_the_learning_curve_is_told_row_by_row() -> None:
    job = Job(plan(epochs=1))
    rows: list[EpochEnd] = []
    while not job.is_finished:
        task = next(task for kind in (*CONTROL, "train") if (task := job.take(kind)))
        rows += job.finish_task(done(task), 5.0)
    assert rows == [EpochEnd(1, 49, 2.0, {"loss": 1.0}, 5.0)]


def timed(job: Job, seconds: dict[int, float]) -> list[EpochEnd]:
    """Do a whole job with a clock that shows these seconds at the ends of the epochs; return the rows of its curve."""
    found: list[EpochEnd] = []
    while not job.is_finished:
        task = next(task for kind in (*CONTROL, "train") if (task := job.take(kind)))
        epoch = task.round.epoch if task.round is not None else 0
        found += job.finish_task(done(task), seconds.get(epoch, 0.0))
    return found


@pytest.mark.parametrize(
    ("limit", "epochs", "stopped"),
    [
        (0.0, 4, ""),
        (100.0, 4, ""),
        (10.0, 2, "the time limit of 10 s"),  # the third epoch would end after 12 s
        (12.0, 3, "the time limit of 12 s"),
        (12.3456, 3, "the time limit of 12.35 s"),  # a search divides its time
        (1.0, 1, "the time limit of 1 s"),  # one epoch is done in any case
    ],
)
def test_training_ends_with_the_last_epoch_that_fits_into_its_time(
    limit: float, epochs: int, stopped: str
) -> None:
    job = Job(plan(validation=100, epochs=4, time_limit=limit), began=100.0)
    rows = timed(job, {epoch: 100.0 + 4.0 * epoch for epoch in range(1, 5)})
    assert [row.epoch for row in rows] == list(range(1, epochs + 1))
    assert job.state.stopped == stopped


def test_the_last_epoch_is_no_early_end_whatever_time_it_took() -> None:
    job = Job(plan(epochs=2, time_limit=10.0))
    timed(job, {1: 1.0, 2: 99.0})
    assert job.state.stopped == ""


def conclude(job: Job) -> None:
    task = job.take("conclude")
    assert task is not None
    job.finish_task(done(task))


@pytest.mark.parametrize(
    ("training", "certain"),
    [
        ({}, 9),
        ({"tolerance": 0.1}, 2),
        ({"early_stopping": 3}, 4),  # the first epoch was the best so far
    ],
)
def test_epochs_are_certain_as_far_as_no_conclusion_ends_the_training(
    training: dict[str, Any], certain: int
) -> None:
    job = Job(plan(epochs=9, **training), reserves=True)
    assert job.certain_epoch == 1
    while task := job.take("train", upto=1):
        job.finish_task(done(task))
    conclude(job)
    assert job.certain_epoch == certain


def test_tasks_of_certain_epochs_are_assigned_in_advance_by_a_master_only() -> None:
    for reserves, last in ((True, 5), (False, 3)):
        job = Job(plan(epochs=5), reserves=reserves)
        while task := job.take("train", upto=1):
            job.finish_task(done(task))
        conclude(job)
        while task := job.take("train"):
            assert task.number <= last
        assert job.state.epoch == last


def test_tasks_assigned_in_advance_are_stored_as_never_assigned() -> None:
    job = Job(plan(epochs=1))
    for _ in range(3):
        assert job.take("train")
    first = Task(0, "train", number=1)
    job.finish_task(done(msgspec.structs.replace(first, end=LEAST_ROWS)))
    [kept] = job.to_state().pools
    assert (kept.cursor, kept.returned) == (1, [])
