"""What instances of tests write down, which `make soak` and the benchmarks measure by."""

from __future__ import annotations

import itertools

import pytest

from edl.tasks.ranges import LEAST_ROWS, STREAMED_ROWS
from tests.edl.end_to_end import timed

ROWS = 4 * STREAMED_ROWS


def test_a_job_tells_its_batches_its_reports_and_who_died() -> None:
    trees = {"framework": "lightgbm"}  # its processes start fastest
    with timed.apart():
        archive = timed.trained(timed.NARROW, **trees)
        run = timed.predicted(archive, ROWS, "worker-0/0 in a task 3", workers=1, **trees)
    assert run.workers == ["worker-0.0", "worker-0.1"]
    assert len(run.of("worker-0.0", "batch")) == 2
    [killed] = run.of("worker-0.0", "killed")
    later = run.moments["worker-0.1"]
    assert all(before.second <= after.second for before, after in itertools.pairwise(later))
    assert later[0].second > killed
    assert len(run.of("worker-0.1", "batch")) == ROWS // LEAST_ROWS
    assert [moment.rows for moment in later if moment.what == "report"] == 4 * [STREAMED_ROWS]
    assert {moment.epoch for moment in later if moment.what == "acknowledged"} == {1}


@pytest.mark.soak
def test_the_moments_of_a_job_tell_which_master_acknowledged() -> None:
    with timed.apart():
        archive = timed.trained(timed.NARROW)
        run = timed.predicted(archive, ROWS, "master/1 before durable 4", units=timed.NARROW)
    [killed] = run.of("master.1", "killed")
    told = [moment for start in run.workers for moment in run.moments[start] if moment.what == "acknowledged"]
    second = [moment for moment in told if moment.epoch == 2]
    assert second
    assert all(moment.second > killed for moment in second)
