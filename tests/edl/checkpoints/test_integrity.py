"""Files that are written with checksums, and what is read back from the disk."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import BinaryIO

import pytest

from edl.checkpoints import integrity
from edl.checkpoints.integrity import Part, check_file, check_json, seal_json, write_file
from edl.errors import DamagedError


def pieces(*parts: tuple[int, bytes]) -> list[tuple[int, memoryview]]:
    return [(at, memoryview(data)) for at, data in parts]


def test_pieces_may_come_in_any_order_and_the_checksum_is_of_the_whole_file(tmp_path: Path) -> None:
    part = write_file(tmp_path / "f", pieces((3, b"def"), (0, b"abc")))
    assert (tmp_path / "f").read_bytes() == b"abcdef"
    assert part == Part("f", 6, zlib.crc32(b"abcdef"))
    check_file(tmp_path / "f", part)
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_file_with_a_gap_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="f is read back differently"):
        write_file(tmp_path / "f", pieces((0, b"abc"), (4, b"ef")))
    assert not list(tmp_path.iterdir())


def test_a_file_that_the_disk_returns_differently_does_not_get_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_a_byte(file: BinaryIO) -> None:
        os.ftruncate(file.fileno(), 5)

    monkeypatch.setattr(integrity, "_forget_pages", lose_a_byte)
    with pytest.raises(DamagedError, match="f is read back differently from how it was written"):
        write_file(tmp_path / "f", pieces((0, b"abcdef")))
    assert not list(tmp_path.iterdir())


def test_the_file_is_flushed_before_it_gets_its_name_and_its_name_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: (calls.append("fsync"), fsync(number)))
    monkeypatch.setattr(Path, "replace", lambda path, name: (calls.append("rename"), replace(path, name))[1])
    write_file(tmp_path / "f", pieces((0, b"abc")))
    assert calls == ["fsync", "rename", "fsync"]


def test_an_object_is_sealed_by_its_last_field() -> None:
    sealed = seal_json(b'{"a":1}')
    check_json(sealed, "f")
    check_json(b'{"a":1}', "f")  # an earlier version wrote it
    with pytest.raises(DamagedError, match="bytes of f have changed"):
        check_json(sealed.replace(b"1", b"2", 1), "f")
    for bit in range(8 * len(sealed)):  # also one of the checksum's own field
        changed = bytearray(sealed)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedError, match="its checksum is wrong"):
            check_json(bytes(changed), "f")
