"""`sqlflow scale ID --workers N --servers N`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.cluster.quota.quota import Quota
from edl.jobs import job_folder
from edl.jobs.cluster_folder import MASTER, SCRIPT_MASTER, ClusterFolder, Process, QuotaUse, RunSpec
from edl.jobs.job_folder import JobFolder
from edl.jobs.slots import SlotRequest
from edl.jobs.snapshot import read_snapshot
from edl.spec import Cluster, Rows, to_json
from sqlflow_edl.backends import master_call, steering
from sqlflow_edl.backends.base import Numbers
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl import programs
from tests.edl.cluster.local.conftest import Stage, wait_until


def describe(job: JobFolder, kind: str, cluster: Cluster) -> None:
    """Write its JobSpec."""
    spec = programs.job_spec("torch", (), programs.RegressionLabel("y"), Rows(True, 100, 100))
    changed = msgspec.structs.replace(spec, kind=kind, cluster=cluster)  # type: ignore[arg-type]
    (job.program / "job.json").write_bytes(to_json(changed))


def supervised(cluster: Cluster | None = None, **spec: Any) -> JobFolder:
    """A job that this process seems to supervise; it has no master."""
    job = job_folder.create("train")
    folder = ClusterFolder(job.path)
    folder.write_run_spec(RunSpec("torch", **spec))
    folder.write_process("supervisor", Process.of(os.getpid()))
    describe(job, "train", cluster or Cluster())
    return job


def states(stage: Stage) -> list[tuple[str, str]]:
    """States of the workers, as the master shows them."""
    snapshot = read_snapshot(stage.folder.snapshot)
    return [(row.name, row.state) for row in snapshot.instances] if snapshot is not None else []


def test_workers_of_a_running_job_begin_and_leave_and_those_beyond_its_quota_wait(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def scaled(workers: int) -> str:
        assert main(["scale", stage.job.id, "--workers", str(workers)]) == exit_codes.OK
        return capsys.readouterr().err

    quota = Quota(tmp_path / "quota")
    quota.resize(2)
    use = QuotaUse(str(quota.folder), SlotRequest(1, 1))
    stage.spec = msgspec.structs.replace(stage.spec, master=MASTER, quota=use)
    describe(stage.job, "predict", Cluster(workers=1))
    stage.start()
    assert stage.enter().name == "worker-0"
    begins = f"  note: they begin when its quota {quota.folder} has free slots\n"
    assert scaled(2) == f"job {stage.job.id}: 1 → 2 workers\n{begins}"
    second = stage.enter()
    assert second.name == "worker-1"
    assert scaled(2) == f"job {stage.job.id} has 2 workers already: there is nothing to do\n"
    waits = f"  note: its quota {quota.folder} has 2 slots, and the job needs 4: the others wait\n"
    assert scaled(4) == f"job {stage.job.id}: 2 → 4 workers\n{waits}"
    assert scaled(1) == f"job {stage.job.id}: 4 → 1 worker\n"
    second.wait()
    wait_until(lambda: ("worker-1", "ended") in states(stage))
    assert main(["job", stage.job.id]) == exit_codes.OK
    assert re.search(r"^workers +1 *$", capsys.readouterr().out, re.MULTILINE)


def refusal(job: JobFolder, capsys: pytest.CaptureFixture[str], what: str = "--workers") -> str:
    assert main(["scale", job.id, what, "4"]) == exit_codes.FAILED
    return capsys.readouterr().err


def test_a_job_that_has_ended_is_not_scaled(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    job.end("failed", "no rows")
    assert f"job {job.id} does not run: its state is failed" in refusal(job, capsys)


def test_a_job_in_one_process_has_no_workers(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(job_folder.create("train"), capsys)
    assert "runs in one process, without workers" in said
    assert "run its statement again with --workers 4" in said


def test_the_only_holder_of_the_parameters_stays_alone(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(supervised(Cluster(1, strategy="local")), capsys)
    assert "its only worker holds the parameters" in said
    assert "WITH train.num_workers = 4" in said


@pytest.mark.parametrize("strategy", ["allreduce", "local"])
def test_a_job_without_servers_gets_none(strategy: Any, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(supervised(Cluster(2, strategy=strategy)), capsys, "--servers")
    assert f"has no parameter servers: it trains with the strategy {strategy}" in said
    assert "train again WITH train.num_ps = 4" in said


def test_a_prediction_has_no_servers(capsys: pytest.CaptureFixture[str]) -> None:
    job = supervised()
    describe(job, "predict", Cluster(2, 1, "async"))
    assert "has no parameter servers: it is of the kind predict" in refusal(job, capsys, "--servers")


def test_without_a_number_there_is_nothing_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", supervised().id]) == exit_codes.USAGE
    assert "--workers N or --servers N is missing" in capsys.readouterr().err


def test_the_number_of_workers_of_a_script_is_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(supervised(master=SCRIPT_MASTER), capsys)
    assert "each knows it from its start (WORLD_SIZE)" in said
    assert "edl run --workers 4" in said


def test_a_master_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(master_call, "PATIENCE", 0.0)
    job = supervised(Cluster(2, strategy="allreduce"))
    ClusterFolder(job.path).write_master_address("127.0.0.1:1")
    ClusterFolder(job.path).make_token()
    assert "the master of the job does not answer" in refusal(job, capsys)


def test_a_step_of_sync_still_takes_as_many_gradients() -> None:
    spec = programs.job_spec("torch", (), programs.RegressionLabel("y"), Rows(True, 100, 100))
    spec = msgspec.structs.replace(spec, cluster=Cluster(2, 1, "sync", grads_to_wait=2))
    assert steering._limits_of_strategy(spec, Numbers(1, 1), Numbers(2)) == []
    [note] = steering._limits_of_strategy(spec, Numbers(2, 1), Numbers(3, 2))
    assert "mean of 2 gradients (train.grads_to_wait)" in note


@pytest.mark.parametrize("what", ["workers", "servers"])
@pytest.mark.parametrize("number", ["0", "-1", "1001", "many"])
def test_a_number_out_of_range_is_a_wrong_command_line(
    what: str, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["scale", "a1b2c3", f"--{what}={number}"])
    assert ended.value.code == exit_codes.USAGE
    assert "from 1 to 1000" in capsys.readouterr().err
