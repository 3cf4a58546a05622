"""Whole jobs that are paused, scaled and resumed, by the commands of a user: see `place`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edl.checkpoints.kept import CHECKPOINTS
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.place import Place, run_command, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    QUERY,
    ROWS,
    TRAIN,
    TTL,
    brief,
    last_job,
    nothing_left,
    place,
    points,
    report,
    run,
    sqlflow,
)

__all__ = ["place", "points"]


def running(place: Place, role: str) -> list[dict[str, Any]]:
    return [pod for pod in place.pods(role) if pod["status"]["phase"] == "Running"]


def master(place: Place) -> list[dict[str, Any]]:
    """The pods of the master of the last job, if it predicts."""
    job = last_job()
    found = place.pods("master") if job.status().kind == "predict" else []
    return [pod for pod in found if pod["metadata"]["labels"]["sqlflow-edl/job"] == job.id]


def suspended(place: Place) -> bool:
    [job] = place.objects("/apis/batch/v1", "jobs")
    return bool(job["spec"]["suspend"])


@pytest.mark.soak
def test_a_training_is_scaled_paused_and_resumed_and_its_data_source_keeps_the_checkpoint(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlflow("run", "-e", TRAIN.format(epochs=30, how="num_workers = 2"), *brief(points)) as client:
        client.until("epoch 1:")
        job = last_job().id
        assert f"job {job}: 2 → 1 worker" in run_command(capsys, "scale", job, "--workers", "1")
        until(lambda: len(running(points, "worker")) == 1)
        told = run_command(capsys, "pause", job)
        assert f"job {job} is paused after step" in told
        assert "stays" not in told
        until(lambda: not points.pods("master"))
        assert (running(points, "worker"), suspended(points)) == ([], True)
        assert report(capsys, job)["state"] == "paused"
        client.until(f"the job is paused; `sqlflow resume {job}` continues it")
        assert run_command(capsys, "resume", job, "--detach").startswith(f"job {job} continues\n")
        assert client.end() == exit_codes.OK, client
    assert "trained DNNRegressor m@1 on 5,400 rows" in str(client)
    assert "training resumes from step" in str(client)
    assert report(capsys, job)["generation"] > 1
    assert points.query(f"SELECT job FROM {CHECKPOINTS}") == []
    nothing_left(points)


@pytest.mark.soak
def test_a_training_on_a_volume_leaves_no_pod_while_it_is_paused(
    points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if points.double is None:
        pytest.skip("the folder is on this machine, as the pods of the double are")
    options = [*brief(points), "--set", f"checkpoints={tmp_path}"]
    servers = "num_workers = 2, num_ps = 1, train.checkpoint_secs = 100"
    with sqlflow("run", "-e", TRAIN.format(epochs=30, how=servers), *options) as client:
        client.until("epoch 1:")
        job = last_job().id
        assert run_command(capsys, "pause", job).count("stays") == 0
        until(lambda: not points.pods("master"))
        assert (running(points, "worker"), running(points, "ps"), suspended(points)) == ([], [], True)
        assert any(tmp_path.iterdir())
        assert run_command(capsys, "resume", job, "--detach").startswith(f"job {job} continues\n")
        assert client.end() == exit_codes.OK, client
    assert "trained DNNRegressor m@1 on 5,400 rows" in str(client)
    nothing_left(points)


@pytest.mark.soak
def test_a_prediction_is_paused_and_resumed_with_what_it_has_staged(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    run(points, capsys, TRAIN.format(epochs=1, how="train.seed = 1"), "--set", f"ttl_secs={TTL}")
    predict = f"{QUERY} TO PREDICT scores.y USING m WITH predict.num_workers = 1"
    with sqlflow("run", "-e", predict, *brief(points)) as client:
        until(lambda: master(points))
        job = last_job().id
        assert f"job {job} is paused\n" in run_command(capsys, "pause", job)
        until(lambda: not master(points))
        assert run_command(capsys, "resume", job, "--detach").startswith(f"job {job} continues\n")
        assert client.end() == exit_codes.OK, client
    [counted] = points.query("SELECT COUNT(*) AS n FROM scores")
    assert counted["n"] == ROWS
    nothing_left(points, "scores")


@pytest.mark.soak
def test_a_training_is_paused_at_its_deadline_and_goes_on_from_there_when_it_is_resumed(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    text = TRAIN.format(epochs=900, how="num_workers = 1")
    with sqlflow("run", "-e", text, "--deadline", "25s", *brief(points)) as client:
        assert client.end() == exit_codes.FAILED, client
    assert "error: the job did not end before its deadline of 25 s; it is paused" in str(client)
    job = last_job().id
    assert f"`sqlflow resume {job}` continues the training" in str(client)
    until(lambda: report(capsys, job)["state"] == "paused")
    assert running(points, "worker") == []
    assert len(running(points, "master")) == 1
    with sqlflow("resume", job) as client:
        client.until("training resumes from step ")
        assert client.end() == exit_codes.FAILED, client  # the same deadline again
    until(lambda: report(capsys, job)["state"] == "paused")
    assert main(["cancel", job]) == exit_codes.OK
    run(points, capsys, "SELECT 1 AS one")  # whoever opens the source next removes the rows
    nothing_left(points)
