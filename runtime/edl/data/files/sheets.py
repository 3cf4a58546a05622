"""Sheets of spreadsheet files as CSV files: .xlsx, .xlsm, .xlsb, .xls and .ods, read by python-calamine.

A sheet is copied as text, and the copy is read by the rules of `edl.data.files.csv`, so the rows of a sheet become the
rows that its program would export. A cell has a type of its own, which the text must not change: numbers are written
with all their digits, days as ISO 8601, and a column whose cells are numbers and texts is a number only if every tool
would read its texts as the same numbers. Formulas are the values that the file holds for them; a cell with an error
such as #N/A is empty, that is, NULL.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import duckdb

from edl.data.files import csv_dialect, csv_encoding, csv_readings
from edl.data.files.csv import CSVFiles, check_same, observe_files
from edl.data.files.csv_dialect import Dialect, with_options
from edl.data.url import SourceURL
from edl.errors import SourceError, did_you_mean
from edl.installation import install_extras

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

OPTIONS = ("sheet", "header", "skip", "nullstr", "decimal", "dates", "text")
_DELIMITER = "\t"  # texts with a decimal comma are numbers, as the rules of CSV say for such a separator
_MOST_FIRST_ROWS = 1000  # for the rule that finds a row of names
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_TITLES = 20  # rows before the table, for the advice to skip them

_OLD_FORM = b"\xd0\xcf\x11\xe0"  # of .xls, and of any spreadsheet with a password
_KINDS = {
    int: "numbers",
    float: "numbers",
    bool: "true or false",
    dt.date: "days",
    dt.datetime: "days",
    dt.time: "times of day",
    dt.timedelta: "durations",
}

Cell = str | float | bool | dt.date | dt.time | dt.timedelta  # a datetime is a date


def open_sheets(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[str], url: SourceURL, folder: Path
) -> CSVFiles:
    """Copy a sheet of each file into `folder`, and find the types of the columns from all their values.

    Raises SourceError if a file is damaged, has no such sheet, or a rule cannot decide.
    """
    given = csv_dialect.settings(url.options)
    dialects: list[Dialect] = []
    copies: dict[str, str] = {}
    mixed: dict[str, str] = {}
    for path in paths:
        rows, note = _read_rows(path, given, url)
        texts, odd_cells = _convert_rows(rows)
        dialect = _find_dialect(path, texts, given, url)
        mixed |= {dialect.names[place]: text for place, text in odd_cells.items()}
        notes = (note, *dialect.notes) if note else dialect.notes
        dialects.append(replace(dialect, notes=notes))
        copies[path] = str(folder / f"{len(copies)}.csv")
        with Path(copies[path]).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=_DELIMITER, lineterminator="\n").writerows(texts)
    check_same(paths, [dialect.names for dialect in dialects])
    # a line feed in a cell would mislead a scan in parallel
    files = CSVFiles(tuple(paths), tuple(dialects), {}, copies, parallel=False)
    found = observe_files(connection, files, given, url)
    columns = {**found.columns, **{name: _without_forms(found.columns[name]) for name in mixed}}
    first = replace(dialects[0], notes=(*dialects[0].notes, *_describe_mixed(columns, mixed)))
    return replace(found, columns=columns, dialects=(first, *dialects[1:]))


def _read_rows(path: str, given: Mapping[str, str], url: SourceURL) -> tuple[list[list[Cell]], str]:
    """Return the rows of the sheet behind the skipped ones, without empty rows, and a note on which sheet it is."""
    with _open_workbook(path) as workbook:
        sheet, note = _find_sheet(workbook, path, given, url)
        start = sheet.start
        rows: list[list[Cell]] = sheet.to_python(skip_empty_area=True)
    if start is None or not rows:
        raise SourceError(f"the sheet {sheet.name} of {path} is empty")
    skipped = max(0, int(given.get("skip", "0")) - start[0])
    numbered = [
        (start[0] + place + 1, row)
        for place, row in enumerate(rows)
        if place >= skipped and any(_is_filled(row))
    ]
    if not numbered:
        raise SourceError(f"the sheet {sheet.name} of {path} has no rows behind row {given['skip']}")
    if "skip" not in given:
        _check_titles(f"the sheet {sheet.name} of {path}", numbered, url)
    return [row for _, row in numbered], note


def _open_workbook(path: str) -> CalamineWorkbook:
    try:
        from python_calamine import CalamineError, PasswordError, load_workbook
    except ImportError:
        raise SourceError(
            f"{path} is a spreadsheet, which needs python-calamine",
            hint=f"{install_extras('excel')}, or save the sheet as CSV",
        ) from None
    try:
        return load_workbook(path)
    except PasswordError:
        raise SourceError(f"{path} is encrypted", hint="save a copy without a password") from None
    except (CalamineError, OSError) as error:
        raise _no_spreadsheet(path, error) from None


def _find_sheet(
    workbook: CalamineWorkbook, path: str, given: Mapping[str, str], url: SourceURL
) -> tuple[CalamineSheet, str]:
    """Return the sheet that the URL names, or else the first one that is visible and has cells."""
    from python_calamine import SheetVisibleEnum

    if name := given.get("sheet"):
        if name not in workbook.sheet_names:
            raise SourceError(f"{path} has no sheet {name}", hint=did_you_mean(name, workbook.sheet_names))
        return workbook.get_sheet_by_name(name), ""
    visible = [each.name for each in workbook.sheets_metadata if each.visible == SheetVisibleEnum.Visible]
    sheets = [workbook.get_sheet_by_name(each) for each in visible]
    filled = [sheet for sheet in sheets if sheet.start is not None]
    if not filled:
        raise SourceError(
            f"{path} has no visible sheet with cells", hint=f"its sheets: {', '.join(workbook.sheet_names)}"
        )
    if len(filled) == 1:
        return filled[0], ""
    other = with_options(url, ("sheet", filled[1].name))
    return filled[0], f"from the sheet {filled[0].name}, the first of {len(filled)}; {other} names another"


def _is_filled(row: Iterable[Cell]) -> Iterable[bool]:
    return (not isinstance(cell, str) or bool(cell.strip()) for cell in row)


def _check_titles(where: str, rows: Sequence[tuple[int, Sequence[Cell]]], url: SourceURL) -> None:
    """Raise SourceError if the first row fills at most half of the columns, and a later one names all of them."""
    number, first = rows[0]
    filled = sum(_is_filled(first))
    if filled * 2 > len(first):
        return
    for later, row in rows[1:_MOST_TITLES]:
        if all(_is_filled(row)) and all(isinstance(cell, str) for cell in row):
            raise SourceError(
                f"row {number} of {where} fills {filled} of {len(first)} columns; row {later} seems to have the names",
                hint=f"write {with_options(url, ('skip', str(later - 1)))}",
            )


def _convert_rows(rows: Sequence[Sequence[Cell]]) -> tuple[list[list[str]], dict[int, str]]:
    """Return the cells as texts; and place -> what is odd in the cells of a column."""
    names, *values = rows
    columns = list(zip(*values, strict=True)) if values else [() for _ in names]
    texts = [_convert_column(column) for column in columns]
    odd = {place: text for place, column in enumerate(columns) if (text := _find_odd_cells(column))}
    first = [_convert_column([cell])[0] for cell in names]
    return [first, *map(list, zip(*texts, strict=True))], odd


def _find_odd_cells(cells: Sequence[Cell]) -> str:
    """Say which cells are unlike the others: a text that is not written as a number, or days; else an empty text."""
    kinds = {_KINDS.get(type(cell), "") for cell in cells} - {""}
    if len(kinds) > 1:
        return f"some of its cells are {', others '.join(sorted(kinds))}"
    if kinds != {"numbers"}:
        return ""
    texts = (cell.strip() for cell in cells if isinstance(cell, str))
    odd = (text for text in texts if text not in ("", csv_readings.NA) and not _NUMBER.fullmatch(text))
    if not (text := next(odd, "")):
        return ""
    nulls = f"?nullstr={quote(text, safe='')} makes that NULL"
    return f"some of its cells are numbers, others texts such as {text!r} ({nulls})"


def _convert_column(cells: Sequence[Cell]) -> list[str]:
    """Return the texts of the cells. Days among times of day get a time, so that all have one form."""
    has_times = any(type(cell) is dt.datetime for cell in cells)
    converters: dict[type, Callable[[Any], str]] = {
        str: str,
        bool: lambda cell: "true" if cell else "false",
        int: str,
        float: _write_number,
        dt.date: lambda cell: f"{cell} 00:00:00" if has_times else str(cell),
        dt.datetime: str,
        dt.time: str,
        dt.timedelta: _write_duration,
    }
    return [converters[type(cell)](cell) for cell in cells]


def _write_number(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _write_duration(duration: dt.timedelta) -> str:
    """Return hours, minutes and seconds, as in 26:00:00."""
    hours, rest = divmod(duration, dt.timedelta(hours=1))
    return f"{hours:02}:{str(rest)[2:]}"


def _find_dialect(
    path: str, rows: Sequence[Sequence[str]], given: Mapping[str, str], url: SourceURL
) -> Dialect:
    """Return the dialect of the copy, with the names of the columns."""
    header = csv_dialect.find_header(path, rows[:_MOST_FIRST_ROWS], given, url)
    found = Dialect(
        _DELIMITER, '"', '"', header, csv_encoding.UTF8, 0, csv_dialect.null_texts(given), is_copied=True
    )
    return csv_dialect.name_columns(path, rows[0], found)


def _without_forms(column: csv_readings.Column) -> csv_readings.Column:
    """Return a column of numbers and texts without the readings that know forms of numbers.

    The cell with the number 1.234 among texts such as 1.234,50 is no 1234.
    """
    return replace(column, fitting=[reading for reading in column.fitting if reading.is_plain])


def _describe_mixed(columns: Mapping[str, csv_readings.Column], mixed: Mapping[str, str]) -> list[str]:
    return [
        f"with {name} as text: {why}"
        for name, why in mixed.items()
        if columns[name].number and columns[name].reading is None
    ]


def _no_spreadsheet(path: str, error: Exception) -> SourceError:
    """Return the error of a file that is no spreadsheet, with its first characters if they are text."""
    with suppress(OSError):
        with Path(path).open("rb") as file:
            begins = file.read(20)
        if not begins:
            return SourceError(f"{path} is empty")
        if begins.startswith(_OLD_FORM) and path.lower().endswith(".xlsx"):
            hint = "save a copy without a password as .xlsx, or name an old file .xls"
            return SourceError(f"{path} is protected by a password, or is no .xlsx", hint=hint)
        if begins.startswith(b"PK"):
            hint = "copy it again, or save it once more as .xlsx"
            return SourceError(f"{path} is no complete spreadsheet of this form: {error}", hint=hint)
        if (
            begins
            and begins.isascii()
            and begins.split(b"\n")[0].decode().isprintable()
            and begins[:2] != b"PK"
        ):
            shown = begins.split(b"\n")[0].decode()
            hint = f"it begins with {shown!r}: if it is text, name it as csv:{path}"
            return SourceError(f"{path} is no Excel file", hint=hint)
    return SourceError(f"{path} cannot be read as a spreadsheet: {error}")
