"""`sqlflow checkpoints` is `edl checkpoints` for a job of a statement; see `tests.edl.cli.test_checkpoints`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.museum import interrupted


def test_checkpoints_are_listed_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = interrupted.unpack(tmp_path)
    assert main(["checkpoints", job.id, "--verify"]) == exit_codes.OK
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()[1:]] == ["sound"] * 3
    [*_, newest] = sorted(job.checkpoints.iterdir())
    (newest / "weights.safetensors").unlink()
    assert main(["checkpoints", job.id[-6:], "--verify"]) == exit_codes.FAILED
    printed = capsys.readouterr()
    assert "damaged: weights.safetensors is missing" in printed.out
    assert f"1 of 3 checkpoints of job {job.id} cannot be resumed from" in printed.err
