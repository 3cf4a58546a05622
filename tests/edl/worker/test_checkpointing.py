"""Cuts on disk: complete or not there, kept by count, read back as they were."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from edl.checkpoints import POSITION, STATE, integrity, mark_damaged
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import (
    TrainerCheckpoint,
    TrainerPosition,
    checkpoint_to_resume,
    complete,
    read_checkpoint,
)
from edl.spec import Checkpoints
from edl.tasks.task import Report, Task
from edl.worker.checkpointing import Checkpointer


def cut(step: int, *, best: bool = False) -> TrainerCheckpoint:
    arrays = {"w": np.full((2, 3), step, np.float32)}
    position = TrainerPosition(step, ((1, {"loss": 0.5}),))
    return TrainerCheckpoint(position, arrays, {"slot.0.step": np.array(step)}, arrays if best else None)


class Writer:
    """A checkpointer with a clock in the test's hands, and a master that refers to each checkpoint at once, or not."""

    def __init__(self, folder: Path, when: Checkpoints, writer: str = "worker-0-0") -> None:
        self.now = 0.0
        self.disk = 1
        self.told: list[str] = []
        self.has_master = True
        self._folder = folder
        self.checkpointer = Checkpointer(
            SharedFolder(folder),
            when,
            writer=writer,
            disk=lambda: self.disk,
            begin=lambda name, done: self.told.append(f"begin {name}"),
            on_written=self._written,
            clock=lambda: self.now,
        )

    def _written(self, name: str) -> None:
        self.told.append(f"written {name}")
        if self.has_master:
            (self._folder / name / STATE).touch()

    def begin(self) -> None:
        self.checkpointer.is_due(0)
        self.checkpointer.wait()

    def take(self, step: int, *, best: bool = False) -> None:
        self.checkpointer.take(lambda: partial(cut, step, best=best), step, Report(Task(0, "train")))
        self.checkpointer.wait()


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    Writer(tmp_path, Checkpoints()).take(7, best=True)
    [name] = complete(SharedFolder(tmp_path))
    found, expected = read_checkpoint(tmp_path / name), cut(7, best=True)
    assert found.position == expected.position
    assert found.best is not None
    for one, other in (
        (found.weights, expected.weights),
        (found.state, expected.state),
        (found.best, expected.weights),
    ):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)


def test_a_checkpoint_is_told_when_its_arrays_are_copied_and_when_it_is_complete(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints())
    writer.take(7)
    name = "000000000007-worker-0-0"
    assert writer.told == [f"begin {name}", f"written {name}"]


def test_the_first_comes_after_ten_seconds_and_others_at_the_interval_of_the_setting(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints(secs=30.0))
    writer.begin()
    due = []
    for step in range(1, 80):
        writer.now = float(step)
        if writer.checkpointer.is_due(step):
            due.append(step)
            writer.take(step)
    assert due == [10, 40, 70]


@pytest.mark.parametrize(("when", "first"), [(Checkpoints(secs=4.0), 4), (Checkpoints(secs=0.0), None)])
def test_a_shorter_interval_or_none_holds_for_the_first_too(
    tmp_path: Path, when: Checkpoints, first: int | None
) -> None:
    writer = Writer(tmp_path, when)
    writer.begin()
    writer.now = 3.0
    assert not writer.checkpointer.is_due(3)
    writer.now = 4.0 if first else 1000.0
    assert writer.checkpointer.is_due(4) is (first is not None)


def test_a_step_may_have_several_checkpoints_as_before_a_pause(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints())
    for _ in range(3):
        writer.take(7)
    names = complete(SharedFolder(tmp_path))
    assert names == [f"000000000007-worker-0-0{count}" for count in ("", ".1", ".2")]
    assert writer.told[-1] == f"written {names[-1]}"
    writer.take(8)
    assert complete(SharedFolder(tmp_path))[-1] == "000000000008-worker-0-0"


@pytest.mark.parametrize(("keep", "left"), [(3, [3, 4, 5]), (0, [1, 2, 3, 4, 5]), (1, [4, 5])])
def test_a13_the_last_checkpoints_are_kept(tmp_path: Path, keep: int, left: list[int]) -> None:
    writer = Writer(tmp_path, Checkpoints(keep=keep))
    for step in range(1, 6):
        writer.take(step)
    assert [
        read_checkpoint(tmp_path / name).position.step for name in complete(SharedFolder(tmp_path))
    ] == left


def test_the_checkpoint_that_the_master_goes_back_to_is_kept_while_it_is_behind(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints(keep=1))
    writer.take(1)
    writer.has_master = False
    for step in range(2, 6):
        writer.take(step)
    assert [name[:12] for name in complete(SharedFolder(tmp_path))] == [f"{n:012}" for n in range(1, 6)]
    writer.has_master = True
    writer.take(6)
    assert [name[:12] for name in complete(SharedFolder(tmp_path))] == [f"{n:012}" for n in (5, 6)]


def test_only_own_checkpoints_are_removed_whatever_a_trainer_that_was_given_up_still_writes(
    tmp_path: Path,
) -> None:
    late, writer = Writer(tmp_path, Checkpoints(keep=1)), Writer(tmp_path, Checkpoints(keep=1))
    late.begin()
    writer.begin()
    for step in (1, 2):
        writer.take(step)
    for step in (100, 101, 102):
        late.take(step)
    writer.take(3)
    steps = [read_checkpoint(tmp_path / name).position.step for name in complete(SharedFolder(tmp_path))]
    assert steps == [2, 3, 101, 102]


