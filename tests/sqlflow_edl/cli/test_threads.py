"""`--threads`: a command and all processes of its job keep to so many cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main

CORES = "import os; print('cores', len(os.sched_getaffinity(0)))"
COMMAND = [sys.executable, "-m", "sqlflow_edl.cli.main"]
several = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)} | variables
    return subprocess.run(
        [*COMMAND, "run", "--source", "duckdb:", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@several
@pytest.mark.variants(1)
@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_every_process_of_a_job_and_its_database_keep_to_the_cores(way: str, tmp_path: Path) -> None:
    (tmp_path / "tally.py").write_text(CORES)
    if way == "file":
        (tmp_path / ".config" / "sqlflow-edl").mkdir(parents=True)
        (tmp_path / ".config" / "sqlflow-edl" / "config.toml").write_text("threads = 1\n")
    done = run(
        tmp_path,
        *(["--threads", "1"] if way == "option" else []),
        *("-e", "SELECT current_setting('threads') AS duckdb; SELECT 1 AS a TO RUN tally.py"),
        **({"SQLFLOW_THREADS": "1"} if way == "variable" else {}),
        XDG_CONFIG_HOME=str(tmp_path / ".config"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["duckdb", "1"]
    assert "cores 1\n" in done.stderr


def test_a_number_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLFLOW_THREADS", "many")
    with pytest.raises(SystemExit):
        main(["run", "-e", "SELECT 1"])
    assert "argument --threads: 'many' is not a whole number above 0" in capsys.readouterr().err
