"""Forked workers really train: nothing that a framework needs was lost in the fork."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.jobs import job_folder
from edl.spec import Rows
from tests.edl.cluster.local.conftest import CAST, Stage
from tests.edl.programs import FRAMEWORKS, pin, simple
from tests.edl.run.conftest import line


def training(framework: str) -> str:
    """The folder of a job that is ready to run."""
    job = job_folder.create("train")
    (job.rows / "pinned.json").write_bytes(msgspec.json.encode(pin(job.rows, line(200))))
    simple(job.program, framework, rows=Rows(True, 200, 150, 50), epochs=30, batch_size=10)
    return str(job.path)


@pytest.mark.soak  # the jobs of `end_to_end` train in forked workers too
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_forked_workers_train(
    stage: Stage, framework: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time and one after them, all of one forkserver, and all with the same figures."""
    (tmp_path / "cast.py").symlink_to(CAST / "cast.py")  # without what stands for PyTorch there
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"].replace(str(CAST), str(tmp_path)))
    stage.spec = msgspec.structs.replace(stage.spec, framework=framework, threads=1)
    master = stage.opening()
    pair = [stage.worker(master, f"worker-{number}") for number in range(2)]
    for worker in pair:
        worker.send("train", folder=training(framework))
    figures = [worker.receive() for worker in pair]
    figures.append(stage.worker(master, "worker-2").do("train", folder=training(framework)))
    assert figures[0]["rmse"] < 0.2
    assert figures[0] == figures[1] == figures[2]
