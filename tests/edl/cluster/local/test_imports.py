"""What watches over a job loads nothing heavy: a master must be back in a moment."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"keras", "tensorflow", "torch", "pyarrow", "numpy", "grpc", "duckdb", "sqlglot"}


MODULES = [
    "cluster.local." + name
    for name in ("supervisor", "standby", "cluster", "client", "forkserver", "instance_process")
] + ["jobs.snapshot"]


def test_importing_it_loads_nothing_heavy() -> None:
    script = "\n".join(["import sys", *(f"import edl.{module}" for module in MODULES)])
    script += "\nprint(*{name.partition('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())