def test_a_worker_that_writes_after_another_one_removes_the_checkpoints_of_that(tmp_path: Path) -> None:
    later, writer = (Writer(tmp_path, Checkpoints(keep=2), name) for name in ("worker-1-0", "worker-0-0"))
    for step in (1, 2):
        writer.take(step)
    for step in (3, 4):
        later.take(step)
    steps = [read_checkpoint(tmp_path / name).position.step for name in complete(SharedFolder(tmp_path))]
    assert steps == [3, 4]


def test_who_goes_on_from_a_checkpoint_removes_halves_at_once_and_the_others_after_its_own(
    tmp_path: Path,
) -> None:
    writer = Writer(tmp_path, Checkpoints())
    for step in (1, 2):
        writer.take(step)
    (tmp_path / "000000000009-1.partial").mkdir()
    first = complete(SharedFolder(tmp_path))[0]
    checkpoint = checkpoint_to_resume(SharedFolder(tmp_path), first)
    assert checkpoint is not None
    assert checkpoint.position.step == 1
    assert not list(tmp_path.glob("*.partial"))
    assert complete(SharedFolder(tmp_path)) == [first, "000000000002-worker-0-0"]
    later = Writer(tmp_path, Checkpoints(keep=2), "worker-0-1")
    for step in (11, 12):
        later.take(step)
    assert complete(SharedFolder(tmp_path)) == ["000000000011-worker-0-1", "000000000012-worker-0-1"]
    assert checkpoint_to_resume(SharedFolder(tmp_path / "none yet"), "") is None


def test_a_damaged_checkpoint_is_never_removed(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints(keep=1))
    for step in (1, 2):
        writer.take(step)
    store = SharedFolder(tmp_path)
    mark_damaged(store, "000000000002-worker-0-0", "its disk lost a sector")
    assert checkpoint_to_resume(store, "000000000001-worker-0-0") is not None
    later = Writer(tmp_path, Checkpoints(keep=1), "worker-0-1")
    for step in (3, 4, 5):
        later.take(step)
    assert sorted(path.name[:12] for path in tmp_path.iterdir()) == [f"{step:012}" for step in (2, 4, 5)]


def test_an_older_checkpoint_stays_until_a_newer_one_is_read_back_as_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    writer = Writer(tmp_path, Checkpoints(keep=2))
    for step in (1, 2):
        writer.take(step)
    with monkeypatch.context() as patch:
        patch.setattr(integrity, "_forget_pages", spoil)
        writer.take(3)
    assert "is read back differently from how it was written" in capfd.readouterr().err
    assert complete(SharedFolder(tmp_path)) == [f"{step:012}-worker-0-0" for step in (1, 2)]
    assert writer.told[-1] == "begin 000000000003-worker-0-0"


def spoil(file: BinaryIO) -> None:
    """Change the last byte, as a disk might."""
    file.seek(-1, os.SEEK_END)
    last = file.read(1)
    file.seek(-1, os.SEEK_END)
    file.write(bytes([last[0] ^ 1]))


def test_a_checkpoint_of_a_name_that_is_taken_leaves_that_one_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writer, other = (Writer(tmp_path, Checkpoints()) for _ in range(2))
    other.begin()
    writer.take(7)
    other.take(7, best=True)
    assert "could not be written" in capfd.readouterr().err
    assert read_checkpoint(tmp_path / "000000000007-worker-0-0").best is None


def test_a_checkpoint_that_cannot_be_written_stops_nothing_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    writer = Writer(tmp_path, Checkpoints())
    with monkeypatch.context() as patch:
        patch.setattr(integrity, "sync", full)
        writer.take(1)
    assert "could not be written" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []
    writer.take(2)
    assert [text.split()[0] for text in writer.told] == ["begin", "begin", "written"]


def test_checkpoints_are_due_by_steps_and_by_seconds(tmp_path: Path) -> None:
    by_steps = Writer(tmp_path / "steps", Checkpoints(steps=10, secs=0))
    by_steps.begin()
    assert [by_steps.checkpointer.is_due(step) for step in (0, 9, 10)] == [False, False, True]
    by_time = Writer(tmp_path / "time", Checkpoints(secs=30.0))
    by_time.begin()
    assert not by_time.checkpointer.is_due(1_000_000)
    by_time.now = 30.0
    assert by_time.checkpointer.is_due(1)
    by_time.take(1)
    assert not by_time.checkpointer.is_due(2)
    never = Writer(tmp_path / "never", Checkpoints(secs=0))
    never.now = 1e9
    assert not never.checkpointer.is_due(1_000_000)


def test_a_checkpoint_is_due_when_another_one_keeps_them_who_may_have_lost_the_last(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Checkpoints(secs=600.0))
    writer.take(7)
    assert not writer.checkpointer.is_due(8)
    writer.disk = 2
    assert writer.checkpointer.is_due(8)
    writer.take(8)
    assert not writer.checkpointer.is_due(9)


def test_a15_a_checkpoint_that_is_half_written_is_ignored(tmp_path: Path) -> None:
    Writer(tmp_path, Checkpoints()).take(7)
    half = tmp_path / "000000000009-1.partial"
    half.mkdir()
    (half / POSITION).write_bytes(b"")
    (tmp_path / "000000000011-1").mkdir()
    assert [read_checkpoint(tmp_path / name).position.step for name in complete(SharedFolder(tmp_path))] == [
        7
    ]
