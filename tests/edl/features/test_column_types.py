"""Ids that a type of a column rounds, or that it writes otherwise than the type of the training."""

from __future__ import annotations

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.features.column_types import check_ids, columns_of_large_ids, columns_written_otherwise
from edl.frameworks.onnx.columns import find_unsupported_column
from edl.spec import Bucket, CategoryId, Codes, Cross, Embedding, HashBucket, ListOf, Raw, Vocabulary
from edl.spec.column import Column

LARGE = Vocabulary("a", (7, 2**53 + 1))


@pytest.mark.parametrize(
    ("feature", "hashed", "is_large"),
    [
        (Codes(LARGE), False, True),
        (Embedding(ListOf(LARGE), 4), False, True),
        (Cross((LARGE, "b"), 100), False, True),
        (Codes(Vocabulary("a", (7, 8))), True, False),
        (Codes(Vocabulary("a", ("x", "9007199254740993"))), True, False),
        (Codes(HashBucket("a", 10)), True, True),
        (Codes(HashBucket("a", 10)), False, False),  # its ids are not known
        (Codes(CategoryId("a", 10)), True, False),
        (Codes(Bucket("a", (1.0, 2.0**60))), True, False),
        (Raw("a"), True, False),
    ],
)
def test_a_category_may_have_ids_that_are_too_large_for_a_float(
    feature: Column, *, hashed: bool, is_large: bool
) -> None:
    assert columns_of_large_ids([feature], ["a", "c"], hashed=hashed) == (["a"] if is_large else [])


def test_a_float_in_place_of_a_large_id_is_refused() -> None:
    with pytest.raises(
        SemanticError, match="column a has the id 9007199254740992 as a floating-point number"
    ):
        check_ids(pa.record_batch({"a": pa.array([1.0, None, 2.0**53])}), ["a"])


@pytest.mark.parametrize("values", [[1.0, 2.5, None, float("nan")], [2**53 + 1], [None]])
def test_other_values_are_not(values: list[float]) -> None:
    check_ids(pa.record_batch({"a": pa.array(values)}), ["a", "absent"])


def test_no_operator_reads_large_ids_as_floats() -> None:
    assert find_unsupported_column([Raw("b"), Codes(LARGE)]) == "a"
    assert not find_unsupported_column([Raw("b"), Codes(Vocabulary("a", (7, 8)))])


@pytest.mark.parametrize(
    ("before", "now", "columns"),
    [
        ("bool", pa.int32(), "a b"),
        ("double", pa.bool_(), "a b"),
        ("date32[day]", pa.timestamp("us"), "a b d"),
        ("string", pa.timestamp("us"), "a b"),
        ("string", pa.date32(), ""),
        ("bool", pa.string(), ""),  # true and false
        ("date32[day]", pa.date64(), ""),
        ("int64", pa.float64(), ""),
        ("string", pa.int64(), ""),
        ("", pa.int64(), ""),  # not a column of the training
    ],
)
def test_a_category_is_of_the_text_that_a_type_gives_a_value(
    before: str, now: pa.DataType, columns: str
) -> None:
    features: list[Column] = [
        Codes(HashBucket("a", 10)),
        Cross(("b", "c"), 10),
        Codes(Vocabulary("d", ("x",))),
    ]
    schema = pa.schema([("a", now), ("b", now), ("c", pa.string()), ("d", now)])
    types = {"a": before, "b": before, "c": "string", "d": before}
    assert columns_written_otherwise(features, schema, types) == columns.split()
