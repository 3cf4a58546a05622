"""What watches over a job loads nothing heavy: a master must be back in a moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"keras", "tensorflow", "torch", "pyarrow", "numpy", "grpc", "duckdb", "sqlglot"}


@pytest.mark.parametrize(
    "module",
    [
        "cluster.local." + name
        for name in ("supervisor", "cluster", "client", "forkserver", "instance_process")
    ]
    + ["jobs.snapshot"],
)
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    script = f"import sys, edl.{module}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())
