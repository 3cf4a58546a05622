"""Name and version of the installed distribution, and commands that install what is missing in its environment.

The commands name the packages of an extra and not the extra: `pip install 'sqlflow-edl[serve]'` works only where pip
finds the project itself again, which no index, moved wheel or deleted checkout promises. The packages stand in the
metadata of the installation.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_NAME = re.compile(r"[^\w.-]")  # what ends the name of a package in a requirement
_GPU_DRIVER = Path("/proc/driver/nvidia/version")
_CPU_INDEX = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
DISTRIBUTION = "sqlflow-edl"
VERSION = "0.1.0"  # of both packages; setup.cfg reads it without importing the module


def install_extras(*extras: str) -> str:
    """Return the command that installs the packages of the extras.

    A process that runs from files without metadata, or with metadata older than the extra, gets the command for a
    checkout.
    """
    packages = [package for extra in extras for package in requirements(extra)]
    return install_packages(*packages or [f".[{','.join(extras)}]"])


def install_packages(*packages: str) -> str:
    """Return the command that installs packages, given as requirements such as `lightgbm>=4.5`."""
    program, options = _installer()
    has_torch = any(_NAME.split(package)[0] == "torch" for package in packages)
    index = _CPU_INDEX if has_torch and _lacks_gpu() else ()
    return f"{program} install {shlex.join([*options, *dict.fromkeys(packages), *index])}"


def _lacks_gpu() -> bool:
    """Return True on Linux without a driver of NVIDIA: the usual PyTorch there has 5 GB of libraries for a GPU."""
    return sys.platform == "linux" and not _GPU_DRIVER.exists()


def requirements(extra: str) -> tuple[str, ...]:
    """Return what the extra requires on this machine, without the requirements of the installation without extras."""
    return tuple(dict.fromkeys(_select_requirements(_read_requirements(), extra)))


@cache
def _read_requirements() -> tuple[Requirement, ...]:
    """Read the requirements in the metadata. It takes milliseconds, which only errors and reports are to pay."""
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    try:
        return tuple(map(Requirement, requires(DISTRIBUTION) or ()))
    except PackageNotFoundError:
        return ()


def _select_requirements(declared: Iterable[Requirement], extra: str) -> Iterator[str]:
    for requirement in declared:
        marker = requirement.marker
        if marker is None or not marker.evaluate({"extra": extra}) or marker.evaluate({"extra": ""}):
            continue
        if requirement.name == DISTRIBUTION:  # an extra of other extras
            for other in sorted(requirement.extras):
                yield from _select_requirements(declared, other)
        else:
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            yield f"{requirement.name}{extras}{requirement.specifier}"


def _installer() -> tuple[str, tuple[str, ...]]:
    """Return the program that installs into this environment, for a shell in the current folder, and its options."""
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx runpip {shlex.quote(prefix.name)}", ()
    if _is_made_by_uv(prefix):  # without pip
        return "uv pip", () if _is_active() else ("--python", _path(prefix))
    pip = Path(sys.executable).with_name("pip")
    return "pip" if _is_active() or not pip.exists() else shlex.quote(_path(pip)), ()


def _is_made_by_uv(prefix: Path) -> bool:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.partition("=")[0].strip() == "uv" for line in lines)


def _is_active() -> bool:
    """Return True if a shell finds the programs of this environment first."""
    python = Path(sys.executable)
    executable = shutil.which(python.name)
    return executable is not None and Path(executable).parent == python.parent


def _path(path: Path) -> str:
    """Return the path, relative if it is below the current folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
