"""Tables of Delta Lake, written by deltalake itself."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from edl.data import connect
from tests.edl.extensions.lakes.lakes import check_pinned_rows_and_results, numbers, refusal


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """A table in two versions, of three rows and of four, in a folder for each shop."""
    folder = tmp_path / "lake" / "sales"
    days = [dt.date(2024, 1, day) for day in (1, 2, 3)]
    write_deltalake(
        folder, pa.table({"shop": ["a", "b", "a"], "day": days, "n": [1, 2, None]}), partition_by=["shop"]
    )
    write_deltalake(folder, pa.table({"shop": ["c"], "day": days[:1], "n": [4]}), mode="append")
    return folder


def test_the_latest_version_is_read_with_its_types(sales: Path) -> None:
    with connect(f"delta:///{sales}") as source:
        assert numbers(source) == numbers(source, "rows") == [1, 2, 4, None]
        types = source.schema("SELECT * FROM sales")
        assert {name: str(types.field(name).type) for name in types.names} == {
            "shop": "string", "day": "date32[day]", "n": "int64",
        }  # fmt: skip
        assert source.tables() == ["rows", "sales"]


def test_a_source_stays_at_the_version_that_it_was_opened_at(sales: Path) -> None:
    with connect(f"delta:///{sales}") as source:
        DeltaTable(sales).delete("n = 2")
        assert numbers(source) == [1, 2, 4, None]
        with connect(source.url) as another:  # as the process of a job opens it
            assert numbers(another) == [1, 2, 4, None]
    with connect(f"delta:///{sales}?version=0") as source:
        assert numbers(source) == [1, 2, None]
    with connect(f"delta:///{sales}") as source:
        assert numbers(source) == [1, 4, None]


@pytest.mark.soak
def test_rows_are_pinned_and_results_are_beside_the_table(sales: Path, tmp_path: Path) -> None:
    check_pinned_rows_and_results(f"delta:///{sales}", sales, tmp_path)


def test_nothing_is_left_where_nothing_was_stored(sales: Path) -> None:
    with connect(f"delta:///{sales}") as source:
        numbers(source)
    assert [path.name for path in sales.parent.iterdir()] == ["sales"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("delta:///{}?version=7", "has no version 7.*the latest version is 1"),
        ("delta:///{}?version=-1", "version is '-1'.*a whole number"),
        ("delta:///{}?versoin=1", "no option versoin.*did you mean version"),
        ("delta:///{}/nowhere", "there is no Delta table at .*_delta_log"),
        ("delta:https://lake/sales", "https:// is not a known object store.*known: s3, gs, abfs"),
        ("delta:s3://key:secret@lake/sales", "has a password or options"),
    ],
)
def test_what_is_no_version_of_a_table_is_named(sales: Path, url: str, said: str) -> None:
    found = refusal(url.format(sales))
    assert re.search(said, found)
    assert "secret" not in found


def test_a_table_in_an_object_store_has_its_url(tmp_path: Path) -> None:
    from edl.data.url import parse

    parsed = parse("delta:s3://lake/sales?version=3")
    assert (parsed.location, parsed.options) == ("s3://lake/sales", (("version", "3"),))  # type: ignore[union-attr]
    assert str(parsed) == "delta:s3://lake/sales?version=3"
    assert parse(str(parsed)) == parsed
