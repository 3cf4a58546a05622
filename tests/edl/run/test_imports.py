"""Frameworks load where models run, gRPC where instances call each other, and both nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edl.run.training_client import TrainingProcess
from edl.spec import Rows
from tests.edl.programs import simple
from tests.edl.run.conftest import line, log, new_job

FRAMEWORKS = {"keras", "tensorflow", "torch"}


MODULES = [
    "edl.run.training_client",
    "edl.frameworks",
    "edl.program",
    "edl.worker.trainer",
    "edl.worker.inference",
    "edl.run.job_runner",
    "edl.cli.commands",
]


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """The packages that each of the modules loads, imported one after another by one process."""
    script = (
        "import importlib, sys\n"
        "for module in sys.argv[1:]:\n"
        "    before = {*sys.modules}\n"
        "    importlib.import_module(module)\n"
        "    print(*{name.partition('.')[0] for name in sys.modules.keys() - before})\n"
    )
    command = [sys.executable, "-c", script, *MODULES]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(MODULES, (set(line.split()) for line in run.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("module", MODULES)
def test_the_loop_and_the_instances_import_neither_frameworks_nor_grpc(
    module: str, loaded: dict[str, set[str]]
) -> None:
    assert not loaded[module] & (FRAMEWORKS | {"grpc"})


def test_a_client_imports_neither_frameworks_nor_arrow(loaded: dict[str, set[str]]) -> None:
    assert MODULES[0] == "edl.run.training_client"
    assert not loaded[MODULES[0]] & (FRAMEWORKS | {"numpy", "pyarrow", "duckdb"})


@pytest.mark.soak
def test_preparing_one_framework_leaves_the_other_alone(process: TrainingProcess, tmp_path: Path) -> None:
    text = f"\nimport sys\n\nprint('loaded:', *sorted({FRAMEWORKS} & sys.modules.keys()))\n"
    program, job = simple(tmp_path / "program", rows=Rows(True, 20, 20, 0), append=text), new_job(line(20))
    process.run(program, job.path, lambda event: None)
    assert "loaded: torch\n" in log(job)
