"""Lists with columns that give way."""

from __future__ import annotations

import pytest

from sqlflow_edl.display.listing import ListLayout, listing

COLUMNS = ("job", "place", "started", "statement")
ROWS = [
    ("20260101-000000-000000-abcdef", "", "2026-01-01", "SELECT a, b, c FROM t"),
    ("x", None, "", "SELECT 1"),
]
LAYOUT = ListLayout("statement", ("place", "started"), least=10)


@pytest.mark.parametrize(
    ("width", "columns", "left_out", "statement"),
    [
        (100, ["job", "started", "statement"], [], "SELECT a, b, c FROM t"),
        (60, ["job", "started", "statement"], [], "SELECT a, b, c F…"),
        (45, ["job", "statement"], ["started"], "SELECT a, b,…"),
        (40, ["job", "statement"], ["started"], "SELECT a…"),
    ],
)
def test_ids_are_whole_and_other_columns_give_way(
    width: int, columns: list[str], left_out: list[str], statement: str
) -> None:
    found = listing(COLUMNS, ROWS, LAYOUT, width)
    assert (found.columns, found.left_out) == (columns, left_out)
    assert (found.rows[0][0], found.rows[0][-1]) == (ROWS[0][0], statement)


def test_a_column_with_room_for_a_few_letters_only_is_left_out() -> None:
    found = listing(COLUMNS, ROWS, LAYOUT, 38)
    assert (found.columns, found.left_out) == (["job"], ["started", "statement"])


def test_an_empty_list_keeps_its_headings() -> None:
    assert listing(COLUMNS, [], LAYOUT, 80).columns == list(COLUMNS)


def test_the_footer_names_what_is_left_out() -> None:
    assert listing(COLUMNS, ROWS, LAYOUT, 45).footer("csv has all") == "not shown: started (csv has all)"
    assert listing(COLUMNS, ROWS, LAYOUT, 100).footer("csv has all") == ""
