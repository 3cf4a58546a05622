"""Replacement of a killed parameter server: from SIGKILL to the worker's first steps on the new one.

A job of one worker and two servers in the mode async; each holds more than 100 MB of rows and slots, and the
killed one has a checkpoint of them. Warm: machine code that the job's first servers compiled is cached. Cold:
every process compiles for itself, as without a writable home.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
from pathlib import Path
from unittest import mock

import msgspec

import sqlflow_edl
from benchmarks.jobs import job_of, job_with
from benchmarks.table import Row
from edl.cluster.local.client import SupervisedJob
from edl.embeddings.numba_cache import FOLDER
from edl.spec import Checkpoints, Cluster, Rows, Training
from edl.testing import read_moments
from tests.edl.end_to_end import timed
from tests.edl.end_to_end.distributed import kill

ROWS, DIM, BATCH = 1_200_000, 16, 8192
KILLED = "ps-1/0 in a push 260"  # in the second epoch, some checkpoints after all rows exist
SECONDS = 3.0  # target, warm
STATEMENT = (
    "SELECT * FROM visits TO TRAIN DNNRegressor WITH hidden_units = [16], model.framework = torch "
    f"COLUMN EMBEDDING(CATEGORY_ID(id, {ROWS}), {DIM}) VALIDATE 0 LABEL y INTO m"
)


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    """Measure with servers of constant size; `rows` is ignored."""
    with timed.apart(), sqlflow_edl.connect("duckdb:") as session:
        for _ in session.run(
            f"CREATE TABLE visits AS SELECT i AS id, (i % 7)::DOUBLE AS y FROM range({ROWS}) AS n(i)"
        ):
            pass
        made = job_of(session, folder / "replacing", STATEMENT)
        with tempfile.TemporaryDirectory() as cache:
            _replaced(made, {"XDG_CACHE_HOME": cache})  # fills the cache
            warm = [_replaced(made, {"XDG_CACHE_HOME": cache}) for _ in range(rounds)]
        cold = [_replaced(made, {"XDG_CACHE_HOME": os.devnull}) for _ in range(rounds)]
    name = "SIGKILL of a server of 100 MB to the first steps on its replacement"
    return [
        Row(name, _figure(warm), value=max(warm), most=SECONDS),
        Row("… without kept machine code", _figure(cold)),
    ]


def _replaced(made: Path, environment: dict[str, str]) -> float:
    job = job_with(
        made,
        rows=Rows(True, ROWS, ROWS),
        training=Training(3, BATCH),
        cluster=Cluster(1, 2, "async"),
        checkpoints=Checkpoints(steps=50, secs=0),
    )
    with tempfile.TemporaryDirectory() as moments, mock.patch.dict(os.environ):
        os.environ.pop(FOLDER, None)  # possibly set by this process
        how = kill(KILLED, moments=Path(moments))
        how = msgspec.structs.replace(how, environment={**how.environment, **environment})
        with SupervisedJob.start(job, how) as running:
            running.follow(lambda event: None)
        [killed] = [each.second for each in read_moments(Path(moments) / "ps-1.0") if each.what == "killed"]
        steps = [each.second for each in read_moments(Path(moments) / "worker-0.0") if each.what == "batch"]
    job.remove()
    # Steps in progress may still end; those after the longest pause ran on the replacement.
    pauses = [(after - before, after) for before, after in itertools.pairwise(steps) if after > killed]
    return max(pauses)[1] - killed


def _figure(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s"
