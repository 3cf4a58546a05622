"""Two jobs on a quota that is too small for both."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.cluster.quota.quota import Quota, use_of
from edl.jobs.cluster_folder import RunSpec
from edl.jobs.events import Tally
from edl.spec import Cluster
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.end_to_end.distributed import table
from tests.edl.end_to_end.slow import SlowJob

ROWS = 2 * LEAST_ROWS


def job(quota: Quota, workers: int, priority: int) -> SlowJob:
    """A group."""
    cluster = Cluster(workers, strategy="allreduce", priority=priority)
    how = RunSpec("torch", quota=use_of(cluster, quota.folder))
    return SlowJob(table(ROWS), seconds=0.5, epochs=1, batch_size=64, how=how, spec={"cluster": cluster})


def relaunches(of: SlowJob) -> int:
    return max(event.relaunches for event in of.events if isinstance(event, Tally))


@pytest.mark.soak
def test_a22_a_job_gives_slots_to_a_more_urgent_one_and_takes_them_up_again(tmp_path: Path) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(3)
    low, high = job(quota, workers=3, priority=0), job(quota, workers=2, priority=1)
    with low.running():
        low.until(low.trains(3))
        with high.running():
            high.until(high.trains(2))
            low.until(low.trains(1, waiting=2))
            assert high.result().rows == ROWS
        low.until(low.trains(3))
        assert low.result().rows == ROWS
    assert (relaunches(low), relaunches(high)) == (2, 0)
    assert quota.look() == (3, [])
