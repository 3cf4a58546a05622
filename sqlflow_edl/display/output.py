"""Writers of result sets: tables for people; CSV, TSV, JSON, Markdown and Parquet for programs.

Data only, no narration.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from edl.data.cells import cell, format_count, format_exact
from edl.errors import SQLFlowError
from sqlflow_edl.display.terminal import UNBOUNDED, console, is_smart

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.table import Table
    from rich.text import Text

SHOWN_ROWS = 100  # limit of the formats for people; the other formats write every row


@dataclass(frozen=True, slots=True)
class FirstRows:
    """First rows of a result set, for people. columns: names, and True for columns of numbers."""

    columns: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[Any]]
    total: int
    types: Sequence[str]

    def footer(self, others: str) -> str:
        """Return `3 rows`, or the total and the number shown. others: how to see all of them."""
        shown = len(self.rows)
        rows = format_count(self.total)
        return rows if shown == self.total else f"{rows}, {shown} shown ({others})"


def first_rows(reader: pa.RecordBatchReader, most: float = SHOWN_ROWS) -> FirstRows:
    """Read all rows and keep at most `most` of them."""
    total = 0
    kept: list[tuple[Any, ...]] = []
    for batch in reader:
        kept += rows_of(batch.slice(0, int(max(0, min(batch.num_rows, most - total)))))
        total += batch.num_rows
    return FirstRows(columns_of(reader.schema), kept, total, [str(field.type) for field in reader.schema])


def columns_of(schema: pa.Schema) -> list[tuple[str, bool]]:
    """Return the names, each with True for a column of numbers."""
    import pyarrow.types as types

    are_numbers = (types.is_integer, types.is_floating, types.is_decimal)
    return [(field.name, any(are(field.type) for are in are_numbers)) for field in schema]


def write_rows(
    columns: Iterable[tuple[str, bool]],
    rows: Iterable[Sequence[Any]],
    out: IO[str],
    *,
    types: Sequence[str] = (),
) -> None:
    """Write an aligned table of values. Needs no Arrow.

    columns: names, and True for columns of numbers. types: type names to show below them, or none.
    """
    table = as_table(columns, rows, types, null=null_of(out))
    if table.columns:
        console(out).print(table)


def as_table(
    columns: Iterable[tuple[str, bool]],
    rows: Iterable[Sequence[Any]],
    types: Sequence[str] = (),
    null: str = "NULL",
) -> Table:
    """Make the table that `write_rows` writes. null: text of a NULL, which is faint."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for place, (name, number) in enumerate(columns):
        below = ("\n" + types[place], "dim") if types else ""
        heading = Text.assemble((name, "bold"), below)
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_style_value(value, null) for value in row))
    return table


def null_of(out: IO[str]) -> str:
    """Return the text of a NULL: faint on a terminal, elsewhere empty so that it is never the text 'NULL'."""
    return "NULL" if is_smart(out) else ""


def table_width(table: Table) -> int:
    """Measure the cells of its longest line."""
    from rich.console import Console

    return Console(width=UNBOUNDED).measure(table).maximum


def write_records(columns: Iterable[tuple[str, bool]], rows: Iterable[Sequence[Any]], out: IO[str]) -> None:
    """Write a line for each value, with its column's name before it, under a heading for each row."""
    from rich.table import Table
    from rich.text import Text

    names = [Text(name, "bold") for name, _ in columns]
    target, null = console(out), null_of(out)
    for number, row in enumerate(rows, 1):
        target.print(Text(f"row {number:,}", "dim"))
        record = Table(box=None, pad_edge=False, show_header=False)
        record.add_column(no_wrap=True)
        record.add_column(overflow="fold")
        for name, value in zip(names, row, strict=True):
            record.add_row(name, _style_value(value, null))
        target.print(record)


def _style_value(value: Any, null: str) -> Text:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return Text(null, "dim") if value is None else Text(cell(value))


