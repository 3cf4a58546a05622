"""What a worker has in hands, as it tells the master."""

from __future__ import annotations

from edl.tasks.protocol import Answer, Joined, TaskRun
from edl.tasks.task import Report, Task
from edl.worker.outbox import MOST_UPDATES, Outbox


def test_how_far_a_task_is_is_told_with_all_its_sums() -> None:
    task, wanted = (
        Task(3, "train", 0, 100, attempt=7),
        Report(Task(3, "train", 0, 100, attempt=7), 40, 2, 8.0, 20.0),
    )
    alone, member = Outbox("worker-0", 0), Outbox("worker-1", 0)
    alone.on_answer(Answer(1, (task,)))
    assert alone.take("train") == task
    alone.progress(Report(task, 40, 2, 8.0, 20.0))
    member.enter(1, [Report(task, 40, 2, 8.0, 20.0)], ())
    assert alone.request({}).held == member.request({}).held == (wanted,)


def test_which_master_it_is_that_answers_is_known() -> None:
    box = Outbox("worker-0", 0)
    box.apply_registration(Joined(3, 1, 10.0, 3.0))
    assert box.master_epoch == 3
    box.on_answer(Answer(4))
    assert box.master_epoch == 4


def test_a_report_is_kept_until_it_survives_the_master() -> None:
    tasks = Task(1, "train", 0, 100, attempt=7), Task(1, "train", 100, 200, attempt=8)
    box = Outbox("worker-0", 0)
    box.on_answer(Answer(1, tasks))
    for task in tasks:
        box.report("done", Report(task, 100, 1))
    box.on_answer(Answer(1, seen_upto=2, durable_upto=1))
    assert not box.is_unacknowledged
    assert box.unstored_leases == {8}
    box.on_answer(Answer(1, seen_upto=2, durable_upto=2))
    assert box.unstored_leases == set()


def test_tasks_that_are_not_begun_are_named_as_runs_and_returned_when_the_master_asks() -> None:
    tasks = [Task(number, "train", attempt=7 + number) for number in range(4)]
    box = Outbox("worker-0", 0)
    box.on_answer(Answer(1, (*tasks, Task(9, "train", attempt=30))))
    assert box.take("train") == tasks[0]
    request = box.request({})
    assert [held.task for held in request.held] == tasks[:1]
    assert request.waiting == (TaskRun("train", 0, 1, 8, 3), TaskRun("train", 0, 9, 30))
    box.on_answer(Answer(1, asked=(7, 9, 10)))
    assert box.asked
    assert [task.id for run in box.request({}).waiting for task in run.tasks] == [1, 9]
    assert not box.asked
    assert box.holds_lease(tasks[0])


def test_a_task_of_a_later_epoch_is_begun_when_the_epoch_is_open_or_no_master_answers() -> None:
    early, late = Task(0, "train", number=1, attempt=9), Task(0, "train", number=2, attempt=8)
    box = Outbox("worker-0", 0)
    box.on_answer(Answer(1, (late,), open_epoch=1))
    assert box.take("train") is None
    assert box.request({"train": 2}).idle == ("train",)
    box.on_answer(Answer(1, (early,), open_epoch=1))
    assert box.request({"train": 2}).idle == ()
    assert box.take("train") == early
    assert box.take("train", away=True) == late


def test_many_reports_are_sent_in_several_requests() -> None:
    box = Outbox("worker-0", 0)
    for number in range(MOST_UPDATES + 5):
        box.report("done", Report(Task(number, "predict", attempt=number)))
    assert len(box.request({}).updates) == MOST_UPDATES
    box.on_answer(Answer(1, seen_upto=MOST_UPDATES))
    assert [update.sequence for update in box.request({}).updates] == [
        MOST_UPDATES + number for number in range(1, 6)
    ]
