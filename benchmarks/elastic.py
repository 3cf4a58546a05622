"""Jobs in several processes: cost of a death, and cost of a master and remote workers without one.

Deaths are timed on the jobs of `make soak`. Rates leave out imports and the start of processes: those of
training are of the epochs after the first, those of PREDICT are from the first batch to the last, with one
thread for each worker as in the process that they are compared with.
"""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.jobs import dense_session, training_job
from benchmarks.table import Row
from benchmarks.training import BATCH_SIZE, EPOCHS, rate
from edl.cluster.local.client import SupervisedJob
from edl.jobs import job_folder
from edl.jobs.cluster_folder import RunSpec
from edl.jobs.cores import available_cores
from edl.program import read_spec
from edl.spec import Cluster, Training, to_json
from tests.edl.end_to_end import timed
from tests.edl.end_to_end.distributed import Job, table

MASTER_SECONDS = 3.0  # target, from SIGKILL of the master to the next acknowledged task
REMOTE_RATIO = 0.95  # target, of one remote worker to one process
LEAST_ROWS = 4_000_000  # of a prediction with a death: it must last until the replacement is there


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure on jobs of `rows` rows; four times as many where the job must outlast a death."""
    with timed.apart():
        archive = timed.trained(timed.WIDE)
        return [
            *_deaths(archive, rounds, max(4 * rows, LEAST_ROWS)),
            *_training(folder, rounds, rows),
            *_predicting(archive, rounds, 4 * rows),
        ]


def _deaths(archive: Path, rounds: int, rows: int) -> list[Row]:
    return [
        _seconds(
            "SIGKILL of the master to the next acknowledged task",
            lambda: timed.after_master(archive, rows),
            rounds,
            MASTER_SECONDS,
        ),
        _seconds(
            "SIGKILL of a PREDICT worker to the first batch of the next",
            lambda: timed.after_worker(archive, rows),
            rounds,
        ),
        _seconds(
            "SIGKILL of a trainer to the first steps of the next",
            lambda: timed.after_trainer(rows // 20),
            rounds,
        ),
    ]


def _seconds(name: str, once: Callable[[], float], rounds: int, most: float | None = None) -> Row:
    """Report the median and the longest of some rounds; the target is for the longest."""
    found = [once() for _ in range(rounds)]
    longest = max(found)
    figure = f"{statistics.median(found):.2f} s, at most {longest:.2f} s"
    return Row(name, figure, value=longest, most=most)


def _training(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Compare one remote worker with one process, taking turns."""
    found = []
    for framework in ("keras", "torch"):
        with dense_session(folder, rows) as session:
            job = training_job(session, folder / "elastic", framework)
        pairs = [(_remote_rate(job, framework), rate("benchmarks.ours", job)) for _ in range(rounds)]
        figure = f"{statistics.median(ours for ours, _ in pairs):,.0f} rows/s"
        ratios = [ours / alone for ours, alone in pairs]
        found.append(
            Row(
                f"train, {framework}, one remote worker against one process",
                figure,
                ratios,
                least=REMOTE_RATIO,
            )
        )
    return found


def _remote_rate(made: Path, framework: str) -> float:
    """Measure rows per second of the epochs after the first, with a master and one worker."""
    job = job_folder.create("train")
    for name in ("program", "rows"):
        shutil.copytree(made / name, job.path / name, dirs_exist_ok=True, copy_function=os.link)
    written = read_spec(job.program)
    spec = msgspec.structs.replace(written, training=Training(EPOCHS, BATCH_SIZE), cluster=Cluster(workers=1))
    (job.program / "job.json").unlink()  # a hard link: the file belongs to another job as well
    (job.program / "job.json").write_bytes(to_json(spec))
    with SupervisedJob.start(job, RunSpec(framework, threads=available_cores())) as running:  # type: ignore[arg-type]
        ends = [event.seconds for event in running.follow(lambda event: None).curve]
    job.remove()
    seconds = [after - before for before, after in itertools.pairwise(ends)]
    return written.rows.training * len(seconds) / sum(seconds)


def _predicting(archive: Path, rounds: int, rows: int) -> list[Row]:
    """Run PREDICT into the job folder with one worker and with two, each against one process."""
    rates: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for _ in range(rounds):
        rates[0].append(_alone(archive, rows))
        for workers in (1, 2):
            rates[workers].append(timed.rows_per_second(timed.predicted(archive, rows, workers=workers)))
    found = [Row("PREDICT in one process, one thread", f"{statistics.median(rates[0]):,.0f} rows/s")]
    for workers, name in ((1, "one worker"), (2, "two workers")):
        ratios = [ours / alone for ours, alone in zip(rates[workers], rates[0], strict=True)]
        found.append(Row(f"… with {name}", f"{statistics.median(rates[workers]):,.0f} rows/s", ratios))
    return found


def _alone(archive: Path, rows: int) -> float:
    job = Job(table(rows, seed=1), kind="predict", weights=archive, units=timed.WIDE, spec=timed.PREDICT)
    return rows / job.run_here().seconds
