"""Background rows: what goes into an archive comes out, and nothing damaged gets through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from edl.errors import SpecError
from edl.models.archive import read_archive
from edl.models.background import from_bytes, over_columns, to_bytes

ROWS = pa.record_batch(
    {"x": [1.5, None, 2.0], "day": pa.array([1, 2, 3], pa.date32()), "city": ["a", "b", None]}
)


def test_background_rows_come_back_from_an_archive(write_model: Callable[..., Path]) -> None:
    read = read_archive(write_model(background=ROWS))
    assert read.has_background
    assert read.background() == ROWS


def test_an_archive_of_an_earlier_version_has_none(archive: Path) -> None:
    assert read_archive(archive).background() is None


def test_the_same_rows_are_the_same_bytes() -> None:
    some = pa.concat_batches([ROWS.slice(0, 1), ROWS.slice(1)])
    assert to_bytes(some.take(pa.array([0, 1, 2]))) == to_bytes(ROWS.take(pa.array([0, 1, 2])))


@pytest.mark.parametrize(
    "data",
    [b"", b"x", to_bytes(ROWS)[:-200], to_bytes(ROWS.slice(0, 0)), to_bytes(ROWS)[:40] + b"\xff" * 400],
    ids=["nothing", "no stream", "cut", "no rows", "overwritten"],
)
def test_damaged_rows_are_told(data: bytes) -> None:
    with pytest.raises(SpecError, match=r"background\.arrow is damaged"):
        from_bytes(data)


def test_rows_take_the_names_and_types_of_the_columns_of_a_query() -> None:
    schema = pa.schema({"X": pa.int64(), "Day": pa.date64(), "City": pa.large_string()})
    found = over_columns(ROWS, ("X", "Day", "City"), schema)
    assert found is not None
    assert found.schema.names == ["X", "Day", "City"]
    assert found.schema.types == [pa.float64(), pa.date64(), pa.large_string()], (
        "1.5 stays a number with a fraction"
    )


def test_rows_that_have_no_such_form_are_left_out() -> None:
    schema = pa.schema({"x": pa.float64(), "day": pa.date32(), "city": pa.list_(pa.int64())})
    assert over_columns(ROWS, ("x", "day", "city"), schema) is None
    assert over_columns(ROWS, ("x", "day"), schema) is None
