"""`edl run`: scripts in several workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.jobs import job_folder

PLAIN = """
import json, os, sys
import torch.distributed as dist

import beside

dist.init_process_group("gloo")
rank, restarts = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
seen = [None, None]
dist.all_gather_object(seen, int(os.environ["LOCAL_RANK"]))
reason = os.environ.get("EDL_RESTART_REASON", "")
print(json.dumps([rank, dist.get_world_size(), seen, restarts, reason, sys.argv[1:], __name__, beside.NAME]))
if restarts == 0 and rank == 1:
    os.kill(os.getpid(), 9)
dist.barrier()
dist.destroy_process_group()
"""


def test_a_script_for_torchrun_runs_unchanged_and_all_restart_when_one_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(PLAIN, encoding="utf-8")
    (tmp_path / "beside.py").write_text("NAME = 'beside'\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "edl.cli.main",
        "run",
        "--nproc_per_node",
        "2",
        str(script),
        "--epochs",
        "3",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = [line.partition("] ") for line in ran.stdout.splitlines()]
    said = sorted((name, json.loads(text)) for name, _, text in lines if text.startswith("["))
    assert said == [
        (f"[worker-{rank}", [rank, 2, [0, 1], restarts, reason, ["--epochs", "3"], "__main__", "beside"])
        for rank in range(2)
        for restarts, reason in enumerate(("", "worker-1 was killed by SIGKILL"))
    ]
    assert "restarts: 1" in ran.stderr
    assert job_folder.jobs() == []


@pytest.mark.soak
def test_a_failing_script_ends_the_job_with_its_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "failing.py"
    script.write_text("import sys\nprint('before')\nsys.exit(7)\n", encoding="utf-8")
    assert main(["run", "--max_restarts", "1", str(script)]) == exit_codes.FAILED
    out, err = capsys.readouterr()
    assert out.splitlines() == ["[worker-0] before"] * 2
    assert "error: worker-0 failed (exit code 7) after 1 restart" in err
    (job,) = job_folder.jobs()
    assert (job.status().kind, job.status().state) == ("run", "failed")
    assert not job.can_resume
    assert not (job.path / "script.json").exists()


def test_a_script_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").touch()
    assert main(["run", str(tmp_path / "train")]) == exit_codes.FAILED
    assert "train.py?" in capsys.readouterr().err


def test_a_resumed_job_has_its_own_script_and_is_one_of_a_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--resume", "x", str(tmp_path / "train.py")]) == exit_codes.FAILED
    assert "--resume continues the script of the job" in capsys.readouterr().err
    job = job_folder.create("train")
    assert main(["run", "--resume", job.id]) == exit_codes.FAILED
    assert f"job {job.id} is no script" in capsys.readouterr().err


def test_a_script_that_keeps_no_state_is_not_resumed(capsys: pytest.CaptureFixture[str]) -> None:
    job = job_folder.create("run")
    job.end("died")
    assert main(["run", "--resume", job.id]) == exit_codes.FAILED
    assert f"job {job.id} cannot be resumed: it is not a training" in capsys.readouterr().err
