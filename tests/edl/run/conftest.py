"""A training process that the tests of a session share, and job folders for it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl.jobs import job_folder
from edl.run.training_client import TrainingProcess
from tests.edl.programs import pin


@pytest.fixture(scope="session")
def process() -> Iterator[TrainingProcess]:
    with TrainingProcess.start("torch", 1) as started:
        yield started


def new_job(table: pa.Table, kind: job_folder.Kind = "train") -> job_folder.JobFolder:
    """A job folder with the table's rows pinned in it."""
    job = job_folder.create(kind)
    (job.rows / "pinned.json").write_bytes(msgspec.json.encode(pin(job.rows, table)))
    return job


def contents(job: job_folder.JobFolder) -> set[str]:
    """What the job left beside its inputs."""
    files = {path.relative_to(job.path).as_posix() for path in job.path.rglob("*") if path.is_file()}
    return files - {"status.json", "rows/pinned.json", "rows/rows.arrow"}


def log(job: job_folder.JobFolder) -> str:
    return (job.path / "logs" / "worker-0.log").read_text()


def line(rows: int) -> pa.Table:
    x = np.arange(rows) / rows
    return pa.table({"x": x, "y": 3 * x + 1})
