"""`sqlflow job ID`."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time

import pytest

from edl.jobs import job_folder
from edl.jobs.snapshot import Counts, Row, Snapshot
from sqlflow_edl.backends.find import find
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.jobs import job
from sqlflow_edl.cli.main import main
from tests.edl.cluster.local.conftest import Stage


def test_a_job_is_shown_as_tables_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    created = job_folder.create("train", "SELECT 1 TO TRAIN x")
    assert main(["job", created.id[-6:]]) == exit_codes.OK
    facts, instances = capsys.readouterr().out.split("\n\n")
    assert created.id in facts
    assert f"pid {os.getpid()}" in instances
    assert main(["job", created.id, "--format", "json"]) == exit_codes.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["id"], found["instances"][0]["place"]) == (created.id, f"pid {os.getpid()}")


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


class Terminal(io.StringIO):
    """A screen."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """One that is 60 cells wide."""
    for name, value in {"TERM": "xterm", "COLUMNS": "60", "LINES": "30", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def test_a_job_is_watched_until_it_ends_in_lines_that_fit(
    stage: Stage, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.opening()
    shown = Snapshot(
        "",
        "",
        tasks={"predict": Counts(2, 1, 1)},
        instances=(Row("worker-0", "worker", 0, "running", rate=1234.0),),
    )
    shown.write(stage.folder.snapshot)
    monkeypatch.setattr(time, "sleep", lambda _: stage.job.end("failed", "no rows " * 20))
    assert job.watch(find(stage.job.id), terminal) == exit_codes.FAILED
    live, _, after = terminal.getvalue().partition("\x1b[?1049l")  # the end of the alternate screen
    live = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", live)
    assert "━━╌╌╌╌╌╌╌╌ 25%  2 to do, 1 in work, 1 done" in live
    assert re.search(r"error +no rows .*…", live)
    assert "failed" in after


def test_ctrl_c_ends_the_view_not_the_job(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = job_folder.create("train", "SELECT 1 TO TRAIN x")
    monkeypatch.setattr(time, "sleep", lambda _: signal.raise_signal(signal.SIGINT))
    assert job.watch(find(running.id), terminal) == exit_codes.INTERRUPTED
    assert f"job {running.id} continues" in capsys.readouterr().err
    assert running.status().alive


def test_only_a_terminal_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", job_folder.create("train").id, "--watch"]) == exit_codes.USAGE
    assert "sqlflow attach" in capsys.readouterr().err
