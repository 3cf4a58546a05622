"""Places of rows from their hashes, beside the plain meaning of the order in SQL and in Python."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.sources.row_order.order import ROWS_PER_VALUE, KeyColumn, find_places
from edl.sources.row_order.units import ValidationRows
from edl.spec import Split

ORDER = """
    SELECT i FROM (SELECT i, near, row_number() OVER (PARTITION BY near ORDER BY exact) AS nth FROM rows)
    ORDER BY hash(near, nth, {seed}::BIGINT), near, nth
"""


def keys(near: list[int], exact: list[int], **others: list[int]) -> dict[str, pa.Array]:
    return {
        name: pa.array(values, pa.uint64())
        for name, values in {"near": near, "exact": exact, **others}.items()
    }


def drawn_units(hashes: list[int], seed: int) -> list[int]:
    """The units in the order in which they are taken."""
    rows = pa.table({"unit": pa.array(sorted(set(hashes)), pa.uint64())})
    with duckdb.connect() as connection:
        ordered = connection.from_arrow(rows).order(f"hash(unit, {seed}::BIGINT), unit").fetchall()
    return [unit for (unit,) in ordered]


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(0, 5))
def test_rows_are_in_the_order_of_the_hash_of_row_number_and_seed(near: list[int], seed: int) -> None:
    exact = [value * 7 + at for at, value in enumerate(near)]
    order, validation = find_places(keys(near, exact), seed, None)
    table = pa.table({**keys(near, exact), "i": pa.array(range(len(near)))})
    with duckdb.connect() as connection:
        connection.register("rows", table)
        assert order.tolist() == [i for (i,) in connection.sql(ORDER.format(seed=seed)).fetchall()]
    assert validation is None


def test_different_rows_of_one_hash_are_in_the_order_of_their_own_hashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edl.sources.row_order.order._hash", lambda *rest: np.zeros(4, np.uint64))
    order, _ = find_places(keys([9, 3, 7, 5], [0, 0, 0, 0]), 1, None)
    assert order.tolist() == [1, 3, 2, 0]


@given(st.integers(2, 300), st.sampled_from([0.05, 0.1, 0.34, 0.9]), st.integers(0, 3))
def test_different_rows_validate_in_the_order_of_their_hashes_until_the_fraction(
    rows: int, fraction: float, seed: int
) -> None:
    near = list(range(100, 100 + rows))
    order, validation = find_places(keys(near, near, features=near), seed, Split("random", fraction=fraction))
    wanted = min(int(rows * fraction + 0.5), rows - 1)
    assert validation == ValidationRows(wanted)
    assert {near[at] for at in order[rows - wanted :]} == {*drawn_units(near, seed)[:wanted]}


def test_copies_of_a_row_are_on_one_side_unless_there_are_few_values() -> None:
    near = [at // 2 for at in range(400)]
    order, validation = find_places(keys(near, near, features=near), 1, Split("random", fraction=0.1))
    assert validation == ValidationRows(40)
    held = sorted(near[at] for at in order[-40:])
    assert held[::2] == held[1::2]
    few = [at % 3 for at in range(3 * ROWS_PER_VALUE)]
    order, validation = find_places(keys(few, few, features=few), 1, Split("random", fraction=0.1))
    assert validation == ValidationRows(6)


@pytest.mark.parametrize("classes", [2, 40], ids=["few classes", "many classes"])
def test_each_class_has_its_share(classes: int) -> None:
    near = list(range(4000))
    kind = [value % classes for value in near]
    order, validation = find_places(
        keys(near, near, features=near, kind=kind), 1, Split("stratified", "y", fraction=0.2)
    )
    assert validation == ValidationRows(800)
    held = np.bincount([kind[at] for at in order[-800:]])
    assert held.tolist() == [800 // classes] * classes


def test_too_few_rows_have_no_validation_rows() -> None:
    near = list(range(10))
    split = Split("random", fraction=0.5, fewest=11)
    assert find_places(keys(near, near, features=near), 1, split)[1] == ValidationRows(0)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.timestamp("us"), pa.bool_()], ids=str)
def test_the_values_of_a_key_come_in_the_order_of_their_batches(kind: pa.DataType) -> None:
    column = KeyColumn(kind)
    for values in ([1, 0], [1], []):
        column.add(pa.array(values).cast(pa.int64()).cast(kind))
    assert column.take().to_pylist() == pa.array([1, 0, 1]).cast(kind).to_pylist()
    assert KeyColumn(kind).take().to_pylist() == []
