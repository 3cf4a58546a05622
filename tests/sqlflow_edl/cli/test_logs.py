"""`sqlflow logs ID [INSTANCE]`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edl.jobs import job_folder
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main


def logged(job: job_folder.JobFolder, **texts: str) -> None:
    for name, text in texts.items():
        (job.logs / f"{name.replace('_', '-')}.log").write_text(text)


def test_the_log_of_an_instance_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    logged(job, worker_0="one\ntwo", master="other\n")
    assert main(["logs", job.id, "worker-0"]) == exit_codes.OK
    assert capsys.readouterr().out == "one\ntwo\n"


def test_the_lines_of_several_logs_carry_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    logged(job, worker_0="one\ntwo\n", master="three\n")
    main(["logs", job.id])
    assert capsys.readouterr().out.splitlines() == ["master   | three", "worker-0 | one", "worker-0 | two"]


def test_an_unknown_instance_is_answered_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    logged(job, worker_0="", worker_1="", master="")
    assert main(["logs", job.id, "wroker-1"]) == exit_codes.FAILED
    assert "did you mean worker-1?" in capsys.readouterr().err


@pytest.mark.soak
def test_logs_are_followed_until_the_job_has_ended() -> None:
    job = job_folder.create("train")
    logged(job, master="first\n")
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "logs", job.id, "-f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "first\n"
        logged(job, worker_0="half a ")
        with (job.logs / "worker-0.log").open("a") as log:
            log.write("line\nand no end")
        assert follower.stdout.readline() == "worker-0 | half a line\n"
        job.end("done")
        assert follower.stdout.read() == "worker-0 | and no end\n"
    assert follower.returncode == 0
