"""Modules of users' folders: what is imported is what the source says now."""

from __future__ import annotations

import importlib
import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from edl.program.importing import always_compile, is_installed


@pytest.fixture(autouse=True)
def bytecode_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path. Its modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def imported(name: str) -> ModuleType:
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def edit(file: Path, text: str) -> None:
    """Give the file another text of the same size, as if in the same second."""
    before = file.stat()
    file.write_text(text)
    assert file.stat().st_size == before.st_size
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_the_second_of_two_edits_in_a_second_is_imported(folder: Path) -> None:
    module = folder / "edited_twice.py"
    module.write_text("UNITS = 2")
    assert imported("edited_twice").UNITS == 2
    edit(module, "UNITS = 5")
    assert imported("edited_twice").UNITS == 2, "byte code no longer hides an edit: this module is not needed"
    always_compile(folder)
    assert imported("edited_twice").UNITS == 5


def test_modules_of_packages_below_are_compiled_too_and_leave_no_byte_code(folder: Path) -> None:
    package = folder / "package_of_a_user"
    package.mkdir()
    (package / "__init__.py").write_text("from .deep import DEPTH")
    (package / "deep.py").write_text("DEPTH = 1")
    always_compile(folder)
    always_compile(folder)
    assert imported("package_of_a_user").DEPTH == 1
    edit(package / "deep.py", "DEPTH = 7")
    sys.modules.pop("package_of_a_user.deep")
    assert imported("package_of_a_user").DEPTH == 7
    assert not [*folder.rglob("__pycache__")]


def test_what_is_installed_below_is_imported_as_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = folder / "venv" / "site-packages"
    site.mkdir(parents=True)
    (site / "installed_below.py").write_text("VALUE = 1")
    monkeypatch.syspath_prepend(str(site))
    always_compile(folder)
    assert imported("installed_below").VALUE == 1
    assert [*site.rglob("*.pyc")]


def test_a_module_without_source_is_imported_from_its_byte_code(folder: Path) -> None:
    source = folder / "only_compiled.py"
    source.write_text("VALUE = 3")
    py_compile.compile(str(source), str(source.with_suffix(".pyc")))
    source.unlink()
    always_compile(folder)
    assert imported("only_compiled").VALUE == 3


def test_modules_elsewhere_are_imported_as_ever(tmp_path: Path, folder: Path) -> None:
    always_compile(tmp_path / "another")
    (folder / "elsewhere.py").write_text("VALUE = 4")
    assert imported("elsewhere").VALUE == 4
    assert [*folder.rglob("*.pyc")]


def test_python_and_its_packages_are_what_is_installed(tmp_path: Path) -> None:
    assert is_installed(Path(os.__file__))
    assert is_installed(Path(pytest.__file__))
    assert not is_installed(tmp_path / "net.py")
