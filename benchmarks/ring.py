"""Our side of the all-reduce benchmark: members of one group in processes, with the generated program's model.

    python -m benchmarks.ring JOB EPOCHS BATCH_SIZE MEMBERS

Prints the same line of JSON as the baselines; rows are ready in memory on both sides. MEMBERS 0: the local
strategy.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from edl import frameworks
from edl.collectives.base import Store
from edl.frameworks import Minibatches
from edl.frameworks.adapter import GradientAdapter
from edl.input.blocks import Blocks
from edl.jobs.job_folder import JobFolder
from edl.program import Program, read_spec
from edl.run import job_runner
from edl.tasks.protocol import WorkerGroup
from edl.tasks.task import Report, Task
from edl.worker.strategies.base import Local, Strategy

NAMES = "worker-{}"


class OneGroup:
    """Rendezvous of members that stay together."""

    regroup = False

    def __init__(self, group: WorkerGroup) -> None:
        self._group = group

    def next_group(self, done: Report | None = None) -> WorkerGroup:
        return self._group

    def position(self) -> bytes:
        return b""

    def follow(self, position: bytes, group: WorkerGroup, store: Store, rank: int) -> None:
        """Ignore the position: all members have the same one."""

    def leave_out(self, members: Sequence[str]) -> None:
        """Ignore the call: members stay in the group."""


def main() -> None:
    job, epochs, batch_size, members = JobFolder(Path(sys.argv[1])), *map(int, sys.argv[2:])
    spec = read_spec(job.program)
    with job_runner.load_program(job.program, spec, threads=1) as program:
        _, reader = job_runner.rows_of(program, job)
        given = Blocks(program, reader).read(0, spec.rows.training, "train").arrays
        rows = Minibatches(given.features, given.labels, batch_size)
        seconds = _train(program, rows, epochs, members)
    print(json.dumps({"rows": len(rows.labels), "seconds": seconds}))


def _train(program: Program, rows: Minibatches, epochs: int, members: int) -> list[float]:
    """Return the seconds of each epoch at the first member. The others end when it does."""
    pipes = [os.pipe() for _ in range(members)]
    for rank in range(1, members):
        if not os.fork():
            _epochs(_member(program, rows, pipes, rank), rows, epochs)
            os._exit(0)
    return _epochs(_member(program, rows, pipes, 0) if members else _local(program, rows), rows, epochs)


def _epochs(strategy: Strategy, rows: Minibatches, epochs: int) -> list[float]:
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        strategy.train(rows, Report(Task(1, "train", 0, len(rows.labels), 1)), None)
        seconds.append(time.perf_counter() - began)
    return seconds


def _local(program: Program, rows: Minibatches) -> Local:
    few = rows.rows(slice(0, 2))
    return Local(frameworks.create(program, few.features, few.labels, seed=0))


def _member(program: Program, rows: Minibatches, pipes: list[tuple[int, int]], rank: int) -> Strategy:
    from edl.collectives.gloo import GlooHost
    from edl.worker.strategies.allreduce.strategy import AllReduce

    few = rows.rows(slice(0, 2))
    adapter = cast(GradientAdapter, frameworks.create(program, few.features, few.labels, seed=0))
    host = GlooHost()
    if rank == 0:
        for _, to in pipes[1:]:
            os.write(to, host.address.encode())
    address = host.address if rank == 0 else os.read(pipes[rank][0], 100).decode()
    group = WorkerGroup(1, tuple(map(NAMES.format, range(len(pipes)))), 0, address)
    strategy = AllReduce(adapter, OneGroup(group), host, NAMES.format(rank))
    strategy.join()
    return strategy


if __name__ == "__main__":
    main()
