"""Sheets of spreadsheet files: types of their cells, forms of numbers, and what is wrong with files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pytest
from openpyxl import Workbook

from edl.data import Source, connect
from edl.errors import SourceError


def write_workbook(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> str:
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return str(path)


def read_rows(source: Source) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = source.stream("SELECT * FROM rows").read_all().to_pylist()
    return rows


def read_column(path: Path, cells: Sequence[object], options: str = "") -> tuple[list[object], list[str]]:
    url = write_workbook(path, {"Data": [("id", "x"), *enumerate(cells, 1)]})
    with connect(url + options) as source:
        return [row["x"] for row in read_rows(source)], source.notes


def test_cells_keep_their_types(tmp_path: Path) -> None:
    stamp = dt.datetime(2024, 12, 26, 10, 11, 12)
    head = ("id", "day", "at", "flag", "text", "share", "zip")
    rows = [
        head,
        (1, dt.date(2024, 12, 26), stamp, True, 'a\nb, "c"', 0.1, "01234"),
        (2, dt.date(2025, 1, 2), dt.datetime(2024, 12, 27), False, None, 3, "99999"),
        (None,) * 7,
        (12345678901234, None, None, None, "=1/0", 1e-300, None),
    ]
    with connect(write_workbook(tmp_path / "sales of May.xlsx", {"Data": rows})) as source:
        assert source.notes == []
        assert source.tables() == ["rows", '"sales of May"']
        assert [tuple(row.values()) for row in read_rows(source)] == [
            (1, dt.date(2024, 12, 26), stamp, True, 'a\nb, "c"', 0.1, "01234"),
            (2, dt.date(2025, 1, 2), dt.datetime(2024, 12, 27), False, None, 3.0, "99999"),
            (12345678901234, None, None, None, None, 1e-300, None),
        ]


def test_texts_in_cells_are_read_as_in_csv(tmp_path: Path) -> None:
    values, notes = read_column(tmp_path / "t.xlsx", ["€1.234,50", "€12,00", None])
    assert values == [1234.5, 12.0, None]
    assert "a decimal comma" in notes[0]
    assert read_column(tmp_path / "t.xlsx", ["26.12.2024", "01.02.2025"])[0] == [
        dt.date(2024, 12, 26),
        dt.date(2025, 2, 1),
    ]
    assert read_column(tmp_path / "t.xlsx", [1, "2", "NA"])[0] == [1, 2, None]


@pytest.mark.variants(2)
@pytest.mark.parametrize("odd", ["1.234,50", "n/a", "€5.00", "12%"])
def test_a_number_among_other_forms_of_numbers_makes_the_column_text(tmp_path: Path, odd: str) -> None:
    values, notes = read_column(tmp_path / "t.xlsx", [1.234, odd, 5])
    assert values == ["1.234", odd, "5"]
    assert f"as text: some of its cells are numbers, others texts such as '{odd}'" in notes[0]


def test_days_among_numbers_make_the_column_text(tmp_path: Path) -> None:
    values, notes = read_column(tmp_path / "t.xlsx", [45000, dt.date(2024, 1, 2)])
    assert values == ["45000", "2024-01-02"]
    assert "as text: some of its cells are days, others numbers" in notes[0]


def test_the_option_of_the_note_makes_the_column_a_number(tmp_path: Path) -> None:
    option = "?nullstr=n%2Fa"
    _, notes = read_column(tmp_path / "t.xlsx", [1.5, "n/a"])
    assert option in notes[0]
    assert read_column(tmp_path / "t.xlsx", [1.5, "n/a"], option) == ([1.5, None], [])


def test_the_first_visible_sheet_with_cells_is_read_and_another_by_its_name(tmp_path: Path) -> None:
    sheets = {"Cover": [], "2024": [("a",), (1,)], "2025": [("a",), (2,)]}
    url = write_workbook(tmp_path / "t.xlsx", sheets)
    with connect(url) as source:
        assert read_rows(source) == [{"a": 1}]
        assert "from the sheet 2024, the first of 2" in source.notes[0]
    for other in (f"{url}?sheet=2025", f"excel:///{url}?sheet=2025"):
        with connect(other) as source:
            assert (read_rows(source), source.notes) == ([{"a": 2}], [])


def test_a_title_above_the_table_is_an_error_with_a_url_that_reads_the_table(tmp_path: Path) -> None:
    rows = [("Sales of May",), (), ("region", "item", "amount"), ("north", "a", 1), ("south", "b", 2)]
    url = write_workbook(tmp_path / "t.xlsx", {"Data": rows})
    with pytest.raises(
        SourceError, match=r"row 1 of the sheet Data .* fills 1 of 3 columns; row 3 seems"
    ) as caught:
        connect(url)
    with connect(str(caught.value.hint).removeprefix("write ").strip("'")) as source:
        assert [row["amount"] for row in read_rows(source)] == [1, 2]


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("rows", "options", "message", "hint"),
    [
        ([("a", "a"), (1, 2)], "", "more than one column named a", "give each its own name"),
        ([(2019, 2020), (1, 2)], "", "the first line of .* holds the value 2019", "header=false"),
        ([("a", "b"), (1, 2)], "?sheet=Dat", "has no sheet Dat", "did you mean Data?"),
        ([("a", "b"), (1, 2)], "?delim=;", "excel files have no option delim", "known: sheet"),
        ([("a", "b"), (1, 2)], "?skip=2", "has no rows behind row 2", "None"),
        ([], "?sheet=Data", "the sheet Data of .* is empty", "None"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_named(
    tmp_path: Path, rows: Sequence[Sequence[object]], options: str, message: str, hint: str
) -> None:
    url = write_workbook(tmp_path / "t.xlsx", {"Data": rows})
    with pytest.raises(SourceError, match=message) as caught:
        connect(url + options)
    assert hint in str(caught.value.hint)
    assert [file.name for file in tmp_path.iterdir()] == ["t.xlsx"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"PK\x03\x04 cut off", "is no complete spreadsheet"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is protected by a password, or is no .xlsx"),
    ],
)
def test_a_damaged_spreadsheet_is_told_from_a_protected_one(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=message):
        connect(str(path))


def test_a_file_that_is_no_spreadsheet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"id,width\n1,2\n")
    with pytest.raises(SourceError, match=r"t\.xlsx is no Excel file") as caught:
        connect(str(path))
    assert caught.value.hint == f"it begins with 'id,width': if it is text, name it as csv:{path}"
