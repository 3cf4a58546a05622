"""Streams from a network: their columns, and streams that are damaged or larger than they seem."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.extensions.serving.arrow_stream import TooLargeError, read_stream, write_stream

TABLE = pa.table({"a": [1, 2], "B": pa.array(["x", None]).dictionary_encode(), "c": [0.5, None]})


def stream(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def read(body: bytes, *names: str) -> pa.RecordBatch:
    return read_stream(body, names, most_rows=10, most_bytes=1000)


def test_columns_are_chosen_by_name_and_decoded() -> None:
    found = read(stream(TABLE), "c", "b")
    assert found.to_pydict() == {"c": [0.5, None], "b": ["x", None]}
    assert found.schema.field("b").type == pa.string()


def test_several_batches_become_one_and_none_an_empty_one() -> None:
    assert read(stream(pa.concat_tables([TABLE, TABLE])), "a").to_pydict() == {"a": [1, 2, 1, 2]}
    assert read(stream(TABLE.slice(0, 0)), "a", "b").num_rows == 0


def test_what_is_written_can_be_read() -> None:
    batch = pa.record_batch({"x": [1.5, None]})
    assert read(write_stream(batch), "x") == batch


@pytest.mark.parametrize("body", [b"", b"x", stream(TABLE)[:100], b'{"records": []}'], ids=len)
def test_other_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(SemanticError, match="the body is not an Arrow IPC stream"):
        read(body, "a")


def test_a_missing_column_is_named_with_the_nearest() -> None:
    with pytest.raises(SemanticError, match="column price is missing; did you mean prices"):
        read(stream(pa.table({"prices": [1]})), "price")


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("column", ["a", "b"])
def test_a_compressed_stream_is_refused_before_it_expands(codec: str, column: str) -> None:
    with pytest.raises(SemanticError, match="the stream is compressed"):
        read(stream(TABLE.slice(0, 1), compression=codec), column)


def test_more_rows_or_bytes_than_allowed_are_refused() -> None:
    with pytest.raises(TooLargeError, match="more than 10 rows"):
        read(stream(pa.table({"a": range(11)})), "a")
    long = pa.array(["x" * 200] * 9)
    for column in (long.dictionary_encode(), long.cast(pa.string_view())):
        with pytest.raises(TooLargeError, match="column a has more than 1,000 bytes once it is decoded"):
            read(stream(pa.table({"a": column})), "a")


def test_damaged_streams_are_refused_or_read() -> None:
    draw, whole = np.random.default_rng(5), stream(TABLE)
    for _ in range(500):
        body = bytearray(whole)
        for _ in range(draw.integers(1, 6)):
            body[draw.integers(len(body))] = draw.integers(256)
        with suppress(SemanticError):
            read(bytes(body), "a", "b", "c").validate(full=True)
