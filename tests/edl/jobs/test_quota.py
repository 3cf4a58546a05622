"""Two jobs on a quota that is too small for both."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from edl.cluster.folder import Spec
from edl.cluster.quota import Quota, use_of
from edl.spec import Cluster
from edl.tasks.events import Tally
from edl.tasks.outcome import Outcome
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.jobs.distributed import Job, table

SECONDS = 60.0  # until a wait of these tests has failed
ROWS = 5 * LEAST_ROWS
HURRY = "HURRY"  # the environment variable that names a file: until it is there, a step takes a while
SLOWLY = {
    "import torch\n": "import os\nimport time\n\nimport torch\n",
    "def loss(labels, predictions):\n": "def loss(labels, predictions):\n"
    f'    time.sleep(0 if os.path.exists(os.environ["{HURRY}"]) else 0.02)\n',
}


def job(quota: Quota, hurry: Path, workers: int, priority: int) -> Job:
    """Of so many workers and a parameter server."""
    cluster = Cluster(workers, 1, "async", priority=priority)
    how = Spec("torch", quota=use_of(cluster, quota.folder), environment={HURRY: str(hurry)})
    return Job(table(ROWS), epochs=1, batch_size=64, replace=SLOWLY, how=how, spec={"cluster": cluster})


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.02)


def test_a22_a_job_gives_slots_to_a_more_urgent_one_and_takes_them_up_again(tmp_path: Path) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(4)
    low, high = job(quota, tmp_path / "now", 3, priority=0), job(quota, tmp_path, 1, priority=1)
    ends: list[Outcome] = []
    running = threading.Thread(target=lambda: ends.append(low.run()))
    running.start()

    def tallies() -> list[Tally]:
        return [event for event in low.events if isinstance(event, Tally)]

    wait_until(lambda: any(tally.instances == 4 for tally in tallies()))
    before = len(tallies())
    ends.append(high.run())
    wait_until(lambda: tallies()[-1].instances == 4)
    (tmp_path / "now").touch()
    running.join()
    assert [end.rows for end in ends] == [ROWS, ROWS]
    assert (2, 2) in [(tally.instances, tally.waiting) for tally in tallies()[before:]]
    assert tallies()[-1].relaunches == 2
    assert not [event for event in high.events if isinstance(event, Tally) and event.relaunches]
    assert quota.look() == (4, [])
