"""What commands are told of a job on Kubernetes."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from edl.data import connect
from edl.jobs.events import EpochEnd
from edl.jobs.failure import Failed
from edl.jobs.job_folder import STARTING
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Counts, Row, Snapshot
from edl.models.pending import Intent, write_intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import wait_until
from tests.sqlflow_edl.backends.kubernetes.play import Play, Told

FIRST = EpochEnd(1, 10, 0.5, {}, 1.0)
DONE = Outcome("train", 20, 2.0, stored="m@3", notes=("workers ran out of memory once",))


def started(play: Play, told: Told) -> None:
    """Until its master runs."""
    play.start()
    play.handle.wait_for_start(told)


def test_a_job_is_shown_with_what_its_master_says_and_where_its_pods_are(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.worker("worker-0", "sleep 60", cpu="900")
    rows = (
        Row("worker-0", "worker", 0, "pending", task="train task 7"),
        Row("worker-1", "worker", 2, "running"),
    )
    play.writes(snapshot_json=Snapshot("", "", tasks={"train": Counts(1, 2, 3)}, instances=rows))
    told_by_scheduler = "0/1 nodes are available: 1 Insufficient cpu."
    wait_until(lambda: play.handle.details().notes != ())
    assert play.handle.details().notes == (f"worker-0 waits: {told_by_scheduler}",)
    assert main(["job", play.folder.id, "--format", "json"]) == exit_codes.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["tasks"]["train"]["todo"]) == ("running", 1)
    assert found["place"] == f"kubernetes {play.namespace}/{play.name}"
    master, waits, elsewhere = found["instances"]
    assert (master["name"], master["state"]) == ("master", "running")
    assert master["place"].startswith(f"pod {play.name}-")
    assert (waits["state"], waits["task"], waits["place"]) == (
        "pending",
        "train task 7",
        f"pod {play.name}-worker-0-0",
    )
    assert waits["note"].startswith(told_by_scheduler)
    assert (elsewhere["name"], elsewhere["incarnation"]) == ("worker-1", 2)


def test_what_the_pods_print_is_shown_by_instance_and_without_events(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.worker("worker-0", "echo one; echo two")
    play.says(FIRST, "a line", "exit 1", "another", DONE, "exit 0")
    play.handle.follow(told)
    wait_until(lambda: "worker-0" in play.handle.details().logs)
    assert main(["logs", play.folder.id, "-f"]) == exit_codes.OK
    lines = capsys.readouterr().out.splitlines()
    assert {line for line in lines if "master" in line} == {"master   | a line", "master   | another"}
    assert [line for line in lines if "worker" in line] == ["worker-0 | one", "worker-0 | two"]
    assert main(["logs", play.folder.id, "worker-0"]) == exit_codes.OK
    assert capsys.readouterr().out == "one\ntwo\n"
    assert main(["logs", play.folder.id, "wroker-0"]) == exit_codes.FAILED
    assert "did you mean worker-0?" in capsys.readouterr().err


def test_a_job_is_attached_to_from_its_start_and_tells_what_it_stored(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.says(FIRST, DONE, "exit 0")
    assert main(["attach", play.folder.id]) == exit_codes.OK
    said = capsys.readouterr().err
    assert "epoch 1: loss 0.5" in said
    assert f"job {play.folder.id}: train, 20 rows in 2.00 s" in said
    assert "stored m@3" in said
    assert "note: workers ran out of memory once" in said
    assert play.folder.status().state == "done"


@pytest.mark.soak
def test_cancelling_leaves_nothing_of_the_job(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.worker("worker-0", "sleep 60")
    assert main(["cancel", play.folder.id]) == exit_codes.OK
    assert capsys.readouterr().err == f"job {play.folder.id}: cancelled\n"
    assert play.pods() == []
    assert main(["cancel", play.folder.id]) == exit_codes.FAILED
    assert main(["attach", play.folder.id]) == exit_codes.FAILED
    assert "the job was cancelled" in capsys.readouterr().err


def test_jobs_that_have_ended_when_nobody_looked_are_listed_as_they_ended(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.writes(end_json=Failed("runtime", "the loss is not finite"))
    play.says("exit 0")
    wait_until(lambda: listed(capsys)["state"] != "running")
    assert listed(capsys)["state"] == "failed"
    assert play.folder.status().error == "the loss is not finite"


def test_the_end_of_a_job_that_left_nothing_is_unknown(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    started(play, told)
    play.delete_job()
    wait_until(lambda: listed(capsys)["state"] != "running")
    assert listed(capsys)["state"] == "unknown"
    assert "no longer in the cluster" in play.folder.status().error
    assert main(["attach", play.folder.id]) == exit_codes.FAILED
    assert "nothing shows whether it was done" in capsys.readouterr().err


def test_a_job_whose_model_is_stored_is_done_though_it_is_not_in_the_cluster_any_more(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    started(play, told)
    url = f"sqlite:///{tmp_path}/shop.db"
    record = ModelRecord("DNNRegressor", "torch", 5400, {"loss": 0.25}, "SELECT …")
    write_intent(play.folder.path, Intent("train", url, "m", record))
    play.delete_job()
    wait_until(lambda: listed(capsys)["state"] == "unknown")
    archive = tmp_path / "model.zip"
    archive.write_bytes(b"weights")
    with closing(connect(url, create=True)) as source:
        open_registry(source).save("m", archive, record, once=play.folder.id)
        version = open_registry(source).version_with_key("m", play.folder.id)
    assert main(["job", play.folder.id]) == exit_codes.OK
    assert play.folder.status().state == "done"
    assert version is not None
    stored, ended = (datetime.fromisoformat(date) for date in (version.created, play.folder.status().ended))
    assert abs(stored - ended) < timedelta(milliseconds=2)
    assert main(["attach", play.folder.id]) == exit_codes.OK
    assert "stored m@1" in capsys.readouterr().err


def test_a_job_whose_rows_are_in_their_table_is_done_and_one_whose_training_failed_has_failed(
    play: Play, told: Told, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    started(play, told)
    url, batch = f"sqlite:///{tmp_path}/shop.db", pa.record_batch({"y": [1, 2]})
    with closing(connect(url, create=True)) as source:
        source.stage("scores", play.folder.id, 0, 0, [batch])
        source.commit("scores", play.folder.id, 1)
        record = ModelRecord("DNNRegressor", "torch", 5400, {}, "SELECT …")
        open_registry(source).record_failure("m", record, "the loss is not finite", once=play.folder.id)
    write_intent(play.folder.path, Intent("predict", url, "scores"))
    play.delete_job()
    wait_until(lambda: listed(capsys)["state"] == "done")
    assert main(["attach", play.folder.id]) == exit_codes.OK
    assert "predict, 2 rows; stored scores" in capsys.readouterr().err
    write_intent(play.folder.path, Intent("train", url, "m", record))
    play.folder.update(state="running")
    assert listed(capsys)["state"] == "failed"
    assert main(["attach", play.folder.id]) == exit_codes.FAILED
    assert "the loss is not finite" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["jobs"], ["run", "--source", "duckdb:", "-e", "SELECT 1"]])
def test_nothing_stays_of_a_job_if_its_client_died_before_it_started(
    play: Play, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    play.start(suspend=True)
    assert listed(capsys)["state"] == "running"  # somebody else suspended it, such as a queue
    play.folder.update(place=STARTING)
    assert main(command) == exit_codes.OK
    assert play.folder.status().state == "died"
    assert "before it could start" in play.folder.status().error
    path = f"/apis/batch/v1/namespaces/{play.namespace}/jobs"
    wait_until(lambda: play.cluster.ask("GET", path)["items"] == [])


def test_a_cluster_that_cannot_be_reached_is_said_in_the_list(
    play: Play,
    told: Told,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(play, told)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    text = Path(tmp_path / "kubeconfig").read_text()
    (tmp_path / "kubeconfig").write_text(text.replace(f":{play.cluster.port}", f":{port}"))
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.listing.PATIENCE", 0.0)
    assert listed(capsys)["state"].startswith("running: the API server of the cluster does not answer")
    assert play.folder.status().is_alive


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["jobs", "--format", "json"]) == exit_codes.OK
    [found] = json.loads(capsys.readouterr().out)
    return found  # type: ignore[no-any-return]
