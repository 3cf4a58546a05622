"""The hash is part of every stored model: it may never change, and it must spread well."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.features.hashing import bucket, combine, hash_texts, mix
from tests.texts import texts

WORD = 2**64


def mix_one(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) % WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB % WORD
    return value ^ value >> 31


def hash_one(data: bytes) -> int:
    """The definition, a byte at a time."""
    return mix_one((len(data) + sum(mix_one(256 * i + byte + 1) for i, byte in enumerate(data))) % WORD)


def hashes(values: list[str] | list[bytes], kind: pa.DataType | None = None) -> list[int]:
    return hash_texts(pa.array(values, kind)).tolist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0xE220A8397B1DCDAF),
        ("a", 0x40DEA5025532F137),
        ("1", 0x4742C371CF0FB083),
        ("ab", 0xDF28ECD41DC53350),
        ("ba", 0x136871D32D79B74D),
        ("engineering", 0x62EF8F76862FDC22),
        ("é中😀", 0x5C376E304488AC81),
        ("x" * 1000, 0x013F613044426D9A),
    ],
)
def test_golden_values(text: str, expected: int) -> None:
    assert hashes([text]) == [expected]


@pytest.mark.soak
@given(st.lists(texts(max_size=40)))
def test_a_column_hashes_as_its_values_one_by_one(values: list[str]) -> None:
    expected = [hash_one(value.encode()) for value in values]
    assert hashes(values, pa.string()) == expected
    assert hashes(values, pa.large_string()) == expected


@given(st.lists(st.binary(max_size=600), max_size=20), st.integers(0, 20), st.integers(0, 20))
def test_a_slice_hashes_its_own_rows(values: list[bytes], start: int, length: int) -> None:
    array = pa.array(values, pa.binary()).slice(start, length)
    assert hash_texts(array).tolist() == [hash_one(value) for value in values[start : start + length]]


@pytest.mark.soak
def test_texts_longer_than_the_table_and_the_window_hash_alike() -> None:
    values = [b"a" * 70_000, b"", bytes(range(256)) * 2, b"", b"z" * 200_000, b"end"]
    assert hashes(values) == [hash_one(value) for value in values]


def test_no_rows_and_empty_texts_hash() -> None:
    assert hashes([], pa.string()) == []
    assert hashes([], pa.large_binary()) == []
    assert hashes(["", ""]) == [hash_one(b"")] * 2
    assert len(hash_texts(pa.nulls(2, pa.string()))) == 2


@pytest.mark.soak
def test_neighbours_do_not_collide() -> None:
    words = [str(i) for i in range(200_000)] + [f"user_{i:09d}" for i in range(200_000)]
    assert len(set(hashes(words))) == len(words)


@pytest.mark.parametrize(
    ("prefix", "size"),
    [
        *((prefix, size) for prefix in ("", "user_") for size in (7, 64, 1000)),
        *(("x" * 300, size) for size in (7, 64)),
        pytest.param("x" * 300, 1000, marks=pytest.mark.soak),
    ],
)
def test_buckets_fill_evenly(prefix: str, size: int) -> None:
    """Chi-square over 200 values a bucket, within five deviations of its mean."""
    values = [f"{prefix}{i}" for i in range(200 * size)]
    filled = np.bincount(bucket(hash_texts(pa.array(values)), size), minlength=size)
    chi_square = ((filled - 200.0) ** 2 / 200.0).sum()
    assert abs(chi_square - (size - 1)) < 5 * np.sqrt(2 * (size - 1))


def test_one_changed_bit_changes_half_of_the_hash() -> None:
    plain = hash_texts(pa.array([f"{i:08d}" for i in range(2000)]))
    changed = hash_texts(pa.array([f"{i:08d}"[:-1] + chr(ord(f"{i:08d}"[-1]) ^ 1) for i in range(2000)]))
    flipped = np.bitwise_count(plain ^ changed)
    assert 31.5 < flipped.mean() < 32.5


def test_a_combination_depends_on_the_order() -> None:
    first, second = hash_texts(pa.array(["a", "b"])), hash_texts(pa.array(["b", "a"]))
    assert combine([first, second]).tolist() == [
        mix_one((mix_one(a) + b) % WORD) for a, b in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert combine([first, second])[0] != combine([second, first])[0]
    assert combine([first, second])[0] == combine([second, first])[1]


def test_combined_buckets_fill_evenly() -> None:
    numbers = hash_texts(pa.array([str(i) for i in range(300)]))
    rows = combine([np.repeat(numbers, 300), np.tile(numbers, 300)])
    filled = np.bincount(bucket(rows, 450), minlength=450)
    assert abs(((filled - 200.0) ** 2 / 200.0).sum() - 449) < 5 * np.sqrt(2 * 449)


def test_the_mix_is_splitmix64() -> None:
    """Its published first outputs from the seed 1234567."""
    state = np.array([1234567], dtype=np.uint64)
    outputs = []
    for _ in range(3):
        outputs.append(int(mix(state)[0]))
        state = state + np.uint64(0x9E3779B97F4A7C15)
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]
