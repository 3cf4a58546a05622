"""Whole jobs, from the statement on a command line to the model or table in the database: see `place`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from edl import tls
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.searches import short
from tests.sqlflow_edl.backends.kubernetes.place import Place, until
from tests.sqlflow_edl.backends.kubernetes.whole_jobs import (
    QUERY,
    ROWS,
    TRAIN,
    last_job,
    pinned,
    place,
    points,
    report,
    run,
    sqlflow,
)

__all__ = ["place", "points"]


@pytest.mark.soak
def test_a_model_is_trained_used_and_measured_though_a_worker_and_the_master_are_lost(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlflow("run", "-e", TRAIN.format(epochs=24, how="num_workers = 2"), *points.options) as said:
        said.until("epoch 1:")
        [*_, worker] = sorted(points.pods("worker"), key=lambda pod: str(pod["metadata"]["name"]))
        points.delete(worker, grace=1)
        until(lambda: any(pod["metadata"]["name"].endswith("worker-1-1") for pod in points.pods("worker")))
        [master] = points.pods("master")
        points.delete(master, grace=0)
        assert said.end() == exit_codes.OK, said
    assert "trained DNNRegressor m@1 on 5,400 rows" in str(said)
    found = report(capsys, last_job().id)
    assert (found["state"], found["epoch"]) == ("done", 24)
    relaunches = {row["name"]: row["relaunches"] for row in found["instances"]}
    assert relaunches["worker-1"] >= 1
    assert relaunches["master"] >= 1

    predict = f"{QUERY} TO PREDICT scores.y USING m WITH predict.num_workers = 2"
    [measured] = run(points, capsys, f"{predict}; {QUERY} TO EVALUATE m")
    assert measured["loss"] < 0.05
    [scored] = points.query(
        "SELECT COUNT(*) AS n, MAX(ABS(s.y - p.y)) AS off FROM scores s JOIN points p ON p.n = s.n"
    )
    assert (scored["n"], scored["off"] < 1.5) == (ROWS, True)
    assert pinned(points) == []


TREES = (
    "SELECT a, b, y FROM points TO TRAIN BoostedTreesRegressor "
    "WITH num_workers = {workers}, train.num_boost_round = 200, min_child_samples = 5 LABEL y INTO {name}"
)
FEW_TREES = "SELECT a, b, y FROM points TO TRAIN BoostedTreesRegressor WITH num_workers = 1, train.num_boost_round = 5"


@pytest.mark.soak
def test_pods_grow_trees_together_and_the_loss_of_one_changes_none(
    points: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with sqlflow("run", "-e", TREES.format(workers=2, name="trees"), *points.options) as said:
        said.until("epoch 4:")
        [*_, worker] = sorted(points.pods("worker"), key=lambda pod: str(pod["metadata"]["name"]))
        points.delete(worker, grace=0)
        assert said.end() == exit_codes.OK, said
    assert "trained BoostedTreesRegressor trees@1 on 5,400 rows" in str(said)
    relaunches = {row["name"]: row["relaunches"] for row in report(capsys, last_job().id)["instances"]}
    assert relaunches["worker-1"] == 1
    run(points, capsys, TREES.format(workers=2, name="same"))
    files = [tmp_path / "trees.txt", tmp_path / "same.txt"]
    for file in files:
        assert main(["export", file.stem, "-o", str(file), "--source", points.url]) == exit_codes.OK
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.soak
def test_a_job_is_left_followed_and_cancelled(points: Place, capsys: pytest.CaptureFixture[str]) -> None:
    run(points, capsys, TRAIN.format(epochs=10_000, how="num_workers = 1"), "--detach")
    job = last_job()
    assert job.status().is_alive
    with sqlflow("attach", job.id) as said:
        said.until("epoch 1:")
        said.process.send_signal(signal.SIGINT)
        assert said.end() == exit_codes.INTERRUPTED
    assert f"sqlflow cancel {job.id}" in str(said)
    assert report(capsys, job.id)["state"] == "running"
    assert pinned(points) != []
    assert main(["cancel", job.id]) == exit_codes.OK
    assert points.pods() == []
    assert job.status().state == "cancelled"
    assert pinned(points) != []
    run(points, capsys, "SELECT 1 AS one")  # whoever opens the source next
    assert pinned(points) == []


@pytest.mark.soak
def test_an_interrupt_cancels_a_job_with_parameter_servers(points: Place) -> None:
    how = "num_workers = 1, num_ps = 2"
    with sqlflow("run", "-e", TRAIN.format(epochs=10_000, how=how), *points.options) as said:
        said.until("epoch 1:")
        assert len(points.pods("ps")) == 2
        said.process.send_signal(signal.SIGINT)
        assert said.end() == exit_codes.INTERRUPTED
    assert points.pods() == []
    assert pinned(points) == []


@pytest.mark.soak
@pytest.mark.parametrize("side_by_side", [(), ("--parallel", "2")], ids=["one by one", "side by side"])
def test_a_client_that_is_terminated_leaves_its_job(
    points: Place, capsys: pytest.CaptureFixture[str], side_by_side: tuple[str, ...]
) -> None:
    training = TRAIN.format(epochs=10_000, how="num_workers = 1")
    with sqlflow("run", *side_by_side, "-e", f"{training}; SELECT 1 AS one", *points.options) as said:
        said.until("epoch 1:")
        said.process.send_signal(signal.SIGTERM)
        assert said.end() == exit_codes.TERMINATED, str(said)
    job = last_job()
    assert "DETACH TRAIN" in str(said)
    assert f"job {job.id} continues: `sqlflow attach {job.id}` follows it" in str(said)
    assert report(capsys, job.id)["state"] == "running"
    assert main(["cancel", job.id]) == exit_codes.OK
    assert points.pods() == []


@pytest.mark.parametrize(
    ("statement", "unused"),
    [
        (f"{FEW_TREES}, kubernetes.tls = TRUE LABEL y INTO m", {("delete", "pods", "")}),
        pytest.param(
            TRAIN.format(epochs=2, how="num_workers = 2, num_ps = 2, kubernetes.tls = TRUE"),
            set(),
            marks=pytest.mark.soak,
        ),
    ],
    ids=["trees", "parameter servers"],
)
def test_a_model_is_trained_by_encrypted_calls(
    points: Place, capsys: pytest.CaptureFixture[str], statement: str, unused: set[tuple[str, str, str]]
) -> None:
    run(points, capsys, statement)
    for secret in points.objects("/api/v1", "secrets"):
        assert {"token", *tls.FILES} <= secret["data"].keys()
    [model] = run(points, capsys, "SHOW MODELS")
    assert (model["name"], model["version"]) == ("m", 1)
    until(lambda: all(pod["status"]["phase"] != "Running" for pod in points.pods()))
    check_rights(points, unused)


def check_rights(place: Place, unused: set[tuple[str, str, str]]) -> None:
    """The masters used all rights of their Role but some, and no other."""
    if place.double is None:
        return
    roles = place.objects("/apis/rbac.authorization.k8s.io/v1", "roles")
    assert roles
    for role in roles:
        given = {
            (verb, resource, name)
            for rule in role["rules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
            for name in rule.get("resourceNames", [""])
        }
        calls = place.double.calls(f"system:serviceaccount:{place.namespace}:{role['metadata']['name']}")
        assert given - unused == {
            (
                call["verb"],
                call["resource"],
                call["name"] if call["resource"] in ("configmaps", "jobs") else "",
            )
            for call in calls
        }


@pytest.mark.soak
def test_the_trials_of_a_search_are_shared_by_pods_and_its_model_predicts_in_pods(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    search = (
        "SELECT a, b, y FROM points LABEL y "
        "WITH auto.models = [linear, lightgbm], auto.trials = 3, auto.folds = 2 INTO m"
    )
    with short():
        run(points, capsys, search, "--workers", "2")
    trials = run(points, capsys, "SHOW TRIALS m")
    assert sorted((row["trial"], row["error"]) for row in trials) == [(1, None), (2, None), (3, None)]
    points.query("CREATE TABLE scores AS SELECT n, a, b, y FROM points WHERE n < 0")
    run(points, capsys, f"{QUERY} TO PREDICT scores.y USING m WITH predict.num_workers = 2, APPEND")
    [scored] = points.query(
        "SELECT COUNT(*) AS n, MAX(ABS(s.y - p.y)) AS off FROM scores s JOIN points p ON p.n = s.n"
    )
    assert (scored["n"], scored["off"] < 1.5) == (ROWS, True)


@pytest.mark.soak
def test_a_search_goes_on_when_one_of_its_pods_is_lost(
    points: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    search = (
        "SELECT a, b, y FROM points LABEL y "
        "WITH auto.models = lightgbm, auto.trials = 3, auto.folds = 2, train.time_limit = 3600 INTO {}"
    )
    with sqlflow("run", "-e", search.format("m"), "--workers", "2", *points.options) as said:
        said.until("trial ")
        points.delete(points.pods("worker")[0], grace=0)
        assert said.end() == exit_codes.OK, said
    run(points, capsys, search.format("undisturbed"), "--workers", "2")
    chosen = [
        [
            (row["trial"], row["weight"], row["rmse"])
            for row in run(points, capsys, f"SHOW TRIALS {name}")
            if row["weight"]  # a lost trial is not run again after one that cannot be improved
        ]
        for name in ("m", "undisturbed")
    ]
    assert chosen[0] == chosen[1]