def write_markdown(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """Write a Markdown table with every row; NULL is an empty cell."""
    columns = columns_of(reader.schema)
    _write_line((name for name, _ in columns), out)
    _write_line(("--:" if number else "---" for _, number in columns), out)
    total = 0
    for batch in reader:
        for row in rows_of(batch):
            _write_line(("" if value is None else cell(value) for value in row), out)
        total += batch.num_rows
    return format_count(total)


def _write_line(cells: Iterable[str], out: IO[str]) -> None:
    escaped = (" ".join(text.replace("\\", "\\\\").replace("|", "\\|").splitlines()) for text in cells)
    out.write(f"| {' | '.join(escaped)} |\n")


def write_csv(reader: pa.RecordBatchReader, out: IO[str], delimiter: str = ",") -> str:
    """Write RFC 4180 with a header; NULL is an empty field."""
    import csv

    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(reader.schema.names)
    total = 0
    for batch in reader:
        writer.writerows(_convert_rows(batch, cell))
        total += batch.num_rows
    return format_count(total)


def write_json(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """Write an array with an object per row; a NaN or infinity, which JSON does not have, is null."""
    total = 0
    out.write("[")
    for row in objects(reader):
        out.write("\n" if total == 0 else ",\n")
        out.write(row)
        total += 1
    out.write("\n]\n" if total else "]\n")
    return format_count(total)


def write_json_lines(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """Write a line with an object for each row; values as in JSON."""
    total = 0
    for row in objects(reader):
        out.write(row + "\n")
        total += 1
    return format_count(total)


def write_parquet(reader: pa.RecordBatchReader, out: IO[str]) -> str:
    """Write a Parquet file with the types of the columns into the binary buffer of `out`.

    The footer names the columns that are text because Parquet or Arrow has no place for a value. Columns of one
    name get different ones, as in JSON. Raises SQLFlowError if `out` is not a file of its own.
    """
    from edl.data.parquet_files import write_rows

    buffer = getattr(out, "buffer", None)
    if buffer is None or out.isatty():
        raise SQLFlowError("Parquet is not text", hint="name a file that ends in .parquet")
    total, note = write_rows(reader, buffer, keys(reader.schema.names))
    return "; ".join(filter(None, (format_count(total), note)))


def objects(reader: pa.RecordBatchReader) -> Iterator[str]:
    """Encode each row as a JSON object."""
    import msgspec

    encoder = msgspec.json.Encoder(enc_hook=str)
    names = keys(reader.schema.names)
    for batch in reader:
        for row in _convert_rows(batch, _json):
            yield encoder.encode(dict(zip(names, row, strict=True))).decode()


def keys(names: Iterable[str]) -> list[str]:
    """Return names that differ, as an object needs: the second a is a_1."""
    result: list[str] = []
    taken = {*names}
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        result.append(
            name
            if name not in result
            else next(candidate for candidate in numbered if candidate not in taken)
        )
        taken.add(result[-1])
    return result


Writer = Callable[["pa.RecordBatchReader", IO[str]], str]
FOR_PEOPLE = ("table", "vertical")  # formats of the first rows, written by `sqlflow_edl.display.views`
WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "tsv": partial(write_csv, delimiter="\t"),
    "json": write_json,
    "jsonl": write_json_lines,
    "markdown": write_markdown,
    "parquet": write_parquet,
}
OF_FILES = ("parquet",)  # formats that are not text
FORMATS = (*FOR_PEOPLE, *WRITERS)
TEXT_FORMATS = tuple(name for name in FORMATS if name not in OF_FILES)


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    from edl.data.displayed_rows import python_values

    columns = [python_values(column) for column in batch.columns]
    return zip(*columns, strict=True)


def _convert_rows(batch: pa.RecordBatch, convert: Callable[[Any], Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, with `convert` of what is neither NULL nor of a type that its format writes by itself."""
    import pyarrow.types as types

    from edl.data.displayed_rows import python_values

    plain = (types.is_integer, types.is_floating, types.is_string, types.is_large_string)
    columns = [
        values
        if any(is_plain(kind) for is_plain in plain)
        else [None if value is None else convert(value) for value in values]
        for kind, values in ((column.type, python_values(column)) for column in batch.columns)
    ]
    return zip(*columns, strict=True)


def _json(value: Any) -> Any:
    """Return the value as msgspec can write it, which gives small decimals an exponent and offsets no seconds."""
    if isinstance(value, decimal.Decimal):
        return format_exact(value)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        has_seconds = (value.utcoffset() or datetime.timedelta()) % datetime.timedelta(minutes=1)
        return value.astimezone(datetime.UTC) if has_seconds else value
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value
