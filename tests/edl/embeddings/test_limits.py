"""Admission and eviction: which ids have rows, compared with a table that is kept in a dictionary."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from edl.embeddings import Optimizer, RowTable, TableSpec
from edl.embeddings.limits import CountingFilter, share
from edl.embeddings.table import Ids
from edl.errors import JobError
from edl.spec import RowLimits

MOMENTUM = Optimizer("torch", "sgd", {"momentum": 0.5, "nesterov": 0.0})
SPEC = TableSpec("t", 2)
EVERY = np.arange(-150, 150)


def made(limits: RowLimits, spec: TableSpec = SPEC) -> RowTable:
    return RowTable(spec, 1, MOMENTUM, limits)


def train(subject: RowTable, ids: Ids) -> None:
    subject.update(ids, np.ones((len(ids), 2), np.float32), 0.1, distinct=True)


def minibatches(number: int, seed: int = 5) -> Iterator[Ids]:
    """Yield distinct ids, more of the later ones as time goes on."""
    rng = np.random.default_rng(seed)
    for step in range(number):
        yield rng.choice(EVERY, int(rng.integers(1, 40)), replace=False) + step // 4


def check_equal(one: RowTable, other: RowTable) -> None:
    for mine, theirs in zip(one.export(), other.export(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
@pytest.mark.parametrize(
    "limits", [RowLimits(max_rows=60), RowLimits(ttl_steps=40), RowLimits(max_rows=100, ttl_steps=20)]
)
def test_the_rows_that_stay_are_the_last_trained_ones_with_their_slots(limits: RowLimits, seed: int) -> None:
    subject = made(limits)
    truth: dict[int, RowTable] = {}  # a table of its own for each row
    used: dict[int, int] = {}
    for step, ids in enumerate(minibatches(120, seed), 1):
        train(subject, ids)
        for one in ids.tolist():
            train(truth.setdefault(one, made(RowLimits())), np.array([one]))
            used[one] = step
        if limits.ttl_steps and step % max(1, limits.ttl_steps // 16) == 0:
            for one in [one for one, last in used.items() if last <= step - limits.ttl_steps]:
                del used[one], truth[one]
        if limits.max_rows and len(used) > limits.max_rows:
            by_age = sorted(used, key=lambda one: (used[one], one))
            for one in by_age[: len(used) - limits.max_rows + limits.max_rows // 16]:
                del used[one], truth[one]
        stored = subject.export()
        assert stored.ids.tolist() == sorted(used)
        assert stored.used is not None and stored.used.tolist() == [used[one] for one in sorted(used)]
    assert subject.evicted > 50
    stored = subject.export()
    for number, one in enumerate(stored.ids.tolist()):
        expected = truth[one].export()
        np.testing.assert_array_equal(stored.rows[number], expected.rows[0])
        np.testing.assert_array_equal(stored.slots[number], expected.slots[0])
    np.testing.assert_array_equal(subject.read(stored.ids), stored.rows)
    gone = np.setdiff1d(EVERY, stored.ids)
    np.testing.assert_array_equal(subject.read(gone), made(RowLimits()).read(gone))


@pytest.mark.soak
def test_an_id_gets_a_row_when_so_many_steps_have_trained_with_it() -> None:
    subject, ids = made(RowLimits(min_count=3)), np.array([4, -9])
    first = subject.gather(ids)
    for step in range(1, 5):
        train(subject, ids)
        assert len(subject) == (2 if step >= 3 else 0)
        assert (subject.gather(ids) != first).all() == (step >= 3)
    once = made(RowLimits())
    train(once, ids)
    train(once, ids)
    np.testing.assert_array_equal(subject.read(ids), once.read(ids))
    assert subject.refused == 4
    assert subject.steps == 4


@pytest.mark.soak
def test_gradients_of_admitted_ids_are_not_taken_from_their_neighbours() -> None:
    subject, plain = made(RowLimits(min_count=2)), made(RowLimits())
    train(subject, np.array([1, 3]))
    ids, gradients = np.array([0, 1, 2, 3]), np.arange(8, dtype=np.float32).reshape(4, 2)
    subject.update(ids, gradients, 0.1)
    plain.update(ids[1::2], gradients[1::2], 0.1)
    np.testing.assert_array_equal(subject.read(ids), plain.read(ids))


@pytest.mark.soak
def test_new_ids_are_admitted_too_early_seldom_however_many_there_were() -> None:
    subject = made(RowLimits(min_count=2), TableSpec("t", 2, num_ids=1_000))
    size = len(subject.export().counts)
    for first in range(0, 200_000, 2_000):  # 200 times as many as there are to be
        train(subject, np.arange(first, first + 2_000))
    assert 0 < len(subject) < 200_000 / 16
    assert len(subject.export().counts) == size == 8_192


@pytest.mark.soak
@pytest.mark.parametrize("limits", [RowLimits(2, 60, 30), RowLimits(3), RowLimits(max_rows=60)])
def test_a_table_goes_on_alike_from_a_copy_and_from_what_is_stored(limits: RowLimits) -> None:
    one, copy, loaded, put = (made(limits) for _ in range(4))
    steps = list(minibatches(100))
    for ids in steps[:50]:
        train(one, ids)
    copied = one.copy()
    copy.adopt(copied._replace(ids=copied.ids.copy(), data=copied.data.copy(), used=copied.used.copy()))
    loaded.load(one.export())
    order = np.random.default_rng(0).permutation(len(copied.ids))
    put.put(copied.ids[order], copied.data[order], copied.used[order])
    put.merge_counts(copied.counts)
    put.steps = copied.steps
    for ids in steps[50:]:
        for subject in (one, copy, loaded, put):
            train(subject, ids)
    assert len(one)
    for other in (copy, loaded, put):
        check_equal(one, other)


def test_chunks_after_an_eviction_hold_the_rows_that_are_left() -> None:
    subject = made(RowLimits(max_rows=16))
    train(subject, np.arange(16))
    assert subject.chunk(None, 100)[0].tolist() == [*range(16)]
    train(subject, np.array([99, 7]))
    assert subject.chunk(3, 100)[0].tolist() == [*range(4, 16), 99]


def test_a_minibatch_that_is_larger_than_the_bound_leaves_so_many_rows() -> None:
    subject = made(RowLimits(max_rows=10))
    train(subject, EVERY)
    assert len(subject) == 10


def test_counts_of_several_servers_are_never_too_small() -> None:
    whole, parts = made(RowLimits(min_count=3)), [made(RowLimits(min_count=3)) for _ in range(2)]
    for server, part in enumerate(parts):
        ids = EVERY[server == EVERY % 2]
        for _ in range(2):
            train(part, ids)
        whole.merge_counts(part.export().counts)
    train(whole, EVERY)
    assert len(whole) == len(EVERY)


def test_counts_of_another_table_are_not_taken() -> None:
    subject = made(RowLimits(min_count=3))
    with pytest.raises(JobError, match="counts of ids have shape"):
        subject.merge_counts(np.zeros(1_024, np.uint8))


def test_servers_share_the_rows_and_not_the_steps() -> None:
    assert share(RowLimits(2, 1_000, 50), 3) == RowLimits(2, 334, 50)
    assert share(RowLimits(), 3) == RowLimits()


def test_the_filter_is_as_large_as_the_table_needs() -> None:
    sizes = [len(CountingFilter(2, number, None).cells) for number in (1, 1_000, 10**9, 0)]
    assert sizes == [1_024, 8_192, 1 << 23, 1 << 23]
