"""Files that are taken away from the packages of an image, by the list runtime/requirements/unused.txt."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import msgspec
import pytest


@pytest.fixture
def prune(repository: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(repository / "runtime" / "requirements")
    return importlib.import_module("prune")


def files(site: Path, *names: str) -> None:
    for name in names:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def left(site: Path) -> set[str]:
    return {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}


def test_what_the_list_removes_goes_and_all_else_stays(prune: ModuleType, tmp_path: Path) -> None:
    files(tmp_path, "a/b/tests/deep/x.py", "a/tests/y.py", "a/z.py", "a/bin/kept", "a/bin/gone", "b/tests.py")
    prune.prune(
        tmp_path, "# a comment\n\nremove **/tests\nremove a/tests/y.py\nremove a/bin/*\nkeep a/bin/kept\n"
    )
    assert left(tmp_path) == {"a/z.py", "a/bin/kept", "b/tests.py"}


@pytest.mark.skipif(shutil.which("strip") is None, reason="strip is not installed")
def test_a_library_without_symbols_is_loaded_as_before(prune: ModuleType, tmp_path: Path) -> None:
    own = Path(msgspec.__file__).parent
    shutil.copytree(own, tmp_path / "msgspec")
    prune.prune(tmp_path, "strip msgspec/*.so\n")
    [library] = (tmp_path / "msgspec").glob("_core*.so")
    [before] = own.glob("_core*.so")
    assert library.stat().st_size <= before.stat().st_size
    assert library.stat().st_mode == before.stat().st_mode
    text = "import msgspec, sys; sys.stdout.write(msgspec.__file__ + str(msgspec.json.decode(b'[1]')))"
    said = subprocess.run(
        [sys.executable, "-c", text],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"{tmp_path}/msgspec/__init__.py[1]"


def test_without_strip_the_files_go_and_it_is_said(
    prune: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    files(tmp_path, "a/x.so", "a/y.h")
    prune.prune(tmp_path, "remove a/*.h\nstrip a/*.so\n")
    assert left(tmp_path) == {"a/x.so"}
    assert "libraries keep their symbols" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["delete a", "remove", "remove /etc", "remove a/../../b"])
def test_a_line_that_is_no_rule_is_refused(prune: ModuleType, line: str) -> None:
    with pytest.raises(ValueError, match=f"line 2: '{line}'"):
        list(prune.rules(f"\n{line}\n"))


@pytest.mark.soak
def test_each_line_of_the_list_is_about_a_file_that_is_installed(prune: ModuleType) -> None:
    """A package that has moved its files would keep them otherwise."""
    site = Path(sysconfig.get_path("purelib"))
    made_by_pip = ("__pycache__", "tensorflow/", "pip/", "setuptools/")
    unknown = [
        pattern
        for _, pattern in prune.rules(prune.LIST.read_text(encoding="utf-8"))
        if not any(part in pattern for part in made_by_pip) and next(site.glob(pattern), None) is None
    ]
    assert unknown == []
