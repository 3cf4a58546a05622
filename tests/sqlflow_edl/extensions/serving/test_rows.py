"""Values of JSON as columns: what is accepted, and what an error names."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from sqlflow_edl.extensions.serving.rows import ValueProblem, from_columns, from_records, to_column

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (pa.int64(), 3, 3),
        (pa.int64(), 2.5, 2.5),
        (pa.float64(), 3, 3.0),
        (pa.float64(), 2**60 + 1, float(2**60 + 1)),
        (pa.string(), "é", "é"),
        (pa.bool_(), True, True),
        (pa.bool_(), 0, False),
        (pa.date32(), "2026-01-31", dt.date(2026, 1, 31)),
        (pa.timestamp("us"), "2026-01-31T12:30:00", dt.datetime(2026, 1, 31, 12, 30)),
        (pa.timestamp("us"), "2026-01-31T12:30:00+02:00", dt.datetime(2026, 1, 31, 10, 30)),
        (pa.timestamp("us", "UTC"), "2026-01-31 12:30:00", dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)),
        (pa.time64("us"), "07:30:00", dt.time(7, 30)),
        (pa.decimal128(10, 2), 1.5, Decimal("1.50")),
        (pa.binary(), "AQI=", b"\x01\x02"),
        (pa.list_(pa.int64()), [1, None], [1, None]),
    ],
    ids=str,
)
def test_a_value_becomes_one_of_its_column(kind: pa.DataType, value: object, found: object) -> None:
    assert to_column([value, None], pa.field("x", kind)).to_pylist() == [found, None]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**53 + 1, 7.0], pa.int64()),
        ([2**53 + 1, 7.5], pa.float64()),
        ([2**53 + 1, 2.0**53], pa.float64()),  # the float may be in place of another number
    ],
)
def test_whole_numbers_stay_exact_beside_whole_floats(values: list[float], kind: pa.DataType) -> None:
    column = to_column(values, pa.field("x", pa.int64()))
    assert column.type == kind
    assert column.to_pylist() == [kind.to_pandas_dtype()(value) for value in values]


def test_a_large_float_is_no_decimal() -> None:
    assert to_column([2.0**60], pa.field("x", pa.decimal128(20, 0))).type == pa.float64()
    assert to_column([2.0, 2**60 + 1], pa.field("x", pa.decimal128(20, 0))).to_pylist() == [2, 2**60 + 1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int64(), "3", "a number"),
        (pa.float64(), True, "a number"),
        (pa.int64(), 10**40, "a number"),
        (pa.string(), 3, "a text"),
        (pa.bool_(), 2, "true or false"),
        (pa.date32(), "31.1.2026", "a date such as 2026-01-31"),
        (pa.timestamp("us"), "soon", "a time such as 2026-01-31T12:30:00"),
        (pa.decimal128(10, 2), "much", "a number"),
        (pa.binary(), "?", "bytes in base64"),
        (pa.list_(pa.int64()), ["a"], "a list of values"),
        (pa.null(), 1, "null"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_named_with_its_place(
    kind: pa.DataType, value: object, expected: str
) -> None:
    with pytest.raises(ValueProblem) as caught:
        to_column([None, value], pa.field("x", kind))
    problem = caught.value
    assert (problem.column, problem.row, problem.value, problem.expected) == ("x", 1, value, expected)
    assert problem.message == f"column x, row 1: {value!r} is not {expected}"


def test_names_match_without_case_and_others_are_ignored() -> None:
    expected = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
    records = [{"B": "x", "A": 1, "c": 0}, {"B": "y", "A": None}]
    assert from_records(records, SCHEMA).to_pylist() == expected
    assert from_columns({"A": [1, None], "B": ["x", "y"], "c": 3}, SCHEMA).to_pylist() == expected


def test_no_rows_have_the_columns_of_the_model() -> None:
    assert from_records([], SCHEMA).schema == SCHEMA


@pytest.mark.parametrize(
    ("records", "message", "row"),
    [
        ([{"a": 1, "b": ""}, {"a": 2}], "row 1 lacks the column b; write null for an unknown value", 1),
        ([{"a": 1, "bb_": ""}], "row 0 lacks the column b; write null for an unknown value", 0),
        ([{"a": 1, "b": ""}, 7], "row 1 is not an object of columns", 1),
    ],
)
def test_a_row_without_a_column_is_refused(records: list[object], message: str, row: int) -> None:
    with pytest.raises(ValueProblem) as caught:
        from_records(records, SCHEMA)
    assert (caught.value.message, caught.value.row) == (message, row)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1]}, "column b is missing"),
        ({"a": [1], "b": "x"}, "column b must be a list of values"),
        ({"a": [1], "b": ["x", "y"]}, "column b has 2 values, a has 1"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(columns: dict[str, object], message: str) -> None:
    with pytest.raises(ValueProblem, match=message):
        from_columns(columns, SCHEMA)
