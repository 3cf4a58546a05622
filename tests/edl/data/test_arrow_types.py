"""Batches made to fit: which types travel, and in pieces of which size."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.arrow_types import (
    cast_batch,
    columns_and_batches,
    fields,
    normal_schema,
    rechunk_rows,
    schema_of,
    zero_nulls,
)
from edl.errors import SourceError
from edl.spec import Field

TEXTS = pa.dictionary(pa.int8(), pa.string())


@pytest.mark.parametrize(
    ("kind", "travels_as"),
    [
        (pa.int64(), pa.int64()),
        (pa.null(), pa.null()),
        (pa.decimal128(10, 2), pa.decimal128(10, 2)),
        (TEXTS, pa.string()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.timestamp("us", "Europe/Oslo"), pa.timestamp("us", "UTC")),
        (pa.timestamp("ns"), pa.timestamp("ns")),
        (pa.list_(TEXTS), pa.list_(pa.string())),
        (pa.large_list(pa.int8()), pa.list_(pa.int8())),
        (pa.list_(TEXTS, 2), pa.list_(pa.string(), 2)),
        (pa.struct([("a", TEXTS)]), pa.struct([("a", pa.string())])),
        (pa.map_(pa.string(), TEXTS), pa.map_(pa.string(), pa.string())),
    ],
    ids=str,
)
def test_a_type_travels_as_a_plain_one(kind: pa.DataType, travels_as: pa.DataType) -> None:
    schema = normal_schema(pa.schema([("c", kind)]))
    assert schema.field("c").type == travels_as
    empty = cast_batch(pa.RecordBatch.from_arrays([pa.array([], kind)], ["c"]), schema)
    assert empty.schema == schema


UNION = pa.sparse_union([pa.field("x", pa.int8())])


@pytest.mark.parametrize(
    "field",
    [
        pa.field("b ad", UNION),
        pa.field("b ad", pa.list_(UNION)),
        pa.field("b ad", pa.struct([("x", UNION)])),
        pa.field("b ad", pa.map_(pa.string(), UNION)),
        pa.field("b ad", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"}),
    ],
    ids=lambda field: str(field.type),
)
def test_a_type_that_cannot_travel_is_refused_by_its_column(field: pa.Field) -> None:
    with pytest.raises(SourceError, match="column b ad is of the type") as caught:
        normal_schema(pa.schema([("a", pa.int8()), field]))
    assert "cast it in the SELECT" in str(caught.value.hint)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match="more than one column named A"):
        normal_schema(pa.schema([("a", pa.int8()), ("A", pa.int8())]))


def test_values_of_a_dictionary_and_a_time_zone_stay_what_they_are() -> None:
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    texts = pa.array(["x", None, "y"]).dictionary_encode()
    times = pa.array([noon, None, noon], pa.timestamp("us", "Asia/Tokyo"))
    nested = pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", TEXTS)]))
    batch = pa.RecordBatch.from_arrays([texts, times, nested], ["s", "t", "n"])
    plain = cast_batch(batch, normal_schema(batch.schema))
    assert plain.column("n").to_pylist() == [{"a": "x"}, None, {"a": None}]
    assert plain.column("s").to_pylist() == ["x", None, "y"]
    assert plain.column("t").to_pylist() == [noon, None, noon]


@given(st.lists(st.integers(0, 7), max_size=12), st.integers(1, 5))
def test_batches_of_any_sizes_come_out_full_and_in_order(sizes: list[int], rows: int) -> None:
    numbers = iter(range(1000))
    batches = [
        pa.record_batch({"a": pa.array([next(numbers) for _ in range(size)], pa.int64())}) for size in sizes
    ]
    out = list(rechunk_rows(batches, pa.schema([("a", pa.int64())]), rows))
    assert [value for batch in out for value in batch.column(0).to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows == rows for batch in out[:-1])
    assert all(1 <= batch.num_rows <= rows for batch in out)


@pytest.mark.parametrize(
    "kept",
    [
        pa.array([1, 2, 3]),
        pa.array([1.5, 2.5, 3.5], pa.float32()),
        pa.array([True, True, True]),
        pa.array([Decimal("1.25")] * 3),
        pa.array([dt.date(2024, 1, 1)] * 3),
    ],
    ids=lambda array: str(array.type),
)
def test_what_lies_under_a_null_does_not_count(kept: pa.Array) -> None:
    bitmap = pa.py_buffer(b"\x05")  # the second value is NULL
    dirty = pa.Array.from_buffers(kept.type, 3, [bitmap, kept.buffers()[1]])
    clean = pa.array([kept[0].as_py(), None, kept[2].as_py()], kept.type)

    def written(array: pa.Array) -> bytes:
        return bytes(zero_nulls(pa.RecordBatch.from_arrays([array], ["a"])).serialize())

    assert dirty.equals(clean)
    assert written(dirty) == written(clean)


NESTED = (
    pa.list_(pa.int64()),
    pa.list_(pa.list_(pa.float32())),
    pa.list_(pa.int64(), 2),
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]),
    pa.map_(pa.string(), pa.int64()),
)
VALUES = st.one_of(st.none(), st.integers(-3, 3))


def nested_values(kind: pa.DataType) -> st.SearchStrategy[object]:
    """Values of the type, with NULLs on every level that may have them."""
    if pa.types.is_struct(kind):
        inner = st.fixed_dictionaries({field.name: nested_values(field.type) for field in kind})
    elif pa.types.is_map(kind):
        inner = st.lists(st.tuples(st.sampled_from("xyz"), VALUES), max_size=3)
    elif pa.types.is_fixed_size_list(kind):
        inner = st.lists(nested_values(kind.value_type), min_size=kind.list_size, max_size=kind.list_size)
    elif pa.types.is_list(kind):
        inner = st.lists(nested_values(kind.value_type), max_size=3)
    else:
        return VALUES
    return st.one_of(st.none(), inner)


@given(st.data(), st.sampled_from(NESTED), st.integers(0, 2))
def test_values_in_lists_structs_and_maps_stay_what_they_are(
    data: st.DataObject, kind: pa.DataType, cut: int
) -> None:
    values = data.draw(st.lists(nested_values(kind), max_size=6))
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], ["a"]).slice(cut)
    clean = zero_nulls(batch)
    clean.validate(full=True)
    assert clean.to_pylist() == batch.to_pylist()
    assert clean.schema == batch.schema


def test_what_lies_under_a_null_inside_a_list_does_not_count() -> None:
    bitmap = pa.py_buffer(b"\x05")
    dirty = pa.Array.from_buffers(pa.int64(), 3, [bitmap, pa.array([1, 99, 3]).buffers()[1]])
    clean = pa.array([1, None, 3])
    written = {
        bytes(zero_nulls(pa.record_batch({"a": pa.ListArray.from_arrays([0, 1, 3], values)})).serialize())
        for values in (dirty, clean)
    }
    assert len(written) == 1


def test_columns_are_known_from_a_reader_or_the_first_batch() -> None:
    batch = pa.record_batch({"a": pa.array(["x"], pa.large_string())})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [])
    assert columns_and_batches(reader)[0] == pa.schema([("a", pa.string())])
    schema, batches = columns_and_batches(iter([batch, batch]))
    assert [part.schema for part in batches] == [schema, schema]
    with pytest.raises(SourceError, match="no columns"):
        columns_and_batches([])


def test_fields_are_the_schema_as_text() -> None:
    schema = pa.schema([("a", pa.int64()), ("t", pa.timestamp("us", "UTC"))])
    assert fields(schema) == (Field("a", "int64"), Field("t", "timestamp[us, tz=UTC]"))


def test_stored_types_are_read_again() -> None:
    kinds = [
        pa.null(), pa.bool_(), pa.uint8(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
        pa.binary(4), pa.date32(), pa.time64("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.duration("ms"),
        pa.decimal128(10, 2), pa.list_(pa.int64()), pa.list_(pa.float32(), 3), pa.list_(pa.list_(pa.string())),
    ]  # fmt: skip
    schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(kinds)])
    assert schema_of(fields(schema)) == schema


def test_a_stored_type_that_no_model_reads_is_named() -> None:
    with pytest.raises(SourceError, match="struct<a: int64> is not a type of a column that a model can read"):
        schema_of([Field("x", "struct<a: int64>")])
