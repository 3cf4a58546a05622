"""Layers of the code, and modules that load late."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
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


@cache
def names_in(module: Path) -> set[str]:
    """Names that can be imported from the module, and a star if nobody knows them."""
    source = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    found = {path.stem for path in module.glob("*")}
    if not source.exists():
        return found
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found | {"*"} if "__getattr__" in found or module.name.endswith("_pb2") else found


@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_what_is_imported_is_there(repository: Path, folder: str) -> None:
    """Also in modules that no run of the tests reads, of the soak and of benchmarks; mypy reads the packages only."""
    roots = {
        "edl": repository / "runtime",
        **dict.fromkeys(("sqlflow_edl", "tests", "benchmarks"), repository),
    }
    missing = []
    for path in (repository / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if (root := roots.get(module.partition(".")[0])) is not None:
                names = names_in(root.joinpath(*module.split(".")))
                missing += [
                    f"{path}: {module}.{each.name}" for each in node.names if not {each.name, "*"} & names
                ]
    assert missing == []
