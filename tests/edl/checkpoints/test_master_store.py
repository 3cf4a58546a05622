"""Files of checkpoints arrive in pieces, are there as a whole or not at all, and take no more room than there is."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from edl.checkpoints import GoneError
from edl.checkpoints.master_store import PIECE, Keeper, Sent
from edl.errors import JobError, SpecError

DATA = bytes(range(256)) * 10


def sent(data: bytes = DATA, *, name: str = "7-a", file: str = "weights.safetensors") -> Sent:
    return Sent(name, file, len(data), zlib.crc32(data))


def test_a_file_that_came_in_pieces_is_read_in_pieces(tmp_path: Path) -> None:
    keeper, data = Keeper(tmp_path), DATA * (2 * PIECE // len(DATA)) + b"the end"
    upto = 0
    while upto < len(data):
        assert keeper.files().get("7-a", []) == []
        upto = keeper.keep(sent(data), upto, data[upto : upto + PIECE])
    assert keeper.files() == {"7-a": ["weights.safetensors"]}
    found = b""
    while len(found) < len(data):
        piece = keeper.read("7-a", "weights.safetensors", len(found))
        assert (piece.size, piece.crc) == (len(data), zlib.crc32(data))
        found += piece.data
    assert found == data


def test_a_piece_that_is_repeated_or_comes_too_early_changes_nothing(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    assert keeper.keep(sent(), 0, DATA[:100]) == 100
    assert keeper.keep(sent(), 0, DATA[:100]) == 100
    assert keeper.keep(sent(), 200, DATA[200:]) == 100
    assert keeper.keep(sent(), 100, DATA[100:]) == len(DATA)
    assert keeper.keep(sent(), 0, DATA[:100]) == len(DATA)
    assert keeper.read("7-a", "weights.safetensors", 0).data == DATA


def test_an_empty_file_is_kept(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    assert keeper.keep(sent(b""), 0, b"") == 0
    assert keeper.read("7-a", "weights.safetensors", 0).data == b""


def test_another_file_of_the_name_takes_the_place_of_what_was_begun(tmp_path: Path) -> None:
    keeper, other = Keeper(tmp_path), DATA[::-1]
    keeper.keep(sent(), 0, DATA[:100])
    assert keeper.keep(sent(other), 100, other[100:]) == 0
    assert keeper.keep(sent(other), 0, other) == len(other)
    assert keeper.read("7-a", "weights.safetensors", 0).data == other


def test_the_next_master_on_the_same_disk_has_what_was_whole_and_begins_the_rest_anew(tmp_path: Path) -> None:
    before = Keeper(tmp_path)
    before.keep(sent(file="whole"), 0, DATA)
    before.keep(sent(file="half"), 0, DATA[:100])
    after = Keeper(tmp_path)
    assert after.files() == {"7-a": ["whole"]}
    assert after.read("7-a", "whole", 0).crc == zlib.crc32(DATA)
    assert after.keep(sent(file="half"), 100, DATA[100:]) == 0
    assert after.keep(sent(file="half"), 0, DATA) == len(DATA)


def test_what_came_damaged_is_refused_and_may_come_again(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    for damaged in (DATA[:-1] + b"?", DATA + b"more"):
        with pytest.raises(JobError, match=r"weights\.safetensors of the checkpoint 7-a arrived damaged"):
            keeper.keep(sent(), 0, damaged)
    assert keeper.files() == {"7-a": []}
    assert keeper.keep(sent(), 0, DATA) == len(DATA)


def test_what_there_is_no_room_for_is_refused_with_figures_until_something_is_removed(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, most=3000)
    keeper.keep(sent(), 0, DATA)
    with pytest.raises(
        JobError, match=r"no room for the checkpoint 8-a: .* has 2,560 bytes, and 440 are left"
    ):
        keeper.keep(sent(name="8-a"), 0, DATA)
    keeper.remove("7-a")
    assert keeper.keep(sent(name="8-a"), 0, DATA) == len(DATA)


def test_what_was_removed_is_gone_though_it_was_half_sent(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.keep(sent(), 0, DATA)
    keeper.keep(sent(file="half"), 0, DATA[:100])
    keeper.remove("7-a")
    with pytest.raises(GoneError):
        keeper.read("7-a", "weights.safetensors", 0)
    assert keeper.keep(sent(file="half"), 100, DATA[100:]) == 0


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/x", "a/b", "a\0", "a\n", ".hidden"])
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    keeper = Keeper(tmp_path / "kept")
    (tmp_path / "x").write_bytes(b"of somebody else")
    for do in (
        lambda: keeper.keep(sent(name=name), 0, DATA),
        lambda: keeper.keep(sent(file=name), 0, DATA),
        lambda: keeper.read(name, "x", 0),
        lambda: keeper.read("7-a", name, 0),
        lambda: keeper.remove(name),
    ):
        with pytest.raises(SpecError, match="is not a file of a checkpoint"):
            do()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
