"""Arrow IPC streams from a network: read without trust, and without a larger copy of what they hold.

A few bytes of a compressed body, of a dictionary or of string views can stand for gigabytes. Compressed bodies are
refused before anything is allocated, and the others before they are decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from edl.data.arrow_types import cast_batch, normal_schema
from edl.errors import SemanticError, SourceError, did_you_mean
from sqlflow_edl.extensions.serving.rows import ValueProblem

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
_HEADER, _COMPRESSION = 2, 3  # fields of the tables Message and RecordBatch in Arrow's Message.fbs


class TooLargeError(SemanticError):
    """Request with more rows or bytes than the server accepts."""


def read_stream(body: bytes, names: Sequence[str], *, most_rows: int, most_bytes: int) -> pa.RecordBatch:
    """Return the named columns of a stream as one batch of plain columns. Names match without case.

    Raises SemanticError for a stream that is damaged, compressed, or lacks a column, TooLargeError for a large one.
    """
    try:
        _check_plain(body)
        batches = _batches(body, names, most_rows)
        for batch in batches:
            batch.validate(full=True)
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                _check_size(name, column, most_bytes)
        schema = normal_schema(batches[0].schema)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise SemanticError(f"the body is not an Arrow IPC stream: {lines[0]}") from None
    except SourceError as error:
        raise SemanticError(error.message) from None
    plain = [cast_batch(batch, schema) for batch in batches]
    return plain[0] if len(plain) == 1 else pa.Table.from_batches(plain).combine_chunks().to_batches()[0]


def write_stream(batch: pa.RecordBatch) -> bytes:
    """Return a batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _batches(body: bytes, names: Sequence[str], most_rows: int) -> list[pa.RecordBatch]:
    """Return the batches with the named columns only, at least one."""
    with pa.ipc.open_stream(body) as stream:
        names_of_stream = {name.casefold(): name for name in reversed(stream.schema.names)}
        places = []
        for name in names:
            as_written = name if name in stream.schema.names else names_of_stream.get(name.casefold())
            if as_written is None:
                near = did_you_mean(name, stream.schema.names, list_up_to=0)
                message = f"column {name} is missing" + (f"; {near}" if near else "")
                raise ValueProblem(message, name, None, None, "a column")
            places.append(stream.schema.get_all_field_indices(as_written)[0])
        batches, rows = [], 0
        for batch in stream:
            rows += batch.num_rows
            check_rows(rows, most_rows)
            if batch.num_rows:
                batches.append(_choose_columns(batch, places, names))
        nothing = pa.RecordBatch.from_arrays(
            [pa.array([], field.type) for field in stream.schema], schema=stream.schema
        )
        return batches or [_choose_columns(nothing, places, names)]


def _choose_columns(batch: pa.RecordBatch, places: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([batch.column(place) for place in places], names=list(names))


def check_rows(rows: int, most: int) -> None:
    """Raise TooLargeError for more rows than a request may have."""
    if rows > most:
        raise TooLargeError(f"the request has more than {most:,} rows", hint="send them in several requests")


def _check_size(name: str, column: pa.Array, most: int) -> None:
    """Raise an error unless the column, once it is decoded, has at most so many bytes."""
    if types.is_run_end_encoded(column.type):
        raise ValueProblem(
            f"column {name} is run-end encoded; send it plain", name, None, None, "a plain column"
        )
    lengths = None
    if types.is_dictionary(column.type):
        values = column.dictionary
        if not _is_text(values.type):
            return
        lengths = pc.binary_length(values.cast(pa.large_binary())).take(column.indices)
    elif types.is_string_view(column.type) or types.is_binary_view(column.type):
        views = np.frombuffer(column.buffers()[1], dtype=np.int32)[::4]
        lengths = pa.array(views[column.offset : column.offset + len(column)])
    if lengths is not None and (pc.sum(lengths).as_py() or 0) > most:
        raise TooLargeError(f"column {name} has more than {most:,} bytes once it is decoded")


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def _check_plain(body: bytes) -> None:
    """Raise SemanticError if a record batch of the stream is compressed."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(body))
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            return
        if message.type in ("record batch", "dictionary") and _is_compressed(message):
            raise SemanticError(
                "the stream is compressed", hint="send it without the compression of Arrow IPC"
            )


def _is_compressed(message: pa.ipc.Message) -> bool:
    """Return True if the flatbuffer of a message has a BodyCompression."""
    data = message.metadata.to_pybytes()
    (root,) = struct.unpack_from("<I", data, 0)
    header = _field(data, root, _HEADER)
    if header is None:
        return False
    header = _target(data, header)
    if message.type == "dictionary":  # DictionaryBatch: id, data
        inner = _field(data, header, 1)
        if inner is None:
            return False
        header = _target(data, inner)
    return _field(data, header, _COMPRESSION) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the place of a field of a flatbuffer's table, or None if it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    vtable = table - back
    (size,) = struct.unpack_from("<H", data, vtable)
    if 4 + 2 * number >= size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + 4 + 2 * number)
    return table + offset if offset else None


def _target(data: bytes, place: int) -> int:
    """Follow an offset to another table."""
    (offset,) = struct.unpack_from("<I", data, place)
    return place + int(offset)
