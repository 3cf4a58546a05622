"""Layers of the code, and modules that load late."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

FRAMEWORKS = {"keras", "tensorflow", "torch"}
MOST_MODULES = 20


def modules_after(code: str) -> set[str]:
    """The top-level packages that a fresh process has loaded after running `code`."""
    script = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def test_the_import_contracts_hold(repository: Path) -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=repository, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "module",
    [
        "sqlflow_edl",
        "sqlflow_edl.cli.main",
        "sqlflow_edl.console.shell",
        "sqlflow_edl.notebook",
        "edl",
        "edl.spec",
        "edl.errors",
    ],
)
def test_importing_the_front_door_loads_nothing_heavy(module: str) -> None:
    heavy = {"sqlglot", "lark", "duckdb", "pyarrow", "numpy", "jinja2", "rich"} | FRAMEWORKS
    assert not modules_after(f"import {module}") & heavy


@pytest.mark.parametrize(
    "module",
    ["sqlflow_edl.session.session", "edl.worker", "edl.run.training_client", "edl.models.registry.base"],
)
def test_the_client_never_imports_a_framework(module: str) -> None:
    assert not modules_after(f"import {module}") & FRAMEWORKS


def test_no_folder_has_more_modules_than_a_reader_takes_in(repository: Path) -> None:
    modules = [*(repository / "sqlflow_edl").rglob("*.py"), *(repository / "runtime" / "edl").rglob("*.py")]
    counts = Counter(path.parent.relative_to(repository) for path in modules)
    assert {str(folder): count for folder, count in counts.items() if count > MOST_MODULES} == {}
