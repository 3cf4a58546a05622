"""All-reduce: steps against DistributedDataParallel, and what a lost member costs against torchrun's elastic restart.

Steps are those of the dense network of `training`, minibatches of 512, on rows in memory; a thread for each process,
and the same gloo on both sides. A loss is timed on three members, from the signal to the first steps of those who are
left: ours, a whole job with its master; theirs, torchrun, which starts all ranks anew.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.jobs import dense_session, training_job
from benchmarks.table import Row
from benchmarks.training import BATCH_SIZE, EPOCHS
from tests.edl.jobs import timed

MEMBERS = 3  # of the rings that lose one
SECONDS = {signal.SIGKILL: 1.0, signal.SIGSTOP: 5.0}  # aimed at
WARM_STEPS = 200


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """rows: a tenth of them are trained on."""
    return [*_steps(folder, rounds, max(rows // 10, 50 * BATCH_SIZE)), *_losses(folder, rounds)]


def _steps(folder: Path, rounds: int, rows: int) -> list[Row]:
    with dense_session(folder, rows) as session:
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
    return _rate([*_torchrun(ranks), "-m", "benchmarks.baselines.torch_ddp"], job)


def _torchrun(ranks: int, *options: str) -> list[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    return [*run, "--nproc-per-node", str(ranks), *options]


def _rate(command: list[str], job: Path, *more: str) -> float:
    """Steps per second of the epochs after the first."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    whole = [*command, str(job), str(EPOCHS), str(BATCH_SIZE), *more]
    done = subprocess.run(whole, capture_output=True, check=True, env=environment)
    measured = json.loads(done.stdout.splitlines()[-1])
    return float(-(-measured["rows"] // BATCH_SIZE) * (EPOCHS - 1) / sum(measured["seconds"][1:]))


# Losses -----------------------------------------------------------------------------------------------------


def _losses(folder: Path, rounds: int) -> list[Row]:
    """torchrun is timed where a rank is killed; a frozen one it gives half a minute to end before anything follows."""
    ours: dict[signal.Signals, list[float]] = {number: [] for number in SECONDS}
    theirs = []
    for turn in range(rounds):
        for number, found in ours.items():
            with timed.apart():
                found.append(timed.after_member(MEMBERS, number))
        theirs.append(_after_killed_rank(folder / f"elastic-{turn}"))
    table = [
        Row(f"{number.name} of a member to the first steps of the others", _figure(found),
            value=max(found), most=SECONDS[number])
        for number, found in ours.items()
    ]  # fmt: skip
    ratios = [their / our for our, their in zip(ours[signal.SIGKILL], theirs, strict=True)]
    return [*table, Row("SIGKILL of a rank of torchrun, seconds to ours", _figure(theirs), ratios, least=1.0)]


def _figure(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s"


def _after_killed_rank(folder: Path) -> float:
    """Seconds from SIGKILL of a rank until one of the next start takes a step."""
    folder.mkdir(parents=True)
    command = [*_torchrun(MEMBERS, "--max-restarts", "3"), "-m", "benchmarks.baselines.torch_elastic"]
    running: subprocess.Popen[Any] = subprocess.Popen(
        [*command, str(folder), "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        first = _stepping(running, folder, MEMBERS, WARM_STEPS)
        lost = time.monotonic()
        os.kill(first[-1], signal.SIGKILL)
        _stepping(running, folder, MEMBERS + 1, 1)
        starts = sorted(folder.glob("*.steps"), key=lambda path: path.stat().st_mtime_ns)
        later = [path for path in starts if int(path.stem) not in first]
        return min(float(path.read_text().split()[0]) for path in later) - lost
    finally:
        running.terminate()
        running.wait()


def _stepping(running: subprocess.Popen[Any], folder: Path, wanted: int, steps: int) -> list[int]:
    """Wait until so many processes, of all starts, have taken these steps; their ids."""
    while running.poll() is None:
        counts = {int(path.stem): path.read_text().count("\n") for path in folder.glob("*.steps")}
        ready = [process for process, count in counts.items() if count >= steps]
        if len(ready) >= wanted:
            return ready
        time.sleep(0.05)
    raise RuntimeError("torchrun has given up")
