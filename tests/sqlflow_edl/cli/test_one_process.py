"""Trainings of `sqlflow run` without workers: what SIGTERM and SIGKILL leave of them, and how they are resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import complete
from edl.jobs import job_folder
from edl.jobs.job_folder import JobFolder
from edl.models.archive import Archive, read_archive
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill

pytestmark = pytest.mark.soak
SECONDS = 180.0
NETWORK = (
    "DNNRegressor WITH model.framework = {}, model.dropout = 0.2, train.epoch = 40, train.batch_size = 16, "
)
STATEMENTS = {
    "lightgbm": "BoostedTreesRegressor WITH train.num_boost_round = 1500, train.early_stopping = 0, ",
    "torch": NETWORK.format("torch"),
    "keras": NETWORK.format("keras"),
}
FRAMEWORKS = ["lightgbm", "torch", "keras"]


def url(folder: Path) -> str:
    return f"duckdb:///{folder}/my.duckdb"


def started(folder: Path, framework: str, *options: str) -> subprocess.Popen[str]:
    """A training of a table in a database of this folder."""
    folder.mkdir()
    a = np.random.default_rng(0).normal(size=2000)
    duckdb.connect(str(folder / "my.duckdb")).close()
    with Session(url(folder)) as session:
        fill(session, "numbers", pa.table({"a": a, "b": 3 * a + 1}))
    statement = (
        f"SELECT a, b FROM numbers TO TRAIN {STATEMENTS[framework]}train.checkpoint_steps = 200 "
        "LABEL b INTO m"
    )
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "run", "--source", url(folder), *options]
    return subprocess.Popen(
        [*command, "-e", statement], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def model(folder: Path) -> Archive:
    with Session(url(folder)) as session:
        session.registry.load("m", folder / "m.zip")
    return read_archive(folder / "m.zip")


def job_with_checkpoint(client: subprocess.Popen[str]) -> JobFolder:
    """Wait until the job has a complete checkpoint."""
    end = time.monotonic() + SECONDS
    while not (found := job_folder.jobs()) or not complete(SharedFolder(found[-1].checkpoints)):
        assert client.poll() is None, client.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    return found[-1]


def training_process(client: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
    [found] = [pid for pid in children if b"training_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(found)


def end_client(client: subprocess.Popen[str], number: signal.Signals) -> None:
    os.kill(client.pid, number)


def end_training_process(client: subprocess.Popen[str], number: signal.Signals) -> None:
    os.kill(training_process(client), number)


def end_both(client: subprocess.Popen[str], number: signal.Signals) -> None:
    found = training_process(client)
    os.kill(found, number)
    os.kill(client.pid, number)


def is_same(one: Archive, other: Archive) -> bool:
    first, second = one.weights(), other.weights()
    alike = (
        np.array_equal(first[name], second[name]) for name in first if name != "gain"
    )  # sums of rounded ones
    return first.keys() == second.keys() and all(alike) and one.metrics == other.metrics


ENDS = [
    pytest.param(end_client, signal.SIGTERM, id="SIGTERM to the client"),
    pytest.param(end_training_process, signal.SIGTERM, id="SIGTERM to the training process"),
    pytest.param(end_both, signal.SIGTERM, id="SIGTERM to both"),
    pytest.param(end_client, signal.SIGKILL, id="SIGKILL of the client"),
    pytest.param(end_both, signal.SIGKILL, id="SIGKILL of both"),
]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("end,number", ENDS)
def test_a_training_that_ends_early_is_resumed_to_the_model_of_an_undisturbed_one(
    framework: str,
    end: Callable[[subprocess.Popen[str], signal.Signals], None],
    number: signal.Signals,
    tmp_path: Path,
) -> None:
    with started(tmp_path / "whole", framework) as client:
        assert client.wait(SECONDS) == exit_codes.OK
    with started(tmp_path / "broken", framework, "--json") as client:
        job = job_with_checkpoint(client)
        end(client, number)
        out, err = client.communicate(timeout=SECONDS)
    assert job.can_resume
    if number == signal.SIGTERM:
        assert (client.returncode, job.status().state) == (exit_codes.TERMINATED, "interrupted")
        assert f"`sqlflow resume {job.id}` continues the training" in err
        [said] = [line for line in map(json.loads, out.splitlines()) if "outcome" in line]
        assert (said["outcome"], said["resumable"], said["job"]) == ("interrupted", True, job.id)
    assert main(["checkpoints", job.id, "--verify"]) == exit_codes.OK
    assert main(["resume", job.id]) == exit_codes.OK
    assert is_same(model(tmp_path / "broken"), model(tmp_path / "whole"))
