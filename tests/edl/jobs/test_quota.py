"""Two jobs on a quota that is too small for both."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from edl.cluster.folder import Spec
from edl.cluster.quota import Quota, use_of
from edl.cluster.snapshot import WAITING, read_snapshot
from edl.spec import Cluster
from edl.tasks.events import Tally
from edl.tasks.ranges import LEAST_ROWS
from tests.edl.jobs.distributed import Job, table

SECONDS = 60.0  # until a wait of these tests has failed
ROWS = 5 * LEAST_ROWS
HURRY = "HURRY"  # the environment variable that names a file: until it is there, a step takes a while
SLOWLY = {
    "import torch\n": "import os\nimport time\n\nimport torch\n",
    "def loss(labels, predictions):\n": "def loss(labels, predictions):\n"
    f'    time.sleep(0 if os.path.exists(os.environ["{HURRY}"]) else 0.2)\n',
}


class SlowJob(Job):
    """Of a ring of so many workers; slow until `hurry` is called."""

    def __init__(self, quota: Quota, hurry: Path, workers: int, priority: int) -> None:
        self.hurry = hurry.touch
        cluster = Cluster(workers, strategy="allreduce", priority=priority)
        how = Spec("torch", quota=use_of(cluster, quota.folder), environment={HURRY: str(hurry)})
        data, spec = table(ROWS), {"cluster": cluster}
        super().__init__(data, epochs=1, batch_size=64, replace=SLOWLY, how=how, spec=spec)

        self._rows = 0

    def trains(self, running: int, waiting: int = 0) -> bool:
        """Whether a ring of so many has got on since this was true the last time, and so many others wait for slots."""
        now = read_snapshot(self.cluster.snapshot)
        if now is None or now.rows <= self._rows or len(now.members) != running:
            return False
        if Counter(row.state for row in now.instances) != Counter(running=running) + Counter(
            {WAITING: waiting}
        ):
            return False
        self._rows = now.rows
        return True

    @property
    def relaunches(self) -> int:
        return max(event.relaunches for event in self.events if isinstance(event, Tally))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline, "it has not come true"
        time.sleep(0.02)


def test_a22_a_job_gives_slots_to_a_more_urgent_one_and_takes_them_up_again(tmp_path: Path) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(3)
    low = SlowJob(quota, tmp_path / "low", workers=3, priority=0)
    high = SlowJob(quota, tmp_path / "high", workers=2, priority=1)
    with ThreadPoolExecutor() as pool:
        lower = pool.submit(low.run)
        wait_until(lambda: low.trains(3))
        higher = pool.submit(high.run)
        wait_until(lambda: high.trains(2))
        wait_until(lambda: low.trains(1, waiting=2))
        high.hurry()
        assert higher.result().rows == ROWS
        wait_until(lambda: low.trains(3))
        low.hurry()
        assert lower.result().rows == ROWS
    assert (low.relaunches, high.relaunches) == (2, 0)
    assert quota.look() == (3, [])
