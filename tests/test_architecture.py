"""The layers of the code, what may be imported when, and what a wheel must carry."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FRAMEWORKS = {"keras", "tensorflow", "torch"}


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
    "module", ["sqlflow_edl.session", "edl.worker", "edl.instance.client", "edl.models.registry"]
)
def test_the_client_never_imports_a_framework(module: str) -> None:
    assert not modules_after(f"import {module}") & FRAMEWORKS


def modules_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.py")}


def test_a_wheel_compiles_a_statement_and_renders_an_object_without_the_checkout(
    repository: Path, tmp_path: Path
) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(tmp_path),
            str(repository),
        ],
        capture_output=True,
        check=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith(("tests/", "samples/"))]
        missing = modules_of(repository / "runtime") - set(archive.namelist())
        assert not missing
        archive.extractall(tmp_path / "installed")
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path / 'installed')!r})\n"
        "import edl, sqlflow_edl\n"
        "with sqlflow_edl.connect('duckdb:') as session:\n"
        "    text = 'SELECT i AS a, 2.5::DOUBLE * i AS b FROM range(9) AS t(i) TO TRAIN DNNRegressor LABEL b INTO m'\n"
        "    [compiled] = session.compile(text)\n"
        "from sqlflow_edl.kubernetes.rendering import render\n"
        "assert render('service', metadata={}, selector={}, port=1)['kind'] == 'Service'\n"
        "print(edl.__file__, compiled.program.files['model.py'].decode())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(tmp_path / "installed"))
    assert 'fc.standardize("a"' in run.stdout
