"""What the master does when an instance finds its checkpoint damaged: state machines alone, a clock of the test's."""

from __future__ import annotations

import pytest

from edl.errors import DamagedError
from edl.jobs.failure import Failed
from edl.master.tasks.recovery import TrainerRecovery
from edl.ps.checkpoint.content import Mode
from edl.ps.messages import Arrange
from edl.spec import Checkpoints
from edl.tasks.ranges import LEAST_ROWS
from edl.tasks.task import Report, Task
from tests.edl.master.stage import Stage
from tests.edl.master.test_faults import TRAIN, Job, cut_after
from tests.edl.master.test_ps_manager import ASYNC, SYNC, orders_of


def test_a_trainer_that_finds_its_checkpoint_damaged_is_followed_by_one_that_resumes_from_the_one_before() -> (
    None
):
    job = Job(TRAIN, recovery=TrainerRecovery)
    box = job.worker()
    cut_after(job, box, 1, "cut-1")
    assert job.master.state.checkpoint is not None
    job.stored.kept.append(job.master.state.checkpoint)
    cut_after(job, box, 1, "cut-2")
    job.master.on_loss("worker-0", 0, job.now)
    assert job.master.state.checkpoint_name == "cut-2"
    again = job.worker("worker-0", 1)
    why = "the checkpoint cut-2 is damaged: weights.safetensors has 10 of 20 bytes"
    damage = Failed("spec", why)
    for _ in range(2):  # a repeated report changes nothing
        again.report("failed", Report(Task(0, "export")), error=damage, fatal=True, folder="cut-2")
    job.call(again, {})
    assert job.notes[-3:] == [why, "steps 17 to 32 are repeated", "training resumes from step 16"]
    assert job.stored.damaged == {"cut-2": why}
    assert (job.master.state.checkpoint_name, job.master.state.failed) == ("cut-1", None)
    joined = job.master.join("worker-0", 2, job.now)
    assert joined is not None
    assert (joined.resume, job.master.job.state.rows) == ("cut-1", LEAST_ROWS)


@pytest.mark.parametrize("mode", [SYNC, ASYNC], ids=["sync", "async"])
def test_when_a_server_finds_its_checkpoint_damaged_all_go_back_to_the_one_before(mode: Mode) -> None:
    stage = Stage(mode, when=Checkpoints(secs=10.0))
    stage.open()
    first = stage.complete()
    assert stage.leases.state.checkpoint is not None
    stage.stored.kept.append(stage.leases.state.checkpoint)
    stage.step += 1
    stage.talk(11.0)
    second = stage.complete()
    stage.said(Arrange)
    stage.lose(0)
    stage.register(0, 1)
    before = stage.leases.state.generation
    why = f"the checkpoint {second} is damaged: server-0.safetensors is missing"
    stage.refuse(DamagedError(why))
    stage.said(Arrange)
    stage.talk(1.0)
    assert stage.leases.state.failed is None
    assert stage.stored.damaged == {second: why}
    assert (stage.leases.state.checkpoint_name, stage.leases.state.generation) == (first, before + 1)
    assert {order.restore for order in orders_of(stage)} == {first}
    assert why in stage.notes
