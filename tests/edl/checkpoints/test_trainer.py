"""Checkpoints of a trainer on disk: read as they were written, or named as damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from edl.checkpoints import POSITION
from edl.checkpoints.trainer import (
    TrainerCheckpoint,
    TrainerPosition,
    read_checkpoint,
    read_position,
    verify_checkpoint,
    write_checkpoint,
)
from edl.errors import DamagedError, SpecError

NAME = "000000000007-worker-0-0"
MUSEUM = Path("tests/fixtures/museum/job/checkpoints")
FILES = (POSITION, "weights.safetensors", "state.safetensors", "best.safetensors")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    weights = {"kernel": np.arange(600, dtype=np.float32).reshape(20, 30), "steps": np.array(7)}
    position = TrainerPosition(7, ((1, {"loss": 0.5}),), best=1)
    write_checkpoint(
        tmp_path / NAME, TrainerCheckpoint(position, weights, {"slot": np.ones(3)}, {"kernel": np.ones(2)})
    )
    return tmp_path / NAME


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


def change_floats(path: Path) -> None:
    data = bytearray(path.read_bytes())
    size = min(400, len(data) // 2)
    data[-size:] = np.full(size, 63, np.uint8).tobytes()
    path.write_bytes(data)


def cut_to_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def test_a_checkpoint_has_only_named_files_and_is_read_as_it_was_written(written: Path) -> None:
    assert sorted(path.name for path in written.iterdir()) == sorted(FILES)
    assert verify_checkpoint(written) == 7
    found = read_checkpoint(written)
    assert found.position == TrainerPosition(7, ((1, {"loss": 0.5}),), best=1)
    np.testing.assert_array_equal(found.weights["kernel"], np.arange(600, dtype=np.float32).reshape(20, 30))
    assert found.best is not None


@pytest.mark.parametrize("damage", [flip_a_bit, change_floats, cut_to_half, empty, Path.unlink])
@pytest.mark.parametrize("file", FILES)
def test_a26_every_damage_is_noticed_and_named(
    written: Path, file: str, damage: Callable[[Path], object]
) -> None:
    damage(written / file)
    for read in (read_checkpoint, verify_checkpoint):
        with pytest.raises(DamagedError, match=f"the checkpoint {NAME} is damaged: .*{file}") as caught:
            read(written)
        assert caught.value.checkpoint == NAME


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip_a_bit, r"bytes of weights\.safetensors have changed: its checksum is wrong"),
        (cut_to_half, r"weights\.safetensors has 1,272 of 2,544 bytes"),
        (Path.unlink, r"weights\.safetensors is missing"),
    ],
)
def test_damage_is_described(written: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(written / "weights.safetensors")
    with pytest.raises(DamagedError, match=f"{message}$"):
        read_checkpoint(written)


def test_every_byte_of_the_last_file_is_covered_by_its_checksum_or_by_its_form(written: Path) -> None:
    path = written / POSITION
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(SpecError):
            read_position(written)


def test_a_checkpoint_of_an_earlier_version_has_no_checksums_and_is_read_and_checked_for_its_form(
    tmp_path: Path,
) -> None:
    [*_, last] = sorted(MUSEUM.iterdir())
    assert verify_checkpoint(last) == 150
    assert read_checkpoint(last).position.step == 150
    copy = tmp_path / last.name
    copy.mkdir()
    for path in last.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    cut_to_half(copy / "weights.safetensors")
    with pytest.raises(DamagedError, match=r"is damaged: weights\.safetensors: the weights are damaged"):
        verify_checkpoint(copy)


def test_a26_a_checkpoint_of_another_version_is_not_called_damaged(written: Path) -> None:
    (written / POSITION).write_bytes(msgspec.msgpack.encode(TrainerPosition(7, version=9)))
    with pytest.raises(SpecError, match="is of version 9, not 3") as caught:
        read_checkpoint(written)
    assert not isinstance(caught.value, DamagedError)
