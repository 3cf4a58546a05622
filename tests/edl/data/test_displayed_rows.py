"""Rows as they are shown: columns that become text where Python or Arrow has no place for a value."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from edl.data.displayed_rows import (
    DisplayedRows,
    as_displayed_rows,
    join_small_batches,
    python_values,
    text_where_unfit,
    texts,
)
from edl.data.parquet_files import write_rows

DAY = dt.date(2024, 2, 29)
SCHEMA = pa.schema([("n", pa.int64()), ("d", pa.date32())])


def batch(*days: str) -> pa.RecordBatch:
    """Return rows with their days as dates, or as texts if one of them is no date."""
    column = text_where_unfit(pa.array(days), lambda some: some.cast(pa.date32()), str)
    return pa.RecordBatch.from_arrays([pa.array(range(len(days))), column], names=["n", "d"])


def test_a_column_keeps_its_type_while_all_its_values_fit() -> None:
    rows = DisplayedRows(SCHEMA, [batch("2024-02-29"), batch("2024-03-01")])
    assert rows.read_all().schema == SCHEMA


def test_a_column_is_text_from_the_batch_on_in_which_a_value_does_not_fit() -> None:
    rows = DisplayedRows(SCHEMA, [batch("2024-02-29"), batch("2024-02-29", "infinity")])
    assert rows.schema == SCHEMA
    assert [each.column("d").to_pylist() for each in rows] == [[DAY], ["2024-02-29", "infinity"]]


def test_a_table_has_one_type_for_a_column() -> None:
    rows = DisplayedRows(SCHEMA, [batch("2024-02-29"), batch("infinity")])
    assert rows.read_all()["d"].to_pylist() == ["2024-02-29", "infinity"]
    with DisplayedRows(SCHEMA, [batch("2024-02-29"), batch("infinity")]) as rows:
        assert pa.table(rows)["d"].to_pylist() == ["2024-02-29", "infinity"]
    rows = DisplayedRows(SCHEMA, [batch("2024-02-29"), batch("infinity")])
    assert rows.read_pandas()["d"].to_list() == ["2024-02-29", "infinity"]


def test_rows_without_a_batch_have_their_columns() -> None:
    assert DisplayedRows(SCHEMA, []).read_all().schema == SCHEMA
    assert as_displayed_rows(SCHEMA.empty_table().to_reader()).schema == SCHEMA


def test_small_batches_are_joined() -> None:
    days, infinities = (pa.concat_batches([batch(each)] * 1000) for each in ("2024-02-29", "infinity"))
    joined = list(join_small_batches([days] * 40 + [infinities] * 40, SCHEMA))
    assert [each.num_rows for each in joined] == [66_000, 14_000]
    assert [str(each.schema.field("d").type) for each in joined] == ["string", "string"]


def test_the_schema_begins_to_read_the_rows_and_loses_none() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            read.append(number)
            yield batch("2024-02-29")

    rows = DisplayedRows(SCHEMA, batches())
    assert not read
    assert rows.schema == SCHEMA
    assert read == [0]
    assert rows.read_all().num_rows == 3


def days(*numbers: int) -> pa.Array:
    return pa.array(numbers, pa.int32()).cast(pa.date32())


def times(*numbers: int, unit: str = "us", zone: str | None = None) -> pa.Array:
    return pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, zone))


MONTHS = pa.array([(1, 2, 3_000_000_000), None], pa.month_day_nano_interval())


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (days(2**31 - 1, -(2**31) + 1, 0), ["infinity", "-infinity", "1970-01-01"]),
        (days(2_932_896, 2_932_897), ["9999-12-31", "10000-01-01"]),
        (days(-719_162, -719_163), ["0001-01-01", "0001-12-31 (BC)"]),
        (times(2**63 - 1, 0), ["infinity", "1970-01-01 00:00:00"]),
        (times(-(2**63) + 1, 0, zone="UTC"), ["-infinity", "1970-01-01 00:00:00+00:00"]),
        (times(1, 1000, unit="ns"), ["1970-01-01 00:00:00.000000001", "1970-01-01 00:00:00.000001"]),
        (pa.array([86_400_000_000, 0], pa.time64("us")), ["24:00:00", "00:00:00"]),
        (pa.array([1, 0], pa.time64("ns")), ["00:00:00.000000001", "00:00:00"]),
        (MONTHS, ["1 month 2 days 00:00:03", None]),
        (pa.array([[None], None, []], pa.list_(pa.date32())), ["[NULL]", None, "[]"]),
        (pa.ListArray.from_arrays([0, 1], days(2**31 - 1)), ["[infinity]"]),
        (pa.StructArray.from_arrays([days(2**31 - 1)], ["d"]), ["{'d': infinity}"]),
        (pa.array([b"\xff", None]), ["0xff", None]),
        (pa.array([True, None]), ["true", None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_every_value_has_a_cell(column: pa.Array, shown: list[str | None]) -> None:
    assert texts(column).to_pylist() == shown
    rows = as_displayed_rows(pa.table({"v": column}).to_reader()).read_all()
    rows.to_pandas()
    assert len(python_values(rows["v"].combine_chunks())) == len(shown)


def test_what_arrow_has_and_python_has_not_stays_arrows() -> None:
    column = times(1, unit="ns")
    assert as_displayed_rows(pa.table({"v": column}).to_reader()).schema.field("v").type == column.type


def test_only_values_that_do_not_fit_are_the_databases_own_texts() -> None:
    found = text_where_unfit(
        pa.array([*["2024-02-29"] * 3, "infinity", None]),
        lambda some: some.cast(pa.timestamp("us")),
        lambda value: value and value.upper(),
    )
    assert found.to_pylist() == [*["2024-02-29 00:00:00"] * 3, "INFINITY", None]


def stored(path: Path, rows: Any, names: list[str]) -> tuple[pa.Table, tuple[int, str]]:
    with path.open("wb") as out:
        said = write_rows(rows, out, names)
    return parquet.read_table(path), said


def test_a_parquet_file_has_a_text_column_for_values_that_come_late(tmp_path: Path) -> None:
    rows = DisplayedRows(SCHEMA, [batch("2024-02-29")] * 3 + [batch("infinity"), batch("2024-03-01")])
    table, said = stored(tmp_path / "a.parquet", rows, ["n", "d"])
    assert said == (5, "d is text: it has values that are no date")
    assert table["d"].to_pylist() == [*["2024-02-29"] * 3, "infinity", "2024-03-01"]
    assert table["n"].to_pylist() == [0] * 5
    assert list(tmp_path.iterdir()) == [tmp_path / "a.parquet"]


def test_a_parquet_file_has_types_that_parquet_lacks_as_text(tmp_path: Path) -> None:
    rows = pa.table({"e": pa.array([{}], pa.struct([])), "n": [1]}).to_reader()
    table, said = stored(tmp_path / "a.parquet", rows, ["e", "n"])
    assert said == (1, "e is text: the file cannot have a struct<>")
    assert table.to_pylist() == [{"e": "{}", "n": 1}]


def test_a_parquet_file_without_rows_has_its_columns(tmp_path: Path) -> None:
    table, said = stored(tmp_path / "a.parquet", SCHEMA.empty_table().to_reader(), ["n", "m"])
    assert said == (0, "")
    assert table.schema.names == ["n", "m"]


def test_a_parquet_file_goes_to_a_pipe() -> None:
    out = io.BytesIO()
    write_rows(pa.table({"n": np.arange(3)}).to_reader(), out, ["n"])
    assert parquet.read_table(io.BytesIO(out.getvalue()))["n"].to_pylist() == [0, 1, 2]
