"""Frameworks load where models run, gRPC where instances call each other, and both nowhere else."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = {"keras", "tensorflow", "torch"}


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "edl.frameworks",
        "edl.program",
        "edl.worker.trainer",
        "edl.worker.evaluation.inference",
        "edl.run.job_runner",
        "edl.cli.commands",
    ],
)
def test_the_loop_and_the_instances_import_neither_frameworks_nor_grpc(module: str) -> None:
    assert not loaded_after(f"import {module}") & (FRAMEWORKS | {"grpc"})


def test_a_client_imports_neither_frameworks_nor_arrow() -> None:
    assert not loaded_after("import edl.run.training_client") & (FRAMEWORKS | {"numpy", "pyarrow", "duckdb"})


def test_preparing_one_framework_leaves_the_other_alone() -> None:
    assert loaded_after("from edl import frameworks\nframeworks.prepare('torch', 1)") & FRAMEWORKS == {
        "torch"
    }
