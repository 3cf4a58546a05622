"""Where the kernels' machine code is kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edl.embeddings.numba_cache import cache_folder

READ = """
import numpy as np
from edl.embeddings import RowTable, TableSpec
print(RowTable(TableSpec("t", 2, "zeros"), 0).read(np.arange(3)))
"""


@pytest.fixture(autouse=True)
def no_folder_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


def test_the_folder_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache_folder()
    assert folder is not None
    assert folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_may_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "sqlflow-edl" / "numba").mkdir(parents=True)
    (tmp_path / "sqlflow-edl" / "numba").chmod(0o777)
    assert cache_folder() is None


@pytest.mark.soak
def test_without_a_folder_tables_work_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert cache_folder() is None
    done = subprocess.run([sys.executable, "-W", "error", "-c", READ], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("0.") == 6


def test_neither_framework_nor_compiler_is_loaded_before_there_is_a_table() -> None:
    code = "import sys, edl.embeddings; print(sorted({'numba', 'tensorflow', 'keras', 'torch'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.soak
def test_code_that_an_image_brings_is_used_from_a_folder_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, own = tmp_path / "image", tmp_path / "own"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(image))
    subprocess.run([sys.executable, "-m", "edl.ps.compile_kernels"], check=True)
    before = machine_code(image)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(own))
    monkeypatch.setenv("EDL_KERNELS", str(image))
    subprocess.run([sys.executable, "-c", READ], check=True, capture_output=True)
    assert machine_code(own) == before == machine_code(image)  # nothing was compiled again


def machine_code(folder: Path) -> dict[str, int]:
    """Path below the folder -> size."""
    return {
        str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()
    }
