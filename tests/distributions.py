"""The sdist and the wheels of the checkout, and an environment with the wheel installed, made once per test run.

The environment is a fresh one outside of the checkout. The dependencies of the wheel come from the environment of the
tests, by a .pth file: no registry is asked, and the .pth files there, such as that of an editable install, have no
effect.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Folders of the checkout, and what they are called in a wheel.
PACKAGES = {
    "sqlflow_edl": "sqlflow_edl",
    "runtime/edl": "edl",
    "grammar": "sqlflow_edl/grammar",
    "codegen_templates": "sqlflow_edl/codegen_templates",
}
# Files of the extension of JupyterLab, and where they are in an environment.
LABEXTENSION = {
    "install.json": "share/jupyter/labextensions/sqlflow-edl/install.json",
    "package.json": "share/jupyter/labextensions/sqlflow-edl/package.json",
    "highlighting.js": "share/jupyter/labextensions/sqlflow-edl/static/highlighting.js",
}
NOT_DISTRIBUTED = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "demo", "dist", "tests", "benchmarks"
)
TIMEOUT_SECS = 300


@dataclass(frozen=True)
class Archive:
    """sdist: the archive. wheel: the one built from it."""

    sdist: Path
    wheel: Path


@dataclass(frozen=True)
class Installation:
    """A virtual environment with the wheel, in `folder`."""

    folder: Path

    @property
    def packages(self) -> Path:
        [found] = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, command: str, *arguments: str | Path, cwd: Path, stdin: str = "") -> str:
        """Run a command of the environment in `cwd`, and return its standard output.

        Raises AssertionError with all that the command wrote if it fails.
        """
        environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
        run = subprocess.run(
            [self.folder / "bin" / command, *arguments],
            capture_output=True,
            check=False,
            cwd=cwd,
            encoding="utf-8",
            env=environment,
            input=stdin,
            timeout=TIMEOUT_SECS,
        )
        assert run.returncode == 0, (
            f"{command} {arguments} ended with {run.returncode}\n{run.stdout}{run.stderr}"
        )
        return run.stdout


def once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Call `make(folder)` in the first of the processes that ask, while the others wait for it."""
    done = folder / "done"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # what an attempt that failed left
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def built(repository: Path, folder: Path) -> Path:
    """Build the wheel in `folder` as `pip install .` builds it."""

    def make(target: Path) -> None:
        checkout = _copy(repository, target)
        _python("-c", _hooks(checkout), "build_wheel", target / "direct", cwd=checkout)

    [wheel] = once(folder, make).glob("direct/*.whl")
    return wheel


def archived(repository: Path, folder: Path) -> Archive:
    """Build the sdist in `folder`, and the wheel of the sdist."""

    def make(target: Path) -> None:
        checkout = _copy(repository, target)
        _python("-c", _hooks(checkout), "build_sdist", target, cwd=checkout)
        [sdist] = target.glob("*.tar.gz")
        shutil.unpack_archive(sdist, target / "unpacked", filter="data")
        [unpacked] = (target / "unpacked").iterdir()
        _python("-c", _hooks(checkout), "build_wheel", target / "from-sdist", cwd=unpacked)

    made = once(folder, make)
    [sdist], [wheel] = made.glob("*.tar.gz"), made.glob("from-sdist/*.whl")
    return Archive(sdist, wheel)


def installed(wheel: Path, folder: Path) -> Installation:
    """Install the wheel into a fresh environment in `folder`."""

    def make(target: Path) -> None:
        venv.create(target, symlinks=True)
        options = ("-q", "--no-deps", "--no-index", "--no-compile")
        _python("-m", "pip", "--python", target, "install", *options, wheel)
        dependencies = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
        (Installation(target).packages / "dependencies.pth").write_text("\n".join(dependencies))

    return Installation(once(folder, make))


def interpreter(version: str) -> Path | None:
    """Return the Python of a version such as 3.12: this one, one of pyenv, or one that uv finds or may download."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    if found:
        return found[-1]
    uv = (sys.executable, "-m", "uv", "python")
    subprocess.run(
        [*uv, "install", "--quiet", version], capture_output=True, check=False, timeout=TIMEOUT_SECS
    )
    run = subprocess.run([*uv, "find", version], capture_output=True, check=False, encoding="utf-8")
    return Path(run.stdout.strip()) if run.returncode == 0 else None


def installed_from_index(
    python: Path, distribution: Path, extra: str, constraints: Path, folder: Path
) -> Installation:
    """Install a wheel or an sdist with an extra into a fresh environment, whose packages come from the index."""
    uv = (sys.executable, "-m", "uv")
    _run(*uv, "venv", "--quiet", "--no-python-downloads", "--python", python, folder)
    named = f"{distribution}[{extra}]"
    _run(*uv, "pip", "install", "--quiet", "--python", folder, "--constraints", constraints, named)
    return Installation(folder)


def files_of(sdist: Path) -> set[str]:
    """Names of the files of an sdist, without the folder that holds them all."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def _copy(repository: Path, folder: Path) -> Path:
    """Copy the checkout into `folder`: it may hold the leavings of earlier builds."""
    checkout = folder / "checkout"
    shutil.copytree(repository, checkout, ignore=NOT_DISTRIBUTED)
    return checkout


def _hooks(checkout: Path) -> str:
    """A program that calls the hooks of the build backend that its arguments name, each with a folder to build in."""
    declared = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    return (
        f"import os, sys, {declared['build-backend']} as backend\n"
        "for hook, folder in zip(sys.argv[1::2], sys.argv[2::2]):\n"
        "    os.makedirs(folder, exist_ok=True)\n    getattr(backend, hook)(folder)"
    )


def _python(*arguments: str | Path, cwd: Path | None = None) -> None:
    _run(sys.executable, *arguments, cwd=cwd)


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    run = subprocess.run(command, capture_output=True, check=False, cwd=cwd, encoding="utf-8")
    assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
