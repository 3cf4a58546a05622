"""The scripts of samples/python, run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "samples" / "python").glob("*.py"))
SCRIPTS = [
    path for path in SCRIPTS if path.stem != "stream_elastic"
]  # it reads a folder: tests/edl/extensions/elastic


@pytest.mark.soak
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.stem))
def test_a_script_trains_its_model(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    [accuracy] = [line.split()[-1] for line in done.stdout.splitlines() if "accuracy" in line]
    assert float(accuracy) > 0.9
