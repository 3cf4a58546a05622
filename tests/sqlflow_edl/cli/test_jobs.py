"""`sqlflow jobs`, and what all commands on jobs have in common."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from edl.data.pinned import write_pinned
from edl.data.source import Pinned, PinnedTable
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, Process, RunSpec
from edl.jobs.job_folder import KEPT, State
from edl.jobs.snapshot import WAITING, Row, Snapshot
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.arguments import duration
from sqlflow_edl.cli.main import main


def test_jobs_are_listed_with_their_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs"]) == exit_codes.OK
    assert capsys.readouterr().err == "0 jobs\n"
    job = job_folder.create("train", "SELECT 1 TO TRAIN x")
    assert main(["jobs", "--format", "json"]) == exit_codes.OK
    captured = capsys.readouterr()
    [found] = json.loads(captured.out)
    assert (found["job"], found["state"], found["statement"]) == (job.id, "running", "SELECT 1 TO TRAIN x")
    assert captured.err == "1 job\n"


@pytest.mark.parametrize(("state", "limited"), [("interrupted", True), ("paused", False)])
def test_tables_that_jobs_keep_in_a_server_are_named(
    state: State, limited: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_folder.create("train", "SELECT 1 TO TRAIN x")
    ClusterFolder(job.path).write_run_spec(RunSpec("torch"))
    table = PinnedTable("`shop`.`sqlflow_edl_pinned_1`", "place")
    write_pinned(job.rows, Pinned("mysql://ann@db/shop", "SELECT 1", "", 1, (), "", 0, False, table))
    assert main(["jobs"]) == exit_codes.OK
    assert capsys.readouterr().err == "1 job\n"
    job.end(state, "")
    until = f" until {datetime.now(UTC).date() + KEPT}" if limited else ""  # a run may have begun yesterday
    assert main(["jobs"]) == exit_codes.OK
    assert capsys.readouterr().err == (
        f"1 job\njob {job.id} keeps the table {table.name} of mysql://ann@db/shop{until}, to be resumed; when it "
        "is resumed or cancelled, the next session there drops the table\n"
    )


def test_a_job_that_has_no_slot_waits_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("train")
    folder = ClusterFolder(job.path)
    folder.write_process("supervisor", Process.of(os.getpid()))  # there is a folder then
    for state, wanted in ((WAITING, WAITING), ("running", "running")):
        rows = Row("worker-0", "worker", 0, state), Row("worker-1", "worker", 0, WAITING)
        Snapshot("", "", instances=rows).write(folder.snapshot)
        assert main(["jobs", "--format", "json"]) == exit_codes.OK
        assert json.loads(capsys.readouterr().out)[0]["state"] == wanted
        assert main(["job", job.id, "--format", "json"]) == exit_codes.OK
        report = json.loads(capsys.readouterr().out)
        assert report["state"] == wanted
        assert [row["state"] for row in report["instances"][2:]] == [state, WAITING]


@pytest.mark.variants(2)
@pytest.mark.parametrize("command", ["job", "logs", "attach", "resume", "scale --workers 2", "cancel"])
def test_an_unknown_job_is_answered_with_the_nearest_one(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_folder.create("train")
    assert main([*command.split(), job.id[:-1] + "?"]) == exit_codes.FAILED
    assert f"did you mean {job.id}?" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.parametrize("command", ["jobs", "job", "logs", "scale --workers 2", "cancel"])
def test_the_commands_need_no_data_source_and_load_little(command: str) -> None:
    job = job_folder.create("train")
    job.end("done")
    code = (
        "import sys; from sqlflow_edl.cli.main import main; main(sys.argv[1:])\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    arguments = [command] if command == "jobs" else [*command.split(), job.id]
    run = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert not {"duckdb", "sqlglot", "pyarrow", "numpy"} & set(run.stdout.splitlines()[-1].split())


def test_jobs_that_ended_long_ago_are_removed_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    old, new, paused, runs = (job_folder.create("train") for _ in range(4))
    for job, state in ((old, "failed"), (new, "done"), (paused, "paused")):
        job.end(state)  # type: ignore[arg-type]
    for job in (old, paused):
        job.update(ended="2020-01-01T00:00:00+00:00")
    assert main(["jobs", "--remove-after", "30d", "--format", "csv"]) == exit_codes.OK
    said = capsys.readouterr()
    assert "removed 1 job with logs\n" in said.err
    assert not old.path.exists()
    assert [job.id in said.out for job in (new, paused, runs)] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90.0), ("45m", 2700.0), ("1.5h", 5400.0), ("1d", 86_400.0), ("10", 10.0)]
)
def test_a_time_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "2x", "0", "-1h", "infd", "nan", "1 h 2", "1e15d"])
def test_what_is_no_time_is_a_wrong_command_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["jobs", f"--remove-after={text}"])
    assert "is not a time from a second to 100 years, such as 90s, 45m, 2h or 1d" in capsys.readouterr().err
