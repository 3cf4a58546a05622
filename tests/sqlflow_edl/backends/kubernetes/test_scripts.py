"""`edl run --on kubernetes`: scripts in pods, from the command line to their ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.jobs import job_folder
from sqlflow_edl.cli.main import main as sqlflow
from tests.edl.cli.test_script import PLAIN
from tests.kubernetes.process import Cluster

ELASTIC = Path(__file__).parents[3] / "edl" / "extensions" / "elastic" / "script.py"
SMALL = ("master_cpu=0.1", "worker_cpu=0.2", "worker_cpu_limit=1", "grace_secs=2")


def edl_run(namespace: str, *arguments: object) -> list[str]:
    """The command of a script in pods."""
    on = ["--on", "kubernetes", "--namespace", namespace, "--image", "edl:test"]
    settings = [f"--set={each}" for each in SMALL]
    return [sys.executable, "-m", "edl.cli.main", "run", *on, *settings, *map(str, arguments)]


def ran(namespace: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        edl_run(namespace, *arguments), capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.soak
def test_a_loop_of_edl_elastic_goes_on_in_pods_when_a_worker_is_killed(
    namespace: str, tmp_path: Path
) -> None:
    kills = json.dumps([[1, 0, 1]])
    run = ran(namespace, "--workers", 2, ELASTIC, tmp_path, kills, 0, 0, 0)
    assert run.returncode == exit_codes.OK, run.stderr
    weights = json.loads((tmp_path / "weights").read_text())
    assert weights[:4] == pytest.approx([0.991228, 2.033046, 3.034909, 4.122683], abs=1e-5)  # of one process
    both = re.findall(
        r"^\[(.*)\] in group \d+ of (?:worker-0, worker-1|worker-1, worker-0)$", run.stdout, re.M
    )
    assert {*both} == {"worker-0", "worker-1"}
    assert "worker-1 killed by SIGKILL" in run.stderr
    assert "epoch 5 done at step 65" in run.stderr


@pytest.mark.soak
def test_a_script_for_torchrun_meets_in_pods_and_all_restart_when_one_is_killed(
    namespace: str, tmp_path: Path
) -> None:
    script = tmp_path / "plain.py"
    script.write_text(PLAIN, encoding="utf-8")
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n", encoding="utf-8")
    run = ran(namespace, "--workers", 2, script, "--epochs", 3)
    assert run.returncode == exit_codes.OK, run.stderr
    lines = [line.partition("] ") for line in run.stdout.splitlines()]
    said = sorted((name, json.loads(text)) for name, _, text in lines if text.startswith("["))
    reasons = [words[4] for _, words in said if words[3]]
    assert all(reason.startswith("worker-1 was killed") for reason in reasons), reasons
    said = [(name, [*words[:4], bool(words[4]), *words[5:]]) for name, words in said]
    assert said == [
        (
            f"[worker-{rank}",
            [rank, 2, [0, 0], restarts, restarts > 0, ["--epochs", "3"], "__main__", "beside"],
        )
        for rank in range(2)
        for restarts in range(2)
    ]
    assert "restarts: 1" in run.stderr


@pytest.mark.soak
def test_a_script_that_fails_fails_the_command_with_its_log(namespace: str, tmp_path: Path) -> None:
    script = tmp_path / "failing.py"
    script.write_text("import sys\nprint('before')\nsys.exit(7)\n", encoding="utf-8")
    run = ran(namespace, "--max_restarts", 0, script)
    assert run.returncode == exit_codes.FAILED
    assert run.stdout.splitlines() == ["[worker-0] before"]
    assert "error: worker-0 failed (exit code 7)\nhint: its log: sqlflow logs" in run.stderr


@pytest.mark.soak
def test_a_detached_script_is_seen_and_cancelled_and_its_arguments_are_nowhere_but_in_the_secret(
    kubernetes: Cluster, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "waiting.py"
    script.write_text("import signal\nprint('on')\nsignal.pause()\n", encoding="utf-8")
    assert ran(namespace, "--detach", script, "--password", "geheim").returncode == exit_codes.OK
    [job] = job_folder.jobs()
    for command in (["scale", job.id, "--workers", "3"], ["pause", job.id]):
        assert sqlflow(command) == exit_codes.FAILED
        assert "runs a script" in capsys.readouterr().err
    for kind in ("configmaps", "pods"):
        assert "geheim" not in json.dumps(kubernetes.ask("GET", f"/api/v1/namespaces/{namespace}/{kind}"))
    assert not any("geheim" in path.read_text() for path in job.path.rglob("*.json"))
    assert sqlflow(["cancel", job.id]) == exit_codes.OK
    assert job.status().state == "cancelled"


@pytest.mark.soak
def test_ctrl_c_cancels_the_job(namespace: str, tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text("import signal\nprint('on', flush=True)\nsignal.pause()\n", encoding="utf-8")
    pipe = subprocess.PIPE
    with subprocess.Popen(edl_run(namespace, script), stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[worker-0] on\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == exit_codes.INTERRUPTED
    [job] = job_folder.jobs()
    assert job.status().state == "cancelled"


def test_a_dry_run_shows_neither_arguments_nor_more_files_than_travel(
    namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train.py", "beside.py", "rows.csv", ".secret.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    script = str(tmp_path / "train.py")
    assert main(["run", "--on", "kubernetes", "--dry-run", script, "--password", "geheim"]) == exit_codes.OK
    told = capsys.readouterr().out
    assert "geheim" not in told
    assert [name in told for name in ("train.py", "beside.py", "rows.csv", "secret.py")] == [
        True,
        True,
        False,
        False,
    ]
    assert job_folder.jobs() == []
