"""Steps of a wide network and of a DeepFM by device and precision, and whether a device repeats itself.

    python -m benchmarks gpu [--quick]

It needs no other machine than the one it runs on. A framework that is not installed is left out, and said. Without a
CUDA device it measures the CPU alone, and says so. With one it also trains twice from one seed on the device: the
weights are to be equal in all bits, and their way from the initial ones near that of the CPU. Only float32 is measured
on the CPU; one without instructions for bfloat16 is a hundred times slower in it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks import embeddings
from benchmarks.jobs import COLUMNS, dense_session, job_of
from benchmarks.steps import created
from benchmarks.table import Row
from edl.arrays import Array
from edl.frameworks import Minibatches
from edl.input.blocks import Blocks
from edl.jobs.cores import available_cores
from edl.jobs.job_folder import JobFolder
from edl.program import read_spec
from edl.run import job_runner
from edl.spec.job import Precision

SIZE, STEPS = 4096, 16  # rows of a step, and steps of a round
NETWORKS = {
    "wide": "SELECT * FROM dense TO TRAIN DNNRegressor WITH hidden_units = [1024, 1024, 1024] "
    f"COLUMN {', '.join(f'x{i}' for i in range(COLUMNS))} VALIDATE 0 LABEL y INTO m",
    "deepfm": embeddings.STATEMENTS["clicks"],
}
FRAMEWORKS = {"torch": "torch", "keras": "tensorflow"}  # and the packages that they need
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16")
CLOSE = 5e-2  # difference of a round's way to that of the CPU; with other threads the CPU itself has 6e-3


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table = []
    with dense_session(folder, SIZE * STEPS) as session:
        embeddings.make_clicks(session, SIZE * STEPS)
        for framework, package in FRAMEWORKS.items():
            if find_spec(package) is None:
                table.append(Row(f"gpu: {framework}", f"left out: {package} is not installed"))
                continue
            for name, statement in NETWORKS.items():
                job = job_of(
                    session, folder / f"{name}-{framework}", embeddings.in_framework(statement, framework)
                )
                steps = STEPS if rows >= 1_000_000 else 2
                command = [sys.executable, "-m", "benchmarks.gpu", str(job), str(rounds), str(steps)]
                found = json.loads(
                    subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                )
                table += _rows(f"gpu: {name}, {framework}", found)
    return table


def _rows(name: str, found: dict[str, Any]) -> list[Row]:
    cpu = found["seconds"]["cpu, float32"]
    table = [
        Row(
            f"{name}, {way}",
            f"{1000 * statistics.median(seconds):.2f} ms",
            [one / other for one, other in zip(cpu, seconds, strict=True)],
        )
        for way, seconds in found["seconds"].items()
    ]
    if "repeats" not in found:
        return [*table, Row(f"{name}, cuda", "no CUDA device")]
    repeats, difference = found["repeats"], found["difference"]
    table.append(Row(f"{name}, equal trainings on cuda", f"{repeats} of 2", value=repeats, least=2))
    return [
        *table,
        Row(f"{name}, difference to cpu", f"{difference:.1e}", value=difference, most=CLOSE),
    ]


def _steps(job: JobFolder, rounds: int, steps: int) -> None:
    """Print the seconds of a step by device and precision, of each round; the ways take turns."""
    spec = read_spec(job.program)
    with job_runner.load_program(job.program, spec, threads=available_cores()) as program:
        _, reader = job_runner.rows_of(program, job)
        given = Blocks(program, reader).read(0, SIZE * steps, "train").arrays
        rows = Minibatches(given.features, given.labels, SIZE)

        def made(device: str, precision: str) -> Any:
            changed = msgspec.structs.replace(spec, device=device, precision=precision)
            return created(replace(program, spec=changed), rows)

        on_gpu = _sees_gpu(spec.framework)
        # Keras decides for a GPU before it computes first.
        ways = [
            (device, precision)
            for device in (("cuda", "cpu") if on_gpu else ("cpu",))
            for precision in (PRECISIONS if device == "cuda" else PRECISIONS[:1])
            if precision != "float16" or spec.framework == "torch"
        ]
        adapters = {f"{device}, {precision}": made(device, precision) for device, precision in ways}
        seconds: dict[str, list[float]] = {name: [] for name in adapters}
        for number in range(rounds + 1):
            for name, adapter in adapters.items():
                began = time.perf_counter()
                adapter.train(rows)  # which waits for the losses
                if number:  # the first round traces functions and chooses kernels
                    seconds[name].append((time.perf_counter() - began) / steps)
        found: dict[str, Any] = {"seconds": seconds}
        if on_gpu:
            initial = _flat(made("cpu", "float32"))
            one, again, other = (
                _trained(made(device, "float32"), rows) for device in ("cuda", "cuda", "cpu")
            )
            found["repeats"] = 1 + np.array_equal(one, again)
            found["difference"] = float(np.linalg.norm(one - other) / np.linalg.norm(other - initial))
    print(json.dumps(found))


def _trained(adapter: Any, rows: Minibatches) -> Array:
    adapter.train(rows)
    return _flat(adapter)


def _flat(adapter: Any) -> Array:
    """Return a copy of the weights, float32, one after another."""
    return np.concatenate([np.ravel(each) for each in adapter.get_trainable().values()])


def _sees_gpu(framework: str) -> bool:
    if framework == "torch":
        import torch

        return bool(torch.cuda.is_available())
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


if __name__ == "__main__":
    _steps(JobFolder(Path(sys.argv[1])), *map(int, sys.argv[2:]))
