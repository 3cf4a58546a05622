"""Columns of every type as numbers, integers and text."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.features.arrays import integers, numbers, texts
from edl.features.calendar import parts, years

NOON = dt.datetime(2024, 1, 31, 12, 0, 0, 500_000)
BIG = 2**53 + 1  # the first integer that float64 cannot hold


def as_integers(array: pa.Array) -> list[int | None]:
    values, known = integers(array, "c")
    return [value if ok else None for value, ok in zip(values.tolist(), known.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        *((pa.array([0, 1, None], kind), [0, 1, None]) for kind in (
            pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
            pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal256(40, 3),
        )),
        (pa.array([False, True, None]), [0, 1, None]),
        (pa.array([2**63], pa.uint64()), [2.0**63]),
        (pa.array([1, 2, 1]).dictionary_encode(), [1, 2, 1]),
        (pa.nulls(2), [None, None]),
        (pa.array([], pa.float64()), []),
        (pa.array([1.5, math.inf, math.nan]), [1.5, math.inf, None]),
        (pa.array([dt.date(1970, 1, 2)]), [86_400]),
        (pa.array([dt.date(1970, 1, 2), None], pa.date64()), [86_400, None]),
        *((pa.array([dt.datetime(1970, 1, 1, 0, 1)], pa.timestamp(unit)), [60]) for unit in ("s", "ms", "us", "ns")),
        (pa.array([dt.datetime(1970, 1, 1)], pa.timestamp("s", "Europe/Berlin")), [0]),
        *((pa.array([dt.time(0, 1)], kind), [60]) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))),
        (pa.array([dt.timedelta(minutes=1)], pa.duration("ms")), [60]),
    ],
)  # fmt: skip
def test_a_number_is_a_number_in_every_type(array: pa.Array, expected: list[float | None]) -> None:
    padded = pa.concat_arrays([array, array]).slice(len(array))  # a slice, so that offsets count
    for column in (array, padded):
        values = numbers(column, "c")
        assert values.dtype == np.float64
        assert [None if math.isnan(value) else value for value in values.tolist()] == expected


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal64(18, 2),
        pa.decimal128(12, 2),
        pa.decimal128(38, 2),
        pa.decimal128(9, -2),
        pa.decimal256(60, 2),
    ],
)
def test_a_decimal_is_the_double_nearest_to_it(kind: pa.DataType) -> None:
    step = Decimal(1).scaleb(-kind.scale)
    most = 10 ** min(kind.precision, 28) - 1
    decimals = [*(step * place for place in range(-3000, 3000)), None, step * most, step * -most]
    found = numbers(pa.array(decimals, kind), "c").tolist()
    assert [None if math.isnan(value) else value for value in found] == [
        None if value is None else float(value) for value in decimals
    ]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([0, -5, None], pa.int8()), [0, -5, None]),
        (pa.array([BIG, 2**63, None], pa.uint64()), [BIG, None, None]),
        (pa.array([3.0, -0.0, 2.5, 1e300, math.nan, math.inf, None]), [3, 0, None, None, None, None, None]),
        (pa.array([True, False, None]), [1, 0, None]),
        (pa.array([Decimal(BIG), None], pa.decimal128(38, 0)), [BIG, None]),
        (pa.array([Decimal("7.00"), Decimal("7.50")]), [7, None]),
        (pa.array(["12", "-3", "007", None]), [12, -3, 7, None]),
        (pa.array(["", " 1", "1.0", "+1", "1e3", "١", "9" * 19]), [None] * 7),
        (pa.array(["12", "007", None]), [12, 7, None]),
        (pa.array(["9" * 18, "9" * 19]), [int("9" * 18), None]),
        (pa.array(["5", "x"], pa.large_string()), [5, None]),
        (pa.array([b"5", b"\xff"], pa.binary()), [5, None]),
        (pa.array(["5", "x", "5"]).dictionary_encode(), [5, None, 5]),
        (pa.nulls(1), [None]),
    ],
)
def test_an_integer_is_taken_where_it_is_one_without_doubt(
    array: pa.Array, expected: list[int | None]
) -> None:
    assert as_integers(array) == expected
    assert as_integers(pa.concat_arrays([array, array]).slice(len(array))) == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["a", "", None]), ["a", "", None]),
        (pa.array(["é"], pa.large_string()), ["é"]),
        (pa.array(["é", None], pa.string_view()), ["é", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.array([3, -1, None]), ["3", "-1", None]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([3.0, 2.5, math.nan, math.inf, None]), ["3", "2.5", None, None, None]),
        (pa.array([0.1], pa.float32()), ["0.1"]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([Decimal("3.00"), Decimal("3.50"), Decimal("10.00")]), ["3", "3.5", "10"]),
        (pa.array([Decimal(100)], pa.decimal128(38, 0)), ["100"]),
        (pa.array([dt.date(2024, 1, 31)]), ["2024-01-31"]),
        (pa.array([dt.date(2024, 1, 31)], pa.date64()), ["2024-01-31"]),
        *((pa.array([NOON], pa.timestamp(unit)), ["2024-01-31 12:00:00.5"]) for unit in ("ms", "us", "ns")),
        (pa.array([NOON.replace(microsecond=0)], pa.timestamp("us")), ["2024-01-31 12:00:00"]),
        (pa.array([NOON], pa.timestamp("us", "UTC")), ["2024-01-31 12:00:00.5"]),
        (pa.array([dt.time(1, 30)], pa.time64("us")), ["01:30:00"]),
        (pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_text_is_what_one_would_type(array: pa.Array, expected: list[Any]) -> None:
    assert texts(array, "c").to_pylist() == expected


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.int32(), pa.bool_(), pa.date32(), pa.struct([("a", pa.int64())])]
)
def test_a_column_of_null_alone_may_have_any_type(kind: pa.DataType) -> None:
    array = pa.nulls(2, kind)
    assert np.isnan(numbers(array, "c")).all()
    assert not integers(array, "c")[1].any()
    assert texts(array, "c").null_count == 2
    assert not parts(array, "month", "c")[1].any()
    assert np.isnan(years(array, "c")).all()


@pytest.mark.parametrize(
    ("convert", "array", "message"),
    [
        (numbers, pa.array(["1"]), "column c is of type string where a number is needed"),
        (numbers, pa.array([[1.0]]), "column c is of type list<item: double> where a number is needed"),
        (integers, pa.array([NOON]), r"column c is of type timestamp\[us\] where an integer is needed"),
        (texts, pa.array([{"a": 1}]), "column c is of type struct<a: int64> where text is needed"),
    ],
)
def test_another_type_is_an_error_that_names_the_column(convert: Any, array: pa.Array, message: str) -> None:
    with pytest.raises(SemanticError, match=message) as error:
        convert(array, "c")
    assert "convert it to " in str(error.value.hint)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("s"), pa.timestamp("us", "UTC")])
def test_infinite_times_of_duckdb_are_null(kind: pa.DataType) -> None:
    largest = 2 ** (kind.bit_width - 1) - 1
    stored = pa.array([largest, -largest, 86_400, None], pa.int32() if kind.bit_width == 32 else pa.int64())
    array = stored.cast(kind)
    assert np.isnan(numbers(array, "c")).tolist() == [True, True, False, True]
    assert texts(array, "c").is_null().to_pylist() == [True, True, False, True]
