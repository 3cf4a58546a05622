"""Steps of one worker whose parameters are on servers, against the same steps in one process.

The DeepFM of the embeddings' benchmark (`clicks`): a number, ten categories of 50,000 ids, hidden layers of 128
and 64, Adam, minibatches of 512. Rows are ready in memory, so the comparison covers the model's steps, the
calls, and the servers' own work: they are processes of this machine, which share the worker's cores.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import sqlflow_edl
from benchmarks import embeddings
from benchmarks.jobs import job_of
from benchmarks.servers import SECONDS, TOKEN, connected, started
from benchmarks.table import Row
from edl import frameworks
from edl.checkpoints.folder import SharedFolder
from edl.frameworks import Minibatches
from edl.frameworks.adapter import GradientAdapter
from edl.input.blocks import Blocks
from edl.jobs.job_folder import JobFolder
from edl.program import Program, read_spec
from edl.ps import messages as msg
from edl.ps.checkpoint.content import Mode
from edl.run import job_runner
from edl.spec import Cluster
from edl.tasks.protocol import Servers
from edl.tasks.task import Report, Task, TaskType
from edl.worker.strategies.factory import on_servers

SIZE = 512
MODES = {
    "async": Cluster(1, 1, "async"),
    "async, local_steps = 4": Cluster(1, 1, "async", local_steps=4),
    "sync": Cluster(1, 1, "sync", grads_to_wait=1),
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    steps = max(rows // 10_000, 20)
    with sqlflow_edl.connect("duckdb:") as session:
        embeddings.make_clicks(session, SIZE * (steps + 1))
        for framework in ("keras", "torch"):
            statement = embeddings.in_framework(embeddings.STATEMENTS["clicks"], framework)
            job = job_of(session, folder / f"steps-{framework}", statement)
            command = [sys.executable, "-m", "benchmarks.steps", str(job), str(rounds), str(steps)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            local = found.pop("local")
            table.append(Row(f"steps: {framework}, in one process", f"{_ms(local)} ms"))
            for name, seconds in found.items():
                ratios = [one / other for one, other in zip(local, seconds, strict=True)]
                table.append(Row(f"… {name}", f"{_ms(seconds)} ms", ratios))
    return table


def _ms(seconds: list[float]) -> str:
    return f"{1000 * statistics.median(seconds):.2f}"


class _Place:
    """Task source with servers that never change."""

    def __init__(self, addresses: list[str]) -> None:
        self.servers = Servers(1, 0, tuple(addresses), ready=True)

    def wait_for_servers(self, after: int, seconds: float) -> Servers | None:
        return self.servers if self.servers.number > after else None

    def is_over(self, kind: TaskType) -> bool:
        return False


def _worker(job: JobFolder, rounds: int, steps: int) -> None:
    """Print the seconds of a step by mode, of each round; the modes take turns."""
    spec = read_spec(job.program)
    with job_runner.load_program(job.program, spec, threads=1) as program, contextlib.ExitStack() as stack:
        _, reader = job_runner.rows_of(program, job)
        given = Blocks(program, reader).read(0, SIZE * steps, "train").arrays
        rows = Minibatches(given.features, given.labels, SIZE)
        local = created(program, rows)
        ways: dict[str, Callable[[], object]] = {"local": lambda: local.train(rows)}
        for count in (1, 2):
            for name, cluster in MODES.items():
                addresses = stack.enter_context(started(count))
                ways[f"{name}, servers: {count}"] = served(program, rows, addresses, cluster, job.path)
        found: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                way()
                if number:  # the first round traces functions
                    found[name].append((time.perf_counter() - began) / steps)
    print(json.dumps(found))


def created(program: Program, rows: Minibatches) -> GradientAdapter:
    few = rows._replace(size=2).minibatch(0)
    return cast(GradientAdapter, frameworks.create(program, few.features, few.labels, seed=0))


def served(
    program: Program, rows: Minibatches, addresses: list[str], cluster: Cluster, folder: Path
) -> Callable[[], None]:
    """Make a call that runs all steps as one task, a new one each time."""
    mode = Mode("sync" if cluster.strategy == "sync" else "async", cluster.grads_to_wait or 1)
    with connected(addresses) as channels:
        for index, channel in enumerate(channels):
            channel.call(msg.Arrange(index, 0, 0, tuple(addresses), mode, ""), (), msg.Arranged, SECONDS)
    strategy = on_servers(
        cluster, created(program, rows), _Place(addresses), TOKEN, ("worker-0", 0),
        start=lambda: None, store=SharedFolder(folder), leaving=threading.Event(),
    )  # fmt: skip

    numbers = itertools.count(1)

    def train() -> None:
        lease = next(numbers)
        strategy.train(rows, Report(Task(lease, "train", 0, len(rows.labels), 1, attempt=lease)), None)
        strategy.flush()

    return train


if __name__ == "__main__":
    _worker(JobFolder(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3]))
