"""What a worker has in hands, as it tells the master."""

from __future__ import annotations

from edl.tasks.protocol import Answer, Joined
from edl.tasks.task import Report, Task
from edl.worker.outbox import Outbox


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
