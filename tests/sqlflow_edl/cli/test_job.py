"""`sqlflow job ID`."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time

import pytest
from rich.console import Console

from edl.jobs import job_folder
from edl.jobs.snapshot import Counts, InstanceLoad, Row, Snapshot
from sqlflow_edl.backends.base import JobDetails
from sqlflow_edl.backends.find import find
from sqlflow_edl.backends.report import report
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.jobs import job
from sqlflow_edl.cli.main import main
from sqlflow_edl.display.job import live_job
from sqlflow_edl.display.terminal import Capabilities
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


@pytest.mark.soak
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


@pytest.mark.parametrize(
    ("height", "facts", "instances", "servers"),
    [
        (80, 7, [*range(40), *range(10)], [*range(10)]),
        (30, 7, [0, 1, 2, 3, 4, 5, 6, 33, 7], [0, 1, 2, 3, 4, 5, 7]),
        (12, 1, [33, 7], [7]),
    ],
)
def test_a_low_terminal_has_the_most_important_lines(
    height: int, facts: int, instances: list[int], servers: list[int]
) -> None:
    rows = [Row(f"worker-{n}", "worker", 0, "running") for n in range(40)]
    rows[33] = Row("worker-33", "worker", 1, "ended", note="killed")
    rows += [
        Row(f"ps-{n}", "ps", 0, "running", load=InstanceLoad(), note="hot" * (n == 7)) for n in range(10)
    ]
    created = job_folder.create("train", "SELECT 1 TO TRAIN x")
    snapshot = Snapshot("", "", epoch=1, epochs=2, instances=tuple(rows))
    found = report(created, JobDetails(created.status(), snapshot, tuple(rows)))
    out = io.StringIO()
    Console(file=out, width=100).print(live_job(found, Capabilities(100, True, height=height)))
    shown = out.getvalue().rstrip("\n")
    assert shown.count("\n") < height
    assert "state  " in shown
    about, listed, loads = (each.splitlines()[1:] for each in shown.split("\n\n"))
    assert [int(line.split()[0].partition("-")[2]) for line in listed[:-1]] == instances
    assert [int(line.split()[0][3:]) for line in loads if "more" not in line] == servers
    assert len([line for line in about if "more" not in line]) == facts
    more = (7 - facts, 50 - len(instances), 10 - len(servers))
    assert [int(found) for found in re.findall(r"(\d+) more", shown)] == [*filter(None, more)]


def test_ctrl_c_ends_the_view_not_the_job(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = job_folder.create("train", "SELECT 1 TO TRAIN x")
    monkeypatch.setattr(time, "sleep", lambda _: signal.raise_signal(signal.SIGINT))
    assert job.watch(find(running.id), terminal) == exit_codes.INTERRUPTED
    assert f"job {running.id} continues" in capsys.readouterr().err
    assert running.status().is_alive


def test_only_a_terminal_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", job_folder.create("train").id, "--watch"]) == exit_codes.USAGE
    assert "sqlflow attach" in capsys.readouterr().err
