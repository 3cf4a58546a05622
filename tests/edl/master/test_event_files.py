"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from edl.master.reporting.event_files import EventFile, crc32c
from tests.edl import curves


def test_a_checksum_follows_rfc_3720() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"") == 0


def test_what_is_written_is_what_tensorboard_reads(tmp_path: Path) -> None:
    file = EventFile(tmp_path, "1", 0)
    file.write(1, {"train/loss": 0.5, "train/größe": -2.0})
    file.write(300, {"train/loss": 0.25})
    file.write(2**40, {"train/loss": 1e300, "workers": 3})
    file.close()
    assert curves.read(tmp_path) == {
        "train/loss": [(1, 0.5), (300, 0.25), (2**40, math.inf)],
        "train/größe": [(1, -2.0)],
        "workers": [(2**40, 3.0)],
    }


def test_a_later_file_makes_void_what_it_goes_back_behind(tmp_path: Path) -> None:
    first, later = EventFile(tmp_path, "1", 0), EventFile(tmp_path, "2", 20)
    for step in (10, 20, 30):
        first.write(step, {"loss": step})
    later.write(25, {"loss": 1})
    later.restart(22)
    later.write(24, {"loss": 2})
    for file in (first, later):
        file.close()
    assert curves.read(tmp_path) == {"loss": [(10, 10.0), (24, 2.0)]}


def test_the_user_alone_can_read_it(tmp_path: Path) -> None:
    EventFile(tmp_path / "curves", "1", 0).close()
    (path,) = (tmp_path / "curves").iterdir()
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_half_an_event_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = EventFile(tmp_path, "1", 0)
    file.write(1, {"loss": 1})
    with monkeypatch.context() as patch:
        write = os.write
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[: len(data) // 2]))
        with pytest.raises(OSError, match="only a part"):
            file.write(2, {"loss": 2})
    file.close()
    assert curves.read(tmp_path) == {"loss": [(1, 1.0)]}
