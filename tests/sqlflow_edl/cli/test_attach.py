"""`sqlflow attach ID`."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

from edl import exit_codes as instances
from edl.jobs.event_log import EventLog
from edl.jobs.events import EpochEnd, Progress, Tally
from edl.jobs.outcome import Outcome
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import Stage

DONE = Outcome("predict", 1234, 2.0, figures={"rmse": 0.5})


def tell(stage: Stage, *events: Any) -> None:
    with EventLog(stage.folder.events) as log:
        for event in events:
            log.write(event)


@pytest.mark.soak
def test_attaching_tells_how_the_job_ended_and_what_becomes_of_it(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    master = stage.opening()
    stage.running.detach()
    tell(stage, Tally(2, 1, 0, instances=1), Progress("prediction", 5, 10, 1.0), DONE)
    master.send("exit", code=instances.OK)
    assert main(["attach", stage.job.id]) == exit_codes.OK
    said = capsys.readouterr().err
    assert f"job {stage.job.id}: predict, 1,234 rows in 2.00 s; rmse 0.5" in said
    assert "stored as soon as no other process has the data source open" in said


@pytest.mark.soak
def test_an_explanation_ends_with_bars(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    master = stage.opening()
    stage.running.detach()
    tell(stage, Outcome("explain", 1234, 2.0, figures={"age": 0.5, "height": 0.25}))
    master.send("exit", code=instances.OK)
    assert main(["attach", stage.job.id]) == exit_codes.OK
    said = capsys.readouterr().err
    assert f"job {stage.job.id}: explain, 1,234 rows in 2.00 s\n" in said
    assert "\nage     ████" in said
    assert "█ 0.25\n" in said


@pytest.mark.soak
def test_leaving_an_attached_job_lets_it_go_on(stage: Stage) -> None:
    master = stage.opening()
    tell(stage, EpochEnd(1, 10, 0.5, {}, 1.0))
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "attach", stage.job.id]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stderr is not None
        assert follower.stderr.readline() == "  epoch 1: loss 0.5\n"
        follower.send_signal(signal.SIGINT)
        assert f"sqlflow cancel {stage.job.id}" in follower.stderr.read()
    assert follower.returncode == exit_codes.INTERRUPTED
    assert stage.worker(master).name == "worker-0"


@pytest.mark.soak
def test_a_job_that_was_cancelled_is_told_as_that(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.opening().do("obey", code=exit_codes.FAILED)
    main(["cancel", stage.job.id])
    assert main(["attach", stage.job.id]) == exit_codes.FAILED
    assert "the job was cancelled" in capsys.readouterr().err
