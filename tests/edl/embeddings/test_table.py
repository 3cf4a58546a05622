"""Row tables: the owners of rows, and the first values of rows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from edl.embeddings import Optimizer, RowTable, StoredTable, TableCopy, TableSpec, distinct_ids
from edl.errors import JobError

SGD = Optimizer("torch", "sgd", {"momentum": 0.0})
ADAGRAD = Optimizer("torch", "adagrad", {"initial_accumulator_value": 0.5, "epsilon": 1e-10, "lr_decay": 0.0})
IDS = np.array([7, -3, 2**62, 0, -(2**63), 41])


def table(dim: int = 4, seed: int = 1, optimizer: Optimizer | None = SGD, **spec: object) -> RowTable:
    return RowTable(TableSpec(**{"name": "t", "dim": dim, **spec}), seed, optimizer)  # type: ignore[arg-type]


def test_a_row_starts_alike_whoever_makes_it_and_in_whatever_order() -> None:
    one, other = table(), table()
    expected = one.gather(IDS)
    order = np.random.default_rng(0).permutation(len(IDS))
    for i in order:
        np.testing.assert_array_equal(other.gather(IDS[i : i + 1])[0], expected[i])
    np.testing.assert_array_equal(table(optimizer=None).read(IDS), expected)


def test_a_first_value_depends_on_seed_and_name_and_id() -> None:
    ids = np.arange(50)
    rows = [t.read(ids) for t in (table(), table(seed=2), table(name="u"))]
    for i, one in enumerate(rows):
        assert len(np.unique(one)) == one.size
        assert all(not np.isin(one, other).any() for other in rows[:i])


def test_a16_uniform_rows_fill_their_range() -> None:
    values = table(16, scale=0.5).read(np.arange(20_000)).astype(np.float64)
    assert -0.5 <= values.min() < -0.4999 and 0.4999 < values.max() < 0.5
    assert abs(values.mean()) < 0.003
    assert values.std() == pytest.approx(0.5 / np.sqrt(3), rel=0.01)


def test_a16_normal_rows_have_their_deviation() -> None:
    values = table(16, initial="normal", scale=2.0).read(np.arange(20_000)).astype(np.float64)
    assert abs(values.mean()) < 0.02
    assert values.std() == pytest.approx(2.0, rel=0.01)
    assert np.isfinite(values).all()


def test_zeros_are_zeros() -> None:
    assert not table(initial="zeros").gather(IDS).any()


def test_reading_makes_no_row_and_gathering_does() -> None:
    subject = table()
    subject.read(IDS)
    assert len(subject) == 0
    subject.gather(np.concatenate([IDS, IDS]))
    assert len(subject) == len(IDS)


def test_a_table_grows_and_forgets_nothing() -> None:
    subject, rng = table(2), np.random.default_rng(3)
    truth: dict[int, int] = {}
    for _ in range(30):
        ids = rng.integers(-(2**63), 2**63 - 1, 2_000)
        ids[:500] = rng.integers(-300, 300, 500)
        distinct = np.unique(ids)
        subject.update(distinct, np.ones((len(distinct), 2), np.float32), 1.0)
        for one in distinct.tolist():
            truth[one] = truth.get(one, 0) + 1
    ids = np.array(list(truth))
    moved = table(2).read(ids) - subject.read(ids)
    np.testing.assert_allclose(moved[:, 0], list(truth.values()), rtol=1e-5)
    assert len(subject) == len(truth)


def test_gradients_of_an_id_that_comes_twice_are_added_up() -> None:
    ids, gradients = np.array([5, 9, 5, 5]), np.arange(16, dtype=np.float32).reshape(4, 4)
    subject = table(optimizer=ADAGRAD)
    subject.update(ids, gradients.copy(), 0.1)
    expected = table(optimizer=ADAGRAD)
    expected.update(np.array([5, 9]), np.stack([gradients[[0, 2, 3]].sum(0), gradients[1]]), 0.1)
    np.testing.assert_array_equal(subject.read(ids), expected.read(ids))
    assert subject.steps == expected.steps == 1


def test_only_rows_of_the_minibatch_move() -> None:
    subject = table(optimizer=ADAGRAD)
    before = subject.gather(IDS)
    subject.update(IDS[:2], np.ones((2, 4), np.float32), 0.1)
    after = subject.read(IDS)
    np.testing.assert_array_equal(after[2:], before[2:])
    assert (after[:2] < before[:2]).all()


def test_what_is_stored_is_sorted_and_goes_on_where_it_was() -> None:
    first, second = table(optimizer=ADAGRAD), table(optimizer=ADAGRAD, seed=9)
    first.update(IDS, np.ones((6, 4), np.float32), 0.1)
    stored = first.export()
    assert (np.diff(stored.ids.astype(object)) > 0).all()
    assert stored.slots.shape == (6, 1, 4)
    assert (stored.slots == 1.5).all()
    second.load(stored)
    for subject in (first, second):
        subject.update(IDS[:3], np.ones((3, 4), np.float32), 0.1)
    for one, other in zip(first.export(), second.export(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_equal_tables_are_stored_in_equal_bytes() -> None:
    one, other = table(), table()
    one.gather(IDS)
    other.gather(IDS[::-1].copy())
    for first, second in zip(one.export(), other.export(), strict=True):
        assert np.asarray(first).tobytes() == np.asarray(second).tobytes()


def test_rows_without_slots_start_their_slots_anew() -> None:
    subject = table(optimizer=ADAGRAD)
    rows = np.full((2, 4), 3, np.float32)
    subject.load(StoredTable(np.array([1, 2]), rows, np.empty((2, 0, 4), np.float32), 0))
    stored = subject.export()
    assert (stored.slots == 0.5).all()
    np.testing.assert_array_equal(stored.rows, rows)


@pytest.mark.parametrize(
    ("ids", "rows"), [([2, 1], (2, 4)), ([1, 1], (2, 4)), ([1, 2], (3, 4)), ([1, 2], (2, 5))]
)
def test_damaged_rows_change_nothing(ids: list[int], rows: tuple[int, int]) -> None:
    subject = table()
    subject.gather(IDS)
    stored = StoredTable(np.array(ids), np.zeros(rows, np.float32), np.zeros((2, 0, 4), np.float32), 0)
    with pytest.raises(JobError, match=r"(of )?the table t (takes|do not ascend)"):
        subject.load(stored)
    assert len(subject) == len(IDS)


def test_a_table_without_optimizer_is_not_trained() -> None:
    with pytest.raises(JobError, match="has no optimizer"):
        table(optimizer=None).update(IDS, np.zeros((6, 4), np.float32), 0.1)


@pytest.mark.parametrize("spec", [{"dim": 0}, {"initial": "ones"}])
def test_a_table_that_cannot_be_is_named(spec: dict[str, object]) -> None:
    with pytest.raises(JobError, match="the table t cannot have"):
        table(**spec)  # type: ignore[arg-type]


def test_threads_lose_no_update() -> None:
    subject, ids = table(1, initial="zeros"), np.arange(3_000)
    gradients = np.ones((len(ids), 1), np.float32)

    def work() -> None:
        for _ in range(50):
            subject.update(ids, gradients, 1.0, distinct=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (subject.read(ids) == -200).all()


def test_distinct_ids_come_in_the_order_they_appear() -> None:
    ids = np.random.default_rng(0).integers(-50, 50, 1_000)
    found, places = distinct_ids(ids)
    np.testing.assert_array_equal(found[places], ids)
    assert found.tolist() == list(dict.fromkeys(ids.tolist()))


def trained(rows: int = 300) -> RowTable:
    subject = table(2, optimizer=ADAGRAD)
    ids = np.random.default_rng(3).permutation(rows) - rows // 2
    subject.update(ids, np.ones((rows, 2), np.float32), 0.1)
    return subject


@pytest.mark.parametrize("limit", [1, 7, 300, 1000])
def test_chunks_by_ascending_id_are_the_table(limit: int) -> None:
    subject, stored = trained(), trained().export()
    ids, rows, after, more = [], [], None, True
    while more:
        found, block, more = subject.chunk(after, limit)
        assert len(found) <= limit
        ids.append(found)
        rows.append(block)
        after = int(found[-1])
    np.testing.assert_array_equal(np.concatenate(ids), stored.ids)
    np.testing.assert_array_equal(np.concatenate(rows), stored.rows)


def test_a_row_that_was_made_since_is_in_the_next_chunk() -> None:
    subject = trained()
    subject.chunk(None, 10)
    subject.gather(np.array([10_000]))
    assert subject.chunk(140, 100)[0].tolist() == [*range(141, 150), 10_000]


def test_the_chunks_of_an_empty_table_end_at_once() -> None:
    ids, rows, more = table().chunk(None, 10)
    assert (ids.shape, rows.shape, more) == ((0,), (0, 4), False)


@pytest.mark.parametrize("rows", [0, 1, 300, 5000])
def test_a_copy_goes_on_as_the_table_would_have(rows: int) -> None:
    one, other = trained(rows), table(2, optimizer=ADAGRAD)
    other.adopt(one.copy())
    more = np.arange(-200, 8000, 3)
    for subject in (one, other):
        subject.update(more, np.full((len(more), 2), 0.5, np.float32), 0.1)
    for mine, theirs in zip(one.export(), other.export(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_copy_does_not_move_with_the_table() -> None:
    subject = trained()
    copied = subject.copy()
    before = copied.data.copy()
    subject.update(copied.ids, np.ones((len(copied.ids), 2), np.float32), 0.1)
    np.testing.assert_array_equal(copied.data, before)


def test_rows_are_put_with_their_slots_or_without() -> None:
    one, whole, bare = trained(), table(2, optimizer=ADAGRAD), table(2, optimizer=ADAGRAD)
    copied = one.copy()
    half = copied.ids > 0
    whole.put(copied.ids[half], copied.data[half])
    bare.put(copied.ids[half], copied.data[half, :2])
    assert len(whole) == len(bare) == half.sum()
    np.testing.assert_array_equal(whole.export().slots, one.export().slots[one.export().ids > 0])
    np.testing.assert_array_equal(bare.export().rows, whole.export().rows)
    assert (bare.export().slots == 0.5).all()


def test_rows_of_another_table_are_not_taken() -> None:
    subject = trained()
    before = subject.export()
    with pytest.raises(JobError, match="keeps 4 numbers a row"):
        subject.put(np.arange(3), np.ones((3, 3), np.float32))
    with pytest.raises(JobError, match="keeps 4 numbers a row"):
        subject.adopt(TableCopy(np.arange(3), np.ones((3, 2), np.float32), 1, np.arange(3)))
    np.testing.assert_array_equal(subject.export().rows, before.rows)
