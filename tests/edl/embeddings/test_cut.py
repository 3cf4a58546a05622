"""Cuts of a table: read in pieces, they are what the table was, whatever was trained and evicted meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from edl.embeddings import Copied, Optimizer, RowTable, TableSpec, cut
from edl.embeddings.cut import Rows, TableCut
from edl.spec import RowLimits

ADAGRAD = Optimizer("torch", "adagrad", {"initial_accumulator_value": 0.5, "epsilon": 1e-10, "lr_decay": 0.0})


def made(limits: RowLimits = RowLimits(), rows: int = 200) -> RowTable:  # noqa: B008 - it is immutable
    subject = RowTable(TableSpec("t", 2), 1, ADAGRAD, limits)
    train(subject, np.arange(rows))
    return subject


def train(subject: RowTable, ids: np.ndarray) -> None:
    subject.update(ids, np.ones((len(ids), 2), np.float32), 0.1, distinct=True)


def whole(pieces: list[Rows]) -> list[np.ndarray]:
    return [np.concatenate(parts) for parts in zip(*pieces, strict=True)]


def check(expected: Copied, found: TableCut, pieces: list[Rows]) -> None:
    assert (found.rows, found.steps) == (len(expected.ids), expected.steps)
    ids, data, used = whole(pieces)
    np.testing.assert_array_equal(ids, expected.ids)
    np.testing.assert_array_equal(data, expected.data)
    np.testing.assert_array_equal(used, expected.used)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "PIECE", 16)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [RowLimits(), RowLimits(0, 120, 20), RowLimits(2, 0, 3)])
def test_a_cut_is_what_the_table_was_while_it_is_trained_on(limits: RowLimits, seed: int) -> None:
    drawn, rng = random.Random(seed), np.random.default_rng(seed)  # noqa: S311 (a schedule, no secret)
    subject = made(limits)
    train(subject, np.arange(100, 300))
    reading: list[tuple[Copied, TableCut, Iterator[Rows], list[Rows]]] = []
    done = 0
    for _ in range(200):
        action = drawn.choices(["train", "cut", "read"], [3, 1, 8])[0]
        if action == "cut" and len(reading) < 3:
            expected, found = subject.copied(), subject.cut()
            reading.append((expected, found, found.pieces(), []))
        elif action == "read" and reading:
            expected, found, pieces, read = reading[number := drawn.randrange(len(reading))]
            if (piece := next(pieces, None)) is not None:
                read.append(piece)
            else:
                check(expected, found, read)
                del reading[number]
                done += 1
        else:
            train(subject, rng.choice(600, int(rng.integers(1, 60)), replace=False))
    assert done >= 2
    assert subject.evicted or not limits.max_rows


def test_a_cut_that_was_read_or_closed_costs_the_table_nothing_more() -> None:
    subject = made()
    read, closed = subject.cut(), subject.cut()
    closed.close()
    for _ in read.pieces():
        pass
    train(subject, np.arange(50))
    assert read.kept == closed.kept == 0
    assert list(closed.pieces()) == []


def test_a_cut_keeps_the_rows_that_change_and_no_others() -> None:
    subject = made()
    found = subject.cut()
    pieces = found.pieces()
    next(pieces)
    for _ in range(3):
        train(subject, np.array([3, 40, 41, 7_000]))
    assert found.kept == 2  # row 3 was read, the last one is new


def test_a_cut_of_an_empty_table_has_no_rows() -> None:
    found = RowTable(TableSpec("t", 2), 1, ADAGRAD).cut()
    assert found.rows == 0 and list(found.pieces()) == []
