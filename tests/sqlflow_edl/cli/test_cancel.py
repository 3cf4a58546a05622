"""`sqlflow cancel ID`."""

from __future__ import annotations

import os

import pytest

from edl.jobs import job_folder
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import Stage


def test_a_job_is_cancelled_from_outside(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    master = stage.opening()
    worker = stage.worker(master)
    master.do("obey", code=exit_codes.FAILED)
    assert main(["cancel", stage.job.id]) == exit_codes.OK
    assert capsys.readouterr().err == f"job {stage.job.id}: cancelled\n"
    worker.wait()
    assert main(["cancel", stage.job.id]) == exit_codes.FAILED
    assert "does not run: its state is cancelled" in capsys.readouterr().err


def test_a_job_inside_another_process_is_not_ended_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    assert main(["cancel", job.id]) == exit_codes.FAILED
    assert f"runs inside process {os.getpid()}" in capsys.readouterr().err
    assert job.status().is_alive
