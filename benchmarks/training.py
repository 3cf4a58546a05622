"""Local training of a dense network against the frameworks' own loops: 20-100-150-50-1, Adam.

Minibatches have 512 rows. The rate is that of the epochs after the first, whose tracing is not counted on
either side.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.jobs import dense_session, training_job
from benchmarks.table import Row

BATCH_SIZE = 512
EPOCHS = 3
PEERS = {  # framework -> (peer, module, target)
    "keras": (("Keras fit", "keras_fit", 1.0), ("bare compiled step", "keras_step", 0.95)),
    "torch": (("DataLoader loop", "torch_loader", 1.0), ("bare tensor loop", "torch_tensors", 0.95)),
}


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    with dense_session(folder, rows) as session:
        jobs = {framework: training_job(session, folder, framework) for framework in PEERS}
    for framework, peers in PEERS.items():
        ours: list[float] = []
        theirs: dict[str, list[float]] = {module: [] for _, module, _ in peers}
        for _ in range(rounds):
            ours.append(rate("benchmarks.ours", jobs[framework]))
            for module, rates in theirs.items():
                rates.append(rate(f"benchmarks.baselines.{module}", jobs[framework]))
        table.append(Row(f"train, {framework}", f"{statistics.median(ours):,.0f} rows/s"))
        for name, module, aim in peers:
            ratios = [our / their for our, their in zip(ours, theirs[module], strict=True)]
            figure = f"{statistics.median(theirs[module]):,.0f} rows/s"
            table.append(Row(f"… against {name}", figure, ratios, least=aim))
    return table


def rate(module: str, job: Path, epochs: int = EPOCHS) -> float:
    """Measure rows per second of the epochs after the first, in a process of its own."""
    command = [sys.executable, "-m", module, str(job), str(epochs), str(BATCH_SIZE)]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    measured = json.loads(done.stdout.splitlines()[-1])
    return float(measured["rows"] * (epochs - 1) / sum(measured["seconds"][1:]))
