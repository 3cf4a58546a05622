"""Cuts of a table: read in pieces, they are what the table was, whatever was trained and evicted meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from edl.embeddings import Optimizer, RowTable, TableSpec, cut
from edl.embeddings.cut import CutRows, TableCut
from edl.embeddings.model_tables import Tables
from edl.errors import ClusterError
from edl.spec import RowLimits

ADAGRAD = Optimizer("torch", "adagrad", {"initial_accumulator_value": 0.5, "epsilon": 1e-10, "lr_decay": 0.0})


def made(limits: RowLimits = RowLimits(), rows: int = 200) -> RowTable:  # noqa: B008 - it is immutable
    subject = RowTable(TableSpec("t", 2), 1, ADAGRAD, limits)
    train(subject, np.arange(rows))
    return subject


def train(subject: RowTable, ids: np.ndarray) -> None:
    subject.update(ids, np.ones((len(ids), 2), np.float32), 0.1, distinct=True)


Content = dict[int, tuple[bytes, int]]  # data and last step of each id


def content(ids: np.ndarray, data: np.ndarray, used: np.ndarray) -> Content:
    return dict(zip(ids.tolist(), zip(map(bytes, data), used.tolist(), strict=True), strict=True))


def whole(before: Content, found: TableCut, pieces: list[CutRows]) -> Content:
    """The content of a table, by the content of an earlier cut and the changes since."""
    rows = {one: row for piece in pieces for one, row in content(*piece).items()}
    assert len(rows) == found.rows == sum(len(piece.ids) for piece in pieces)
    gone = set(found.gone.tolist())
    return {one: row for one, row in before.items() if one not in gone} | rows


class Reading(NamedTuple):
    before: Content
    expected: Content
    found: TableCut
    pieces: Iterator[CutRows]
    read: list[CutRows]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "PIECE", 16)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
@pytest.mark.parametrize("limits", [RowLimits(), RowLimits(0, 120, 20), RowLimits(2, 0, 3)])
def test_a_cut_is_what_the_table_was_while_it_is_trained_on(limits: RowLimits, seed: int) -> None:
    drawn, rng = random.Random(seed), np.random.default_rng(seed)  # noqa: S311 (a schedule, no secret)
    subject = made(limits)
    train(subject, np.arange(100, 300))
    reading: list[Reading] = []
    last: tuple[Content, int] = {}, cut.ALL  # the newest cut that was read, and its step
    done = parts = 0
    for _ in range(400):
        action = drawn.choices(["train", "cut", "read"], [3, 1, 12])[0]
        if action == "cut" and len(reading) < 3:
            copied, found = subject.copy(), subject.cut(last[1])
            before = {} if found.is_whole else last[0]
            expected = content(copied.ids, copied.data, copied.used)
            reading.append(Reading(before, expected, found, found.pieces(), []))
        elif action == "read" and reading:
            one = reading[number := drawn.randrange(len(reading))]
            if (piece := next(one.pieces, None)) is not None:
                one.read.append(piece)
                continue
            assert whole(one.before, one.found, one.read) == one.expected
            del reading[number]
            done, parts = done + 1, parts + (not one.found.is_whole)
            if one.found.steps > last[1]:
                last = one.expected, one.found.steps
                subject.forget(last[1])
        else:
            train(subject, rng.choice(600, int(rng.integers(1, 60)), replace=False))
    assert done > parts > 0
    assert subject.evicted or not limits.max_rows


def test_a_cut_that_was_read_or_closed_costs_the_table_nothing_more() -> None:
    subject = made()
    read, closed = subject.cut(), subject.cut()
    closed.close()
    for _ in read.pieces():
        pass
    train(subject, np.arange(50))
    assert read.copied_rows == closed.copied_rows == 0
    assert list(closed.pieces()) == []


def test_a_cut_keeps_the_rows_that_change_and_no_others() -> None:
    subject = made()
    found = subject.cut()
    pieces = found.pieces()
    next(pieces)
    for _ in range(3):
        train(subject, np.array([3, 40, 41, 7_000]))
    assert found.copied_rows == 2  # row 3 was read, the last one is new


def test_a_cut_of_an_empty_table_has_no_rows() -> None:
    found = RowTable(TableSpec("t", 2), 1, ADAGRAD).cut()
    assert found.rows == 0 and list(found.pieces()) == []


def test_weights_and_state_of_tables_are_of_the_moment_though_the_training_goes_on() -> None:
    tables, subject = Tables(3), made()
    tables.tables["t"] = subject
    expected = tables.get_weights(), tables.get_state()
    read = tables.cut()
    train(subject, np.arange(150, 250))  # old rows, and new ones
    for found, wanted in zip(read(), expected, strict=True):
        assert found.keys() == wanted.keys()
        assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_a_table_that_gets_another_content_is_not_read_half() -> None:
    tables, subject = Tables(3), made()
    tables.tables["t"] = subject
    read = tables.cut()
    subject.load(subject.export())
    with pytest.raises(ClusterError, match="was replaced while it was read"):
        read()


@pytest.mark.parametrize("limits", [RowLimits(), RowLimits(max_rows=150), RowLimits(ttl_steps=5)])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_read_by_id_as_they_were_whatever_is_trained_and_evicted_meanwhile(
    limits: RowLimits, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    subject = made(limits, rows=100)
    ids = np.arange(300)
    pinned: list[tuple[TableCut, np.ndarray]] = []
    for step in range(40):
        if step % 10 == 0:
            pinned.append((subject.cut(), subject.read(ids)))
        train(subject, rng.choice(300, int(rng.integers(1, 60)), replace=False))
        for found, expected in pinned:
            some = rng.permutation(ids)[: int(rng.integers(1, 300))]
            np.testing.assert_array_equal(subject.read_at(found, some), expected[some])
    found, expected = pinned.pop(0)
    found.close()
    assert found.copied_rows <= len(ids)
    np.testing.assert_array_equal(subject.read_at(found, ids), subject.read(ids))


def test_a_cut_of_an_empty_table_has_the_initial_row_of_each_id() -> None:
    subject = RowTable(TableSpec("t", 2), 1, ADAGRAD)
    ids = np.arange(5)
    found, expected = subject.cut(), subject.read(ids)
    train(subject, ids)
    np.testing.assert_array_equal(subject.read_at(found, ids), expected)
