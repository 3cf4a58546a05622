"""Two real jobs on one quota with steps of a known duration, so that many training processes fit on few cores.

A step sleeps a hundredth of a second for each of its rows. Each step records its beginning and end, which
separates the slots that a job holds from those that are busy.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.simulation import Course, spread
from edl.cluster.quota.quota import Quota
from edl.jobs.cluster_folder import QuotaUse, RunSpec
from edl.jobs.slots import SlotRequest
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Job, table

ROW_SECONDS = 0.01
BATCH = 64
STEPS = "CALIBRATED_STEPS"  # environment variable with the folder of the records
LOOK_SECONDS = 0.1

CALIBRATED = {  # replacements that give a program of the tests such steps
    "import torch\n": "import os\nimport time\n\nimport torch\n",
    "def loss(labels, predictions):\n": f"""\
def loss(labels, predictions):
    if predictions.requires_grad:  # a step, and no evaluation
        began = time.monotonic()
        time.sleep({ROW_SECONDS} * len(labels))
        with open(os.path.join(os.environ["{STEPS}"], str(os.getpid())), "a") as notes:
            notes.write(f"{{began}} {{time.monotonic()}}\\n")
""",
}


@dataclass
class Observed(Course):
    """Course of both jobs together. busy: slot-seconds of steps in each second since the first job came."""

    busy: list[float] = field(default_factory=list)


def run(folder: Path, slots: int, workers: int, rows: int, second: float, *, gang: bool) -> Observed:
    """Run two jobs of `rows` rows, `second` seconds apart.

    Each asks for its workers and a parameter server. gang: each waits for all its slots. Observation starts
    when the first job comes.
    """
    folder.mkdir()
    quota = Quota(folder / "quota")
    quota.resize(slots)
    steps = folder / "steps"
    steps.mkdir()
    jobs = {name: _job(quota, steps, workers, rows, gang=gang) for name in ("first", "second")}
    names = {job.folder.id: name for name, job in jobs.items()}
    found, began = Observed([(0.0, {})]), time.monotonic()
    with _looking(quota, names, began, found):
        threads = []
        for name, delay in (("first", 0.0), ("second", second)):
            time.sleep(delay)
            threads.append(threading.Thread(target=_finish, args=(jobs[name], rows, name, began, found)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    found.busy = busy(steps, began, found.makespan)
    for job in jobs.values():
        job.folder.remove()
    return found


def _job(quota: Quota, steps: Path, workers: int, rows: int, *, gang: bool) -> Job:
    request = SlotRequest(workers + 1 if gang else 2, workers + 1)
    how = RunSpec("torch", quota=QuotaUse(str(quota.folder), request), environment={STEPS: str(steps)})
    spec: dict[str, Any] = {
        "cluster": Cluster(workers, 1, "async"),
        "checkpoints": Checkpoints(steps=0, secs=0),
    }
    return Job(
        table(rows),
        how=how,
        spec=spec,
        batch_size=BATCH,
        minibatches_per_task=1,
        units=4,
        replace=CALIBRATED,
    )


def _finish(job: Job, rows: int, name: str, began: float, found: Observed) -> None:
    outcome = job.run()
    found.ends[name] = time.monotonic() - began
    assert outcome.rows == rows


@contextmanager
def _looking(quota: Quota, names: dict[str, str], began: float, found: Observed) -> Iterator[None]:
    """Record the slots of each job whenever they change."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            holds = {names[demand.job]: demand.holds for demand in quota.look()[1]}
            if found.changes[-1][1] != holds:
                found.changes.append((time.monotonic() - began, holds))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def busy(steps: Path, began: float, seconds: float) -> list[float]:
    """Compute the slot-seconds of steps in each second from the records in the folder."""
    found = [0.0] * math.ceil(seconds)
    for notes in steps.iterdir():
        for line in notes.read_text().splitlines():
            begin, end = map(float, line.split())
            spread(found, begin - began, end - began, 1.0)
    return found
