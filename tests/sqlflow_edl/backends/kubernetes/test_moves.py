"""Trainings that move: from this machine to pods, to another namespace, and back. See `place`."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.cluster.kubernetes.api_calls import APIRefusedError
from edl.data import connect
from edl.jobs.job_folder import jobs
from edl.models.registry.tables import MODELS
from edl.spec import to_json
from sqlflow_edl.backends import moving
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.sqlflow_edl.backends.kubernetes.jobs import with_workers
from tests.sqlflow_edl.backends.kubernetes.place import SETTINGS, Place, run_command, until
from tests.sqlflow_edl.backends.kubernetes.play import Play
from tests.sqlflow_edl.backends.kubernetes.test_following import RESTARTED
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    TRAIN,
    TTL,
    last_job,
    limit,
    nothing_left,
    objects,
    place,
    points,
    remove_limit,
    report,
    sqlflow,
)

__all__ = ["place", "points"]

EPOCHS = 60
TEXT = TRAIN.format(epochs=EPOCHS, how="num_workers = 1, train.seed = 1")


def refusal(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main(list(command)) == exit_codes.FAILED
    return capsys.readouterr().err


def test_a_training_whose_namespace_is_gone_is_ready_to_move_if_its_checkpoint_was_kept(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [False]
    monkeypatch.setattr("sqlflow_edl.backends.moving.has_checkpoint", lambda job: kept[0])
    (play.folder.program / "job.json").write_bytes(to_json(with_workers(2)))
    play.start()
    play.cluster.go_wrong(RESTARTED[0])
    with pytest.raises(APIRefusedError):
        moving._pause(play.handle)
    kept[0] = True
    assert moving._pause(play.handle) == ""
    assert play.folder.can_resume
    play.cluster.go_wrong()


def to_pods(place: Place, job: str, namespace: str = "") -> list[str]:
    settings = {**SETTINGS, **place.settings, "ttl_secs": TTL}
    options = [f"--set={name}={value}" for name, value in settings.items()]
    where = ["--namespace", namespace or place.namespace, "--image", place.image]
    return ["move", job, "--to", "kubernetes", "--detach", *where, *options]


def trains(capsys: pytest.CaptureFixture[str], job: str, beyond: int) -> None:
    """Wait until a later epoch than that is trained."""

    def is_beyond() -> bool:
        found = report(capsys, job)
        assert found["state"] == "running", found
        return bool(found["epoch"] > beyond)

    until(is_beyond, pause=0.3)


def metrics(place: Place) -> list[str]:
    """Metrics of all versions of the model, to the last digit."""
    return [row["metrics"] for row in place.query(f"SELECT metrics FROM {MODELS} ORDER BY version")]


@pytest.mark.soak
def test_a_training_moves_to_pods_to_another_namespace_and_back_with_its_weights(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["--source", points.url]
    with sqlflow("run", "-e", TEXT, *source) as client:
        assert client.end() == exit_codes.OK, client
    with sqlflow("run", "-e", TEXT, *source) as client:
        client.until("epoch 4:")
        job = last_job().id
        told = run_command(capsys, *to_pods(points, job))
        client.end()
    assert f"job {job} is paused; when it is resumed, training resumes from step " in told
    assert f"job {job} is on kubernetes {points.namespace}/sqlflow-edl-m-" in told
    epoch = 5
    trains(capsys, job, epoch)
    if points.double is not None:
        other = points.double.new_namespace()
        assert f"is on kubernetes {other}/sqlflow-edl-m-" in run_command(capsys, *to_pods(points, job, other))
        epoch = int(report(capsys, job)["epoch"])
        trains(capsys, job, epoch + 1)
        assert objects(points) == []
    told = run_command(capsys, "move", job, "--to", "local", "--detach")
    assert f"job {job}: training resumes from step " in told
    assert report(capsys, job)["place"] == ""
    with sqlflow("attach", job) as client:
        assert client.end() == exit_codes.OK, client
    undisturbed, moved = metrics(points)
    assert undisturbed == moved
    assert main(["run", "-e", "SELECT 1 AS one", *source]) == exit_codes.OK  # removes the fixed rows
    nothing_left(points)


@pytest.mark.soak
def test_a_training_whose_pods_cannot_start_after_it_has_moved_is_resumed_later(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    limit(points, **{"requests.memory": "1Mi"})
    with sqlflow("run", "-e", TEXT, "--source", points.url) as client:
        client.until("epoch 4:")
        job = last_job().id
        words = refusal(capsys, *(word for word in to_pods(points, job) if word != "--detach"))
        client.end()
    assert "the master of the job can never start: " in words
    assert f"`sqlflow resume {job}` continues the training" in words
    run_command(capsys, "jobs")
    remove_limit(points)
    with sqlflow("resume", job) as client:
        client.until("training resumes from step ")
        assert client.end() == exit_codes.OK, client
    nothing_left(points)


@pytest.mark.soak
def test_rows_in_a_file_of_this_machine_stay_here(
    points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"duckdb:{tmp_path / 'points.duckdb'}"
    with connect(url, create=True) as source:
        source.execute(
            "CREATE TABLE points AS SELECT i / 97.0 AS a, i / 89.0 AS b, i / 5.0 AS y FROM range(6000) t(i)"
        )
    with sqlflow("run", "-e", TEXT, "--source", url) as client:
        client.until("epoch 1:")
        job = jobs()[-1].id
        words = refusal(capsys, *to_pods(points, job))
        assert f"job {job} cannot be moved: its rows are in a file of this machine" in words
        assert report(capsys, job)["state"] == "running"
        assert client.interrupt() == exit_codes.INTERRUPTED
