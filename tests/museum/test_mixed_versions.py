"""Today's version beside the first one, which share a registry, a model store and jobs, and lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.job_folder import JobFolder
from edl.jobs.snapshot import read_snapshot
from tests.documentation import REPOSITORY
from tests.museum.earlier import FIRST, SECONDS, Client, files, unpack

pytestmark = pytest.mark.soak

ROWS = """CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
SELECT i % 17 AS a, i % 5 AS b, 2.0 * (i % 17) - (i % 5) AS y, 1700000000 + 3 * (i % 17) AS at FROM n"""
PREDICT = "SELECT a, b FROM t LIMIT 9 TO PREDICT"
LONG = """SELECT a, b, y FROM t TO TRAIN DNNRegressor WITH model.framework = torch, model.hidden_units = [4],
train.batch_size = 8, train.epochs = {epochs}, train.early_stopping = 0, train.checkpoint_steps = 20 LABEL y INTO m"""
LOCKS = ("lock", "state.lock", "claim.lock", "metrics")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    unpack(FIRST, folder)
    return folder


@pytest.fixture
def today(tmp_path: Path) -> Client:
    client = Client(REPOSITORY, tmp_path)
    client.run("run", "--create", "--source", "sqlite:///museum.sqlite", "--quiet", "-e", ROWS)
    return client


@pytest.fixture
def earlier(tree: Path, today: Client) -> Client:
    return Client(tree, today.home)


def wait_until(condition: Callable[[], object]) -> None:
    deadline, pause = time.monotonic() + SECONDS, threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.05)


def started_job(client: Client, *, epochs: int, detached: bool) -> tuple[JobFolder, subprocess.Popen[str]]:
    """A job with one worker that has made some steps, and its client, which has ended if the job is detached."""
    options = ("--workers", "1", *(["--detach"] if detached else []))
    process = client.start(
        "run", "--source", "sqlite:///museum.sqlite", *options, "-e", LONG.format(epochs=epochs)
    )
    folder = client.home / "state" / "sqlflow-edl" / "jobs"
    wait_until(lambda: folder.is_dir() and any(folder.iterdir()))
    [path] = folder.iterdir()

    def has_begun() -> bool:
        snapshot = read_snapshot(ClusterFolder(path).snapshot)
        return snapshot is not None and snapshot.step > 50

    wait_until(has_begun)
    if detached:
        process.communicate(timeout=SECONDS)
    return JobFolder(path), process


@pytest.mark.parametrize("store", [(), ("--model-store", "models")], ids=["database", "model store"])
def test_both_versions_read_and_continue_the_models_of_the_other(
    today: Client, earlier: Client, store: tuple[str, ...]
) -> None:
    (today.home / "models").mkdir()
    # without rows to explain by and validation rows: the first version has no file for what is kept of them
    train = (
        "SELECT a, b, y FROM t TO TRAIN BoostedTreesRegressor "
        "WITH train.num_boost_round = 4, validation.fraction = 0 LABEL y INTO m"
    )
    predicted = []
    for version, client in enumerate((earlier, today, earlier), 1):
        client.sql(train, *store)
        for each in (today, earlier):
            assert f"m           {version}  ready  yes" in each.sql("SHOW MODELS", *store)
        predicted += [each.sql(f"{PREDICT} USING m", *store) for each in (today, earlier)]
    assert set(predicted) == {predicted[0]}


def test_a_model_with_a_later_field_is_refused_by_its_name_and_stays_as_it_is(
    today: Client, earlier: Client
) -> None:
    today.sql(
        "SELECT a, b, at FROM t TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 4 LABEL at INTO late"
    )
    before = today.sql(f"{PREDICT} USING late")
    for statement in (f"{PREDICT} USING late", "SELECT a, b, at FROM t TO EVALUATE late LABEL at"):
        said = earlier.sql(statement, code=None)
        assert "unknown field `centre`" in said
        assert "another version has made it" in said
    assert "late" in earlier.sql("SHOW MODELS")
    assert today.sql(f"{PREDICT} USING late") == before


def test_the_earlier_version_leaves_an_interrupted_job_as_it_is(today: Client, earlier: Client) -> None:
    job, client = started_job(today, epochs=400, detached=False)
    client.send_signal(signal.SIGTERM)
    client.communicate(timeout=SECONDS)
    assert (client.returncode, job.status().state) == (143, "interrupted")
    before = files(job.path, LOCKS)
    assert job.id in earlier.run("jobs")
    earlier.run("jobs", "--clean")
    earlier.sql("SELECT 1 AS one")
    assert files(job.path, LOCKS) == before
    today.run("resume", job.id)
    assert job.status().state == "done"


def test_a_job_of_the_earlier_version_goes_on_with_a_master_of_today(
    tree: Path, today: Client, tmp_path: Path
) -> None:
    """The package is replaced in place while the job runs."""
    installed = tmp_path / "installed"
    installed.symlink_to(tree)
    job, _ = started_job(Client(installed, tmp_path), epochs=600, detached=True)
    installed.unlink()
    installed.symlink_to(REPOSITORY)
    master = ClusterFolder(job.path).process("master")
    assert master is not None
    os.kill(master.pid, signal.SIGKILL)
    today.run("attach", job.id)
    assert job.status().state in ("finished", "done")
    assert "m           1  ready  yes" in today.sql("SHOW MODELS")


def test_a_job_of_the_earlier_version_can_be_paused_and_cancelled(today: Client, earlier: Client) -> None:
    job, _ = started_job(earlier, epochs=100_000, detached=True)
    today.run("pause", job.id)
    assert job.status().state == "paused"
    earlier.run("resume", "--detach", job.id)
    wait_until(lambda: ClusterFolder(job.path).process("master") is not None)
    today.run("cancel", job.id)
    assert job.status().state == "cancelled"
