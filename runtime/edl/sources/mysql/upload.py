"""Upload of rows to MySQL: the text of whole columns at a time, sent by LOAD DATA or in long INSERTs.

Texts are written as LONGTEXT, because the longest is unknown before the last row; `fitting` then selects the columns
that can be VARCHAR, which a server can hash-join and index.

LOAD DATA LOCAL is used if the server allows it. It turns values that do not fit into warnings, which are errors here.
Otherwise a statement has as many rows as `max_allowed_packet` permits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from edl.data.names import quote_part
from edl.errors import SourceError
from edl.sources.mysql.connection import MySQLConnection

CHUNK_BYTES = 8 << 20  # of text per LOAD DATA

_LOAD = (
    "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET binary FIELDS TERMINATED BY '\\t'"
    " ESCAPED BY '\\\\' LINES TERMINATED BY '\\n' ({columns})"
)
_LOAD_ESCAPES = (("\\", "\\\\"), ("\t", "\\\t"), ("\n", "\\\n"))
_SQL_ESCAPES = (("\\", "\\\\"), ("'", "\\'"))
_TEXT = "LONGTEXT"
# Characters; InnoDB keeps columns of less than 64 within the page, where many have no room.
_WIDTHS = (64, 255)
_VARCHAR_BYTES = 48_000  # of a row's 65,535; the rest is for columns of other types

# Arrow type -> column type
_STORED = (
    (types.is_boolean, "BOOLEAN"),
    (types.is_int8, "TINYINT"),
    (types.is_int16, "SMALLINT"),
    (types.is_int32, "INT"),
    (types.is_int64, "BIGINT"),
    (types.is_uint8, "TINYINT UNSIGNED"),
    (types.is_uint16, "SMALLINT UNSIGNED"),
    (types.is_uint32, "INT UNSIGNED"),
    (types.is_uint64, "BIGINT UNSIGNED"),
    (types.is_float64, "DOUBLE"),
    (types.is_floating, "FLOAT"),
    (types.is_date, "DATE"),
    (types.is_time, "TIME(6)"),
    (types.is_duration, "BIGINT"),
    (types.is_string, _TEXT),
    (types.is_binary, "LONGBLOB"),
    (types.is_fixed_size_binary, "LONGBLOB"),
    (types.is_null, "BINARY(0)"),
)


def declare_type(field: pa.Field) -> str:
    """Return the type of a column for the field. Raises SourceError if MySQL has none."""
    kind = field.type
    if types.is_decimal(kind) and kind.precision <= 65 and 0 <= kind.scale <= 30:
        return f"DECIMAL({kind.precision}, {kind.scale}) NULL"
    if types.is_timestamp(kind):
        return f"{'TIMESTAMP' if kind.tz else 'DATETIME'}(6) NULL"
    for fits, name in _STORED:
        if fits(kind):
            return f"{name} NULL"
    raise SourceError(
        f"column {field.name} is of the type {kind}, which MySQL cannot hold",
        hint="leave it out, or make it a text",
    )


def narrow_types(longest: Mapping[str, int]) -> dict[str, str]:
    """Return the types of the LONGTEXT columns that can be VARCHAR.

    `longest` holds the number of characters of each column's longest value.
    """
    declared: dict[str, str] = {}
    room = _VARCHAR_BYTES
    for name, length in sorted(longest.items(), key=lambda column: column[1]):
        width = next((width for width in _WIDTHS if length <= width), None)
        if width is None or room < 4 * width:
            break
        declared[name] = f"VARCHAR({width}) NULL"
        room -= 4 * width
    return declared


def may_load(connection: MySQLConnection) -> bool:
    """Return True if the server allows LOAD DATA LOCAL."""
    return bool(connection.fetch_all("SELECT @@GLOBAL.local_infile")[0][0] == b"1")


def write(
    connection: MySQLConnection,
    table: str,
    names: Sequence[str],
    batches: Iterable[pa.RecordBatch],
    *,
    load: bool,
) -> None:
    """Append batches with columns `names` to the table of this quoted name. `load`: by LOAD DATA."""
    columns = ", ".join(quote_part(name, "`") for name in names)
    send = _load if load else _insert
    for batch in batches:
        for part in _parts(batch):
            send(connection, table, columns, part)


def _load(connection: MySQLConnection, table: str, columns: str, batch: pa.RecordBatch) -> None:
    texts = [pc.fill_null(_escape_column(column, _LOAD_ESCAPES), b"\\N") for column in batch.columns]
    lines = pc.binary_join_element_wise(
        *texts[:-1], _join_texts(texts[-1], b"", b"\n"), pa.scalar(b"\t", _BYTES)
    )
    if connection.load(_LOAD.format(table=table, columns=columns), [_content(lines)]):
        ((_, _, message), *_) = connection.fetch_all("SHOW WARNINGS LIMIT 1")
        raise SourceError(message.decode(errors="replace"), hint="make the column a text")


def _insert(connection: MySQLConnection, table: str, columns: str, batch: pa.RecordBatch) -> None:
    texts = [_literals(column) for column in batch.columns]
    rows = pc.binary_join_element_wise(*texts, pa.scalar(b",", _BYTES))
    rows = _join_texts(rows, b",(", b")")
    start = f"INSERT INTO {table} ({columns}) VALUES".encode()
    limit = int(connection.fetch_all("SELECT @@max_allowed_packet")[0][0]) - len(start) - 1024
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[: len(rows) + 1]
    at = 0
    while at < len(rows):
        last = int(np.searchsorted(offsets, offsets[at] + limit, "right")) - 1
        last = max(last, at + 1)
        connection.run(start + _content(rows.slice(at, last - at))[1:])
        at = last


_BYTES = pa.large_binary()


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split the batch into pieces of bounded size; escaping at most doubles a text."""
    pieces = max(1, -(-3 * batch.nbytes // CHUNK_BYTES))
    rows = max(1, -(-batch.num_rows // pieces))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _literals(column: pa.Array) -> pa.Array:
    texts = _escape_column(column, _SQL_ESCAPES)
    if types.is_binary(column.type) or types.is_fixed_size_binary(column.type):
        texts = _join_texts(texts, b"_binary'", b"'")
    elif not (
        types.is_integer(column.type) or types.is_boolean(column.type) or types.is_decimal(column.type)
    ):
        texts = _join_texts(texts, b"'", b"'")
    return pc.fill_null(texts, b"NULL")


def _escape_column(column: pa.Array, escapes: Sequence[tuple[str, str]]) -> pa.Array:
    """Encode the values as the bytes that MySQL parses. A NULL stays NULL."""
    kind = column.type
    if types.is_string(kind) or types.is_binary(kind) or types.is_fixed_size_binary(kind):
        texts = (column if types.is_string(kind) else column.cast(pa.binary())).cast(_BYTES)
        for plain, escape in escapes:
            texts = pc.replace_substring(texts, plain, escape)
        return texts
    return _text(column).cast(_BYTES)


def _text(column: pa.Array) -> pa.Array:
    kind = column.type
    if types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif types.is_floating(kind):
        # MySQL has no NaN and infinities.
        column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
    elif types.is_duration(kind):
        column = column.cast(pa.int64())
    elif types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"))
    elif types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False)
    return column.cast(pa.string())


def _join_texts(texts: pa.Array, before: bytes, after: bytes) -> pa.Array:
    parts = (pa.scalar(part, _BYTES) for part in (before, after))
    first, last = parts
    return pc.binary_join_element_wise(first, texts, last, pa.scalar(b"", _BYTES))


def _content(texts: pa.Array) -> bytes:
    """Return the concatenated values."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)
    start, end = offsets[texts.offset], offsets[texts.offset + len(texts)]
    return bytes(memoryview(texts.buffers()[2])[start:end])
