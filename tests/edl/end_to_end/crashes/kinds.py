"""A small job of each kind, with many checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from edl.data.pinned import write_pinned
from edl.jobs import job_folder
from edl.jobs.cluster_folder import RunSpec
from edl.program import read_spec
from edl.spec import Checkpoints, Cluster, to_json
from tests.edl import programs
from tests.edl.end_to_end import counting
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.run.search.conftest import searching, waves

ROWS, EPOCHS = 1200, 2
COUNTED = 4096
OFTEN = Checkpoints(steps=6, secs=0, keep=2)
STEPS: dict[str, Any] = {"epochs": EPOCHS, "batch_size": 50, "minibatches_per_task": 4}


WAITS = "def loss(labels, predictions):\n"
# Checkpoints are written while the training goes on, which would be over before there are many.
SLOW = (WAITS, f"{WAITS}    __import__('time').sleep(0.02)\n")
SLOWLY = dict([SLOW])


def trains(cluster: Cluster, **options: Any) -> Callable[[], Job]:
    spec = {"checkpoints": OFTEN, "cluster": cluster}
    return lambda: Job(table(ROWS), spec=spec, **{**STEPS, **options})


def trees() -> Job:
    return Job(table(ROWS), framework="lightgbm", epochs=100, spec={"checkpoints": OFTEN})


def counts() -> Job:
    """Train the model that counts in its parameters how often each row was applied: any loss shows."""
    cluster = Cluster(1, 2, "async", durable_updates="machine")
    made = counting.program(cluster=cluster, checkpoints=OFTEN)
    return Job(counting.data(COUNTED), epochs=EPOCHS, **{**made, "append": made["append"].replace(*SLOW)})


class SearchJob(Job):
    """A search among trees, by two workers."""

    def __init__(self) -> None:
        data = waves()
        self._make(
            data, [{"epochs": 4 + number, "features": ("x", "z")[: 1 + number % 2]} for number in range(6)]
        )
        self.spec = RunSpec("lightgbm")
        self.events = []

    def _make(self, data: pa.Table, candidates: list[dict[str, Any]]) -> None:
        from edl.jobs.cluster_folder import ClusterFolder

        self.folder = job_folder.create("train")
        self.cluster = ClusterFolder(self.folder.path)
        searching(self.folder.program, candidates)
        made = msgspec.structs.replace(read_spec(self.folder.program), cluster=Cluster(workers=2))
        (self.folder.program / "job.json").write_bytes(to_json(made))
        write_pinned(self.folder.rows, programs.pin(self.folder.rows, data))


RESUMED = "resumed"  # kind of which all processes are killed once, and which is resumed
KINDS: dict[str, Callable[[], Job]] = {
    "local": trains(Cluster(1), replace=SLOWLY, epochs=6),
    "all-reduce": trains(Cluster(2, strategy="allreduce"), replace=SLOWLY, epochs=6),
    "sync": trains(Cluster(1, 2, "sync", grads_to_wait=1), replace=SLOWLY, epochs=6),
    "async": counts,
    "trees": trees,
    "search": SearchJob,
    RESUMED: trees,
}
