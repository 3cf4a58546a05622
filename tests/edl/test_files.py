"""Files that are replaced as a whole, and what is on disk when a call returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edl.checkpoints.folder import SharedFolder
from edl.files import check_room, replace_file, replacing
from edl.master.state_store import FileStateStore
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Mode, Shard, Version
from edl.ps.update_log import UpdateLog


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files and folders that are flushed to disk, and those that files are renamed to, in their order."""
    found: list[str] = []
    flush, rename = os.fsync, os.rename

    def noted(file: int) -> None:
        found.append(Path(f"/proc/self/fd/{file}").readlink().name)
        flush(file)

    def renamed(self: Path, target: Path) -> Path:
        found.append(f"is {target.name}")
        rename(self, target)
        return target

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Path, "replace", renamed)
    return found


def test_a_file_is_whole_and_no_part_of_it_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "status.json"
    replace_file(path, b"one")
    assert path.stat().st_mode & 0o777 == 0o600

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"two")
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"one"]


def test_a_durable_file_is_on_disk_before_it_has_its_name_and_its_name_when_the_call_returns(
    tmp_path: Path, flushed: list[str]
) -> None:
    replace_file(tmp_path / "plain", b"")
    replace_file(tmp_path / "durable", b"", durable=True)
    partial, *others = flushed[1:]
    assert flushed[0] == "is plain"
    assert partial.startswith("durable.")
    assert others == ["is durable", tmp_path.name]


def _state(folder: Path) -> None:
    store = FileStateStore(folder / "state")
    store.write(b"")
    store.close()


def _manifest(folder: Path) -> None:
    (folder / "1").mkdir()
    manifest = manifests.manifest_of("1", Version(), Mode(), [Shard(0, "server-0.safetensors")])
    manifests.write_manifest(SharedFolder(folder), "1", manifest)


def _log(folder: Path) -> None:
    UpdateLog(folder / "updates" / "server-0", 1, 0, synced=True).close()


@pytest.mark.parametrize(
    ("write", "names"),
    [(_state, {"."}), (_manifest, {".", "1"}), (_log, {".", "updates", "server-0", "000001-000000"})],
)
def test_the_names_of_what_survives_a_crash_are_on_disk(
    write: Callable[[Any], None], names: set[str], tmp_path: Path, flushed: list[str]
) -> None:
    write(tmp_path)
    folders = {tmp_path.name if name == "." else name for name in names}
    assert folders <= set(flushed)
    assert flushed[-1] in folders


def test_a_file_that_is_being_written_replaces_the_older_one_at_the_end(tmp_path: Path) -> None:
    file, link = tmp_path / "m.zip", tmp_path / "link.zip"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    with pytest.raises(ValueError), replacing(link) as partial:
        partial.write_text("ha")
        raise ValueError
    assert file.read_text() == "old"
    with replacing(link) as partial:
        partial.write_text("new")
        assert file.read_text() == "old"
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert {path.name for path in tmp_path.iterdir()} == {"m.zip", "link.zip"}


def test_a_device_is_written_and_not_replaced() -> None:
    device = Path("/dev/full")
    check_room(device, 1)
    with replacing(device) as path, pytest.raises(OSError, match="No space left"), path.open("wb") as file:
        file.write(b"x")
        file.flush()
    assert device.is_char_device()


def test_a_replaced_file_is_on_disk_before_its_name(tmp_path: Path, flushed: list[str]) -> None:
    with replacing(tmp_path / "m.zip") as partial:
        partial.write_text("new")
    assert flushed == [partial.name, "is m.zip", tmp_path.name]
