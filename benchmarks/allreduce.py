"""All-reduce: steps against PyTorch's DistributedDataParallel.

Both train the dense network of `training`, minibatches of 512, on rows in memory, with a thread for each
process. Theirs sums gradients through gloo, ours in memory that the members share, as members on one machine
do.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.jobs import dense_session, training_job
from benchmarks.table import Row
from benchmarks.training import BATCH_SIZE, EPOCHS


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Train on a tenth of `rows`."""
    with dense_session(folder, max(rows // 10, 50 * BATCH_SIZE)) as session:
        jobs = {framework: training_job(session, folder, framework) for framework in ("torch", "keras")}
    ways: dict[str, Callable[[], float]] = {
        "torch, local": lambda: _ours(jobs["torch"], 0),
        "torch, 1 member": lambda: _ours(jobs["torch"], 1),
        "torch, 2 members": lambda: _ours(jobs["torch"], 2),
        "DDP, 1 rank": lambda: _theirs(jobs["torch"], 1),
        "DDP, 2 ranks": lambda: _theirs(jobs["torch"], 2),
        "keras, local": lambda: _ours(jobs["keras"], 0),
        "keras, 2 members": lambda: _ours(jobs["keras"], 2),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    against = [
        ("torch, 1 member", "torch, local", 0.95),
        ("torch, 1 member", "DDP, 1 rank", 1.0),
        ("torch, 2 members", "DDP, 2 ranks", 1.0),
        ("torch, 2 members", "torch, local", None),
        ("keras, 2 members", "keras, local", None),
    ]
    table = [Row(name, f"{statistics.median(rates):,.0f} steps/s") for name, rates in found.items()]
    for ours, theirs, aim in against:
        ratios = [our / their for our, their in zip(found[ours], found[theirs], strict=True)]
        table.append(Row(f"{ours}, against {theirs}", "", ratios, least=aim))
    return table


def _ours(job: Path, members: int) -> float:
    return _rate([sys.executable, "-m", "benchmarks.ring"], job, str(members))


def _theirs(job: Path, ranks: int) -> float:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return _rate([*run, "-m", "benchmarks.baselines.torch_ddp"], job)


def _rate(command: list[str], job: Path, *more: str) -> float:
    """Measure steps per second of the epochs after the first."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    whole = [*command, str(job), str(EPOCHS), str(BATCH_SIZE), *more]
    done = subprocess.run(whole, capture_output=True, check=True, env=environment)
    measured = json.loads(done.stdout.splitlines()[-1])
    return float(-(-measured["rows"] // BATCH_SIZE) * (EPOCHS - 1) / sum(measured["seconds"][1:]))
