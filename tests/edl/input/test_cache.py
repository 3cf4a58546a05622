"""Arrays that are made once for all epochs: which ones are, and that nobody sees a difference."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.data import Reader
from edl.input.blocks import Arrays, Block, Blocks
from edl.input.cache import ArrayCache
from edl.program import Program
from edl.ragged import Ragged
from edl.spec import Rows
from edl.tasks.task import Task
from tests.edl.programs import loaded, rows_of, simple, trained
from tests.edl.worker.test_trainer import table

ROWS = 20_000
TASKS = ((0, 8_192), (8_192, 16_384), (16_384, ROWS))


class Counting:
    """A reader that notes how many rows it gave."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.rows = reader.rows
        self.schema = reader.schema
        self.given: list[tuple[int, int]] = []

    def read(self, start: int, end: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        self.given.append((start, end))
        return self._reader.read(start, end, columns)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    return rows_of(tmp_path_factory.mktemp("rows"), table(ROWS))


def program(folder: Path) -> Program:
    return loaded(simple(folder / "p", rows=Rows(True, ROWS, ROWS), epochs=3))


def reads(program: Program, reader: Reader) -> list[int]:
    """How often each task's rows were read to train on. In the end, the model is measured on them."""
    counting = Counting(reader)
    trained(program, counting)
    return [counting.given.count(bounds) - 1 for bounds in TASKS]


def arrays(rows: int) -> Arrays:
    return Arrays({"x": np.zeros((rows, 1), np.float32)}, np.zeros((rows, 1), np.float32), None)


@pytest.mark.soak
def test_rows_are_read_once_for_all_epochs(tmp_path: Path, reader: Reader) -> None:
    assert reads(program(tmp_path), reader) == [1, 1, 1]


@pytest.mark.soak
def test_rows_are_read_in_every_epoch_where_feed_is_somebody_elses(tmp_path: Path, reader: Reader) -> None:
    assert reads(dataclasses.replace(program(tmp_path), edited=True), reader) == [3, 3, 3]


@pytest.mark.soak
def test_rows_that_have_no_room_are_read_in_every_epoch(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks of three have room, of 8 bytes a row; which ones depends on their order."""
    monkeypatch.setattr("edl.input.cache.ROOM", 8 * (8_192 + ROWS - 2 * 8_192))
    assert sorted(reads(program(tmp_path), reader)) == [1, 1, 3]


@pytest.mark.soak
def test_what_is_kept_is_permuted_by_the_thread_of_the_steps(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And rows that have to be read are read ahead of the steps, in a thread of their own."""
    seen: list[tuple[int, bool]] = []
    whole = Blocks.whole

    def noted(self: Blocks, task: Task, *, seed: int | None) -> Block:
        seen.append((task.number, threading.current_thread() is threading.main_thread()))
        return whole(self, task, seed=seed)

    monkeypatch.setattr(Blocks, "whole", noted)
    found = program(tmp_path)
    trained(found, reader)
    assert seen == [(epoch, epoch > 1) for epoch in (1, 2, 3) for _ in TASKS]
    seen.clear()
    monkeypatch.setattr("edl.input.cache.ROOM", 0)
    trained(found, reader)
    assert seen == [(epoch, False) for epoch in (1, 2, 3) for _ in TASKS]


def test_the_model_is_the_same_bit_for_bit_whether_rows_are_kept_or_not(
    tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program(tmp_path)
    kept = trained(found, reader)[1].get_weights()
    monkeypatch.setattr("edl.input.cache.ROOM", 0)
    read = trained(found, reader)[1].get_weights()
    assert {name: array.tobytes() for name, array in kept.items()} == {
        name: array.tobytes() for name, array in read.items()
    }


def test_what_comes_first_stays_and_smaller_arrays_fill_the_room() -> None:
    kept = ArrayCache(8 * 100)
    for start, rows in ((0, 60), (60, 50), (110, 40)):
        kept.put(start, start + rows, arrays(rows))
    assert [kept.get(*bounds) is not None for bounds in ((0, 60), (60, 110), (110, 150))] == [
        True,
        False,
        True,
    ]


def test_lists_of_ids_and_weights_count() -> None:
    lists = Ragged([1, 2, 3], [0, 2, 3], [1.0, 0.5, 2.0])
    assert Arrays((lists,), np.zeros(2, np.int64), np.ones(2, np.float32)).nbytes == 24 + 24 + 12 + 16 + 8
