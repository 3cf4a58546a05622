"""A job's folder inside a container, from what is mounted there."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.entrypoints.pod import make_folder
from edl.errors import SpecError
from tests.edl.entrypoints.mounted import JOB, mounted

FILES = {"program/model.py": b"# a model", "rows/held-out/pinned.json": b"{}"}


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "cluster")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_folder_has_the_files_and_what_calls_need(tmp_path: Path) -> None:
    folder = make_folder(mounted(tmp_path, FILES, {"mysql://u@h/d": "p"}))
    assert folder.job == tmp_path / "empty" / JOB
    assert contents(folder.job) == FILES
    assert (folder.token(), folder.address()) == ("t0ken", "name.space.svc:50001")
    assert (folder.path / "token").stat().st_mode & 0o777 == 0o600
    assert "p" not in {path.read_text() for path in folder.path.iterdir()}


def test_a_container_that_starts_again_makes_the_same_folder(tmp_path: Path) -> None:
    environment = mounted(tmp_path, FILES, {})
    make_folder(environment)
    folder = make_folder(environment)
    assert contents(folder.job) == FILES


def test_a_file_that_came_in_parts_is_one(tmp_path: Path) -> None:
    parts = {f"rows/big.part-{number:02}": bytes([number]) * 5 for number in range(12)}
    folder = make_folder(mounted(tmp_path, parts, {}))
    assert contents(folder.job) == {"rows/big": b"".join(parts.values())}


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    parts = {"rows/big.part-00": b"a", "rows/big.part-02": b"c"}
    with pytest.raises(SpecError, match=r"a part of rows/big is not mounted: there are \[0, 2\]"):
        make_folder(mounted(tmp_path, parts, {}))


@pytest.mark.parametrize("name", ["EDL_FILES", "EDL_SECRETS", "EDL_JOB", "EDL_MASTER"])
def test_what_is_missing_in_the_environment_is_named(tmp_path: Path, name: str) -> None:
    environment = mounted(tmp_path, FILES, {})
    del environment[name]
    with pytest.raises(SpecError, match=name):
        make_folder(environment)


def test_a_secret_that_is_not_mounted_is_named(tmp_path: Path) -> None:
    environment = mounted(tmp_path, FILES, {})
    (tmp_path / "secrets" / "..data" / "token").unlink()
    with pytest.raises(SpecError, match=r"cannot read .*/secrets/token: No such file"):
        make_folder(environment)


def test_the_script_of_a_job_comes_from_its_secret_and_is_readable_by_its_user_alone(tmp_path: Path) -> None:
    environment = mounted(tmp_path, FILES, {})
    (Path(environment["EDL_SECRETS"]) / "script.json").write_bytes(b"{}")
    folder = make_folder(environment)
    script = folder.job / "script.json"
    assert (script.read_bytes(), script.stat().st_mode & 0o777) == (b"{}", 0o600)
