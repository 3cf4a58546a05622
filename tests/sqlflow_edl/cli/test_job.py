"""`sqlflow job ID`."""

from __future__ import annotations

import json
import os

import pytest

from edl.jobs import job_folder
from edl.jobs.snapshot import Counts, Snapshot
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import Stage


def test_a_job_is_shown_as_tables_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train", "SELECT 1 TO TRAIN x")
    assert main(["job", job.id[-6:]]) == exit_codes.OK
    facts, instances = capsys.readouterr().out.split("\n\n")
    assert job.id in facts
    assert f"pid {os.getpid()}" in instances
    assert main(["job", job.id, "--format", "json"]) == exit_codes.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["instances"][0]["place"]) == (job.id, f"pid {os.getpid()}")


def test_a_supervised_job_has_its_supervisor_its_master_and_its_tasks(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    master = stage.opening()
    Snapshot("", "", tasks={"predict": Counts(2, 1, 0)}).write(stage.folder.snapshot)
    assert main(["job", stage.job.id, "--format", "json"]) == exit_codes.OK
    found = json.loads(capsys.readouterr().out)
    assert [(row["name"], row["place"]) for row in found["instances"]] == [
        ("supervisor", f"pid {stage.running.pid}"),
        ("master", f"pid {master.pid}"),
    ]
    assert found["instances"][1]["address"] == stage.folder.address()
    assert found["tasks"] == {"predict": {"todo": 2, "doing": 1, "done": 0}}
