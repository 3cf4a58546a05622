"""Curves that outlive the pod of their master."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.master.reporting import tensorboard
from edl.master.reporting.tensorboard import CurveCopies
from tests.edl.cluster.local.conftest import wait_until

fsspec = pytest.importorskip("fsspec")


@pytest.mark.parametrize("place", ["{}/volume/tensorboard/a", "memory://bucket/tensorboard/a"])
def test_a_file_that_grows_is_kept_as_it_is_at_the_end(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "COPY_SECS", 0.001)
    folder, place = tmp_path / "tensorboard", place.format(tmp_path)
    folder.mkdir()
    notes: list[str] = []
    copies = CurveCopies(folder, place, notes.append)
    (folder / "events.1").write_bytes(b"one")
    files, root = fsspec.core.url_to_fs(place)
    wait_until(lambda: files.exists(f"{root}/events.1"))
    with (folder / "events.1").open("ab") as file:
        file.write(b", two")
    (folder / "events.2").write_bytes(b"three")
    copies.close()
    assert [files.cat_file(f"{root}/events.{number}") for number in (1, 2)] == [b"one, two", b"three"]
    assert notes == []


def test_a_place_that_takes_nothing_is_told_once_and_costs_the_curves_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "COPY_SECS", 0.001)
    (tmp_path / "file").touch()
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "tensorboard" / "events.1").touch()
    notes: list[str] = []
    copies = CurveCopies(tmp_path / "tensorboard", f"{tmp_path}/file/tensorboard", notes.append)
    wait_until(lambda: notes != [])
    copies.close()
    assert len(notes) == 1
    assert notes[0].startswith(f"the curves of the job cannot be copied to {tmp_path}/file/tensorboard: ")
