"""Writes result sets to stdout: a table for people, CSV and JSON for programs. Data only; words go to stderr."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 100  # of a table; csv and json write every row


def write_table(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """An aligned table of the first rows; returns the footer (`3 rows`, or how many of how many are shown)."""
    total = 0
    kept: list[tuple[Any, ...]] = []
    for batch in reader:
        kept += rows_of(batch.slice(0, max(0, SHOWN_ROWS - total)))
        total += batch.num_rows
    write_rows(columns_of(reader.schema), kept, out)
    shown = min(total, SHOWN_ROWS)
    rows = counted(total)
    return rows if shown == total else f"{rows}, {shown} shown (--format csv writes all)"


def columns_of(schema: pa.Schema) -> list[tuple[str, bool]]:
    """Names, and whether numbers stand below."""
    import pyarrow.types as types

    are_numbers = (types.is_integer, types.is_floating, types.is_decimal)
    return [(field.name, any(are(field.type) for are in are_numbers)) for field in schema]


def counted(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def write_rows(columns: Iterable[tuple[str, bool]], rows: Iterable[Sequence[Any]], out: IO[str]) -> None:
    """An aligned table of values. columns: names, and whether numbers stand below. Needs no Arrow."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, number in columns:
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", "dim") if value is None else Text(cell(value)) for value in row))
    if table.columns:
        width = None if out.isatty() else 10_000
        Console(file=out, width=width, highlight=False, force_jupyter=False).print(table)


def write_csv(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """RFC 4180 with a header; NULL is an empty field."""
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(reader.schema.names)
    total = 0
    for batch in reader:
        writer.writerows(
            [None if value is None else _exact(value) for value in row] for row in rows_of(batch)
        )
        total += batch.num_rows
    return counted(total)


def write_json(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """An array with an object per row; a NaN or infinity, which JSON does not have, is null."""
    import msgspec

    encoder = msgspec.json.Encoder(enc_hook=_plain, decimal_format="string")
    names = reader.schema.names
    total = 0
    out.write("[")
    for batch in reader:
        for row in rows_of(batch):
            out.write("\n" if total == 0 else ",\n")
            out.write(encoder.encode(dict(zip(names, map(_finite, row), strict=True))).decode())
            total += 1
    out.write("\n]\n" if total else "]\n")
    return counted(total)


Writer = Callable[["pa.RecordBatchReader", IO[str]], str]
FORMATS: dict[str, Writer] = {"table": write_table, "csv": write_csv, "json": write_json}


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in batch.columns]
    return zip(*columns, strict=True)


def cell(value: Any) -> str:
    """What a person reads: ten digits are enough."""
    return f"{value:.10g}" if isinstance(value, float) else _exact(value)


def _exact(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    return str(value)


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
