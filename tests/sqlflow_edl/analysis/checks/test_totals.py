"""A row with the sums of the others, as at the end of a spreadsheet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sqlflow_edl.analysis.checks.totals import Totals
from sqlflow_edl.analysis.schema import Schema

UNITS = [3, 5, 8, 1, 9, 4, 7]
SALES = [1.25, 7.5, 3.99, 0.01, 12.0, 6.4, 2.2]
NAMES: list[str | None] = ["a", "b", "c", "d", "e", "f", "g"]


def messages(columns: dict[str, list[Any]], *, dialect: str = "duckdb", size: int = 3) -> list[str]:
    table = pa.table(columns)
    totals = Totals(table.column_names, Schema(table.schema, dialect))
    for batch in table.combine_chunks().to_batches(max_chunksize=size):
        totals.add(batch)
    return [str(warning) for warning in totals.warnings()]


@pytest.mark.parametrize("name", ["Total", "Grand total 2024", "Gesamtsumme"])
@pytest.mark.parametrize("place", [0, 4, 7])
def test_a_named_row_of_sums_is_left_out_by_its_name(name: str, place: int) -> None:
    units, names = list(UNITS), list(NAMES)
    units.insert(place, sum(UNITS)), names.insert(place, name)
    [message] = messages({"units": units, "product": names})
    assert message == (
        f"the row with product = '{name}' has the sums of the other 7 rows in units; leave it out of the SELECT: "
        f"WHERE product <> '{name}'"
    )


def test_two_sums_in_one_row_need_no_name() -> None:
    columns = {
        "units": [*UNITS, sum(UNITS)],
        "sales": [*SALES, round(sum(SALES), 2)],
        "product": [*NAMES, None],
    }
    assert messages(columns) == [
        "one row has the sums of the other 7 rows in units, sales; leave it out of the SELECT: WHERE units < 37"
    ]


def test_the_condition_is_in_the_dialect_of_the_query() -> None:
    columns = {"units": [*UNITS, sum(UNITS)], "the product": [*NAMES, "it's the total"]}
    [message] = messages(columns, dialect="mysql")
    assert message.endswith("WHERE `the product` <> 'it''s the total'")


@pytest.mark.parametrize(
    "columns",
    [
        {"units": [*UNITS, sum(UNITS)], "product": [*NAMES, "h"]},
        {"units": [*UNITS, sum(UNITS) + 1], "product": [*NAMES, "Total"]},
        {"units": [0, 0, 5, 5, 0, 0], "product": ["a", "b", "c", "Total", "e", "f"]},
        {"units": [-1, 2, *UNITS, sum(UNITS) + 1], "product": ["x", "y", *NAMES, "Total"]},
        {"units": [None] * 8, "product": [*NAMES, "Total"]},
    ],
    ids=["one column without a name", "no sum", "few numbers", "numbers below 0", "no numbers"],
)
def test_other_rows_are_no_sums(columns: dict[str, list[Any]]) -> None:
    assert not messages(columns)


def test_many_rows_are_no_spreadsheet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlflow_edl.analysis.checks.totals.MOST_SUMMED", 7)
    assert not messages({"units": [*UNITS, sum(UNITS)], "product": [*NAMES, "Total"]})
