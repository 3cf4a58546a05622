"""Sheets of spreadsheet files as CSV files: .xlsx, .xlsm, .xlsb, .xls and .ods, read by python-calamine.

A sheet is copied as text, and the copy is read by the rules of `edl.data.files.csv`, so the rows of a sheet become the
rows that its program would export. A cell has a type of its own, which the text must not change: numbers are written
with all their digits, days as ISO 8601, and a column of numbers and texts is a number only if every tool would read its
texts as the same numbers. Formulas are the values that the file holds for them; a cell with an error such as #N/A is
empty, that is, NULL.
"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from edl.data.files import csv_dialect, csv_encoding, csv_readings
from edl.data.files.csv import CSVFiles, check_same, observe_files
from edl.data.files.csv_dialect import CSVDialect, with_options
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
_MOST_WHOLE = 1e15  # a float64 holds every whole number below it
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
    options = csv_dialect.settings(url.options)
    dialects: list[CSVDialect] = []
    copies: dict[str, str] = {}
    mixed: dict[str, str] = {}
    for path in paths:
        rows, note = _read_rows(path, options, url)
        texts, odd_cells = _convert_rows(rows)
        dialect = _find_dialect(path, texts, options, url)
        mixed |= {dialect.names[place]: why for place, why in odd_cells.items()}
        notes = (note, *dialect.notes) if note else dialect.notes
        dialects.append(replace(dialect, notes=notes))
        copies[path] = str(folder / f"{len(copies)}.csv")
        _write_copy(texts, copies[path])
    check_same(paths, [dialect.names for dialect in dialects])
    # a line feed in a cell would mislead a scan in parallel
    files = CSVFiles(tuple(paths), tuple(dialects), {}, copies, parallel=False)
    observed = observe_files(connection, files, options, url)
    columns = {**observed.columns, **{name: _without_forms(observed.columns[name]) for name in mixed}}
    first = replace(dialects[0], notes=(*dialects[0].notes, *_describe_mixed(columns, mixed)))
    return replace(observed, columns=columns, dialects=(first, *dialects[1:]))


def _read_rows(path: str, options: Mapping[str, str], url: SourceURL) -> tuple[list[list[Cell]], str]:
    """Return the rows of the sheet, beginning with the row of names, and a note on the choice of the sheet."""
    with _open_workbook(path) as workbook:
        sheet, note = _find_sheet(workbook, path, options, url)
        start = sheet.start
        rows: list[list[Cell]] = sheet.to_python(skip_empty_area=True)
    if start is None or not rows:
        raise SourceError(f"the sheet {sheet.name} of {path} is empty")
    skipped = max(0, int(options.get("skip", "0")) - start[0])
    filled = (place for place in range(skipped, len(rows)) if any(_is_filled(rows[place])))
    top = [(start[0] + place + 1, rows[place]) for place in itertools.islice(filled, _MOST_TITLES)]
    if not top:
        raise SourceError(f"the sheet {sheet.name} of {path} has no rows behind row {options['skip']}")
    if "skip" not in options:
        _check_titles(f"the sheet {sheet.name} of {path}", top, url)
    return rows[top[0][0] - start[0] - 1 :], note


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
    workbook: CalamineWorkbook, path: str, options: Mapping[str, str], url: SourceURL
) -> tuple[CalamineSheet, str]:
    """Return the sheet that the URL names, or else the first one that is visible and has cells."""
    from python_calamine import SheetVisibleEnum

    if name := options.get("sheet"):
        if name not in workbook.sheet_names:
            raise SourceError(f"{path} has no sheet {name}", hint=did_you_mean(name, workbook.sheet_names))
        return workbook.get_sheet_by_name(name), ""
    visible = [
        name_of_sheet.name
        for name_of_sheet in workbook.sheets_metadata
        if name_of_sheet.visible == SheetVisibleEnum.Visible
    ]
    sheets = [workbook.get_sheet_by_name(name_of_sheet) for name_of_sheet in visible]
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
    for later, row in rows[1:]:
        if all(_is_filled(row)) and all(isinstance(cell, str) for cell in row):
            raise SourceError(
                f"row {number} of {where} fills {filled} of {len(first)} columns; row {later} seems to have the names",
                hint=f"write {with_options(url, ('skip', str(later - 1)))}",
            )


def _convert_rows(rows: Sequence[Sequence[Cell]]) -> tuple[list[pa.Array], dict[int, str]]:
    """Return the columns as texts, with the names first; and place -> what is odd in the cells of a column."""
    names, *values = rows
    columns: list[Sequence[Cell]] = list(zip(*values, strict=True)) if values else [() for _ in names]
    odd = {place: why for place, column in enumerate(columns) if (why := _find_odd_cells(column))}
    texts = _drop_empty_rows([_convert_column(column) for column in columns])
    heads = [_convert_column([cell]) for cell in names]
    return [pa.concat_arrays(pair) for pair in zip(heads, texts, strict=True)], odd


def _drop_empty_rows(columns: Sequence[pa.Array]) -> Sequence[pa.Array]:
    """Leave out rows that have only NULL and blanks. A column without NULL, as most tables have, shows that none is."""
    has_value = None
    for column in columns:
        is_value = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
        if pc.all(is_value).as_py():
            return columns
        has_value = is_value if has_value is None else pc.or_(has_value, is_value)
    return [column.filter(has_value) for column in columns]


def _find_odd_cells(cells: Sequence[Cell]) -> str:
    """Say which cells are unlike the others: a text that is not written as a number, or days; else an empty text."""
    kinds = {_KINDS.get(kind, "") for kind in set(map(type, cells))} - {""}
    if len(kinds) > 1:
        return f"some of its cells are {', others '.join(sorted(kinds))}"
    if kinds != {"numbers"}:
        return ""
    texts = (cell.strip() for cell in cells if cell != "" and isinstance(cell, str))
    odd = (text for text in texts if text not in ("", csv_readings.NA) and not _NUMBER.fullmatch(text))
    if not (text := next(odd, "")):
        return ""
    nulls = f"?nullstr={quote(text, safe='')} makes that NULL"
    return f"some of its cells are numbers, others texts such as {text!r} ({nulls})"


def _convert_column(cells: Sequence[Cell]) -> pa.Array:
    """Return the texts of the cells, with NULL for the empty ones.

    Days among times of day get a time, so that all have one form.
    """
    values = [None if cell == "" else cell for cell in cells]
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if kinds == {float}:
        return _write_numbers(pa.array(values, pa.float64()))
    converters: dict[type, Callable[[Any], str | None]] = {
        type(None): lambda cell: None,
        str: str,
        bool: lambda cell: "true" if cell else "false",
        int: str,
        float: lambda cell: _write_numbers(pa.array([cell]))[0].as_py(),
        dt.date: lambda cell: f"{cell} 00:00:00" if dt.datetime in kinds else str(cell),
        dt.datetime: str,
        dt.time: str,
        dt.timedelta: _write_duration,
    }
    return pa.array([converters[type(cell)](cell) for cell in values], pa.string())


def _write_numbers(numbers: pa.Array) -> pa.Array:
    """Return the shortest texts that are read as the same numbers; whole ones without a point or an exponent."""
    is_whole = pc.and_(pc.equal(pc.floor(numbers), numbers), pc.less(pc.abs(numbers), _MOST_WHOLE))
    whole = pc.cast(pc.if_else(is_whole, numbers, None), pa.int64())
    return pc.if_else(is_whole, pc.cast(whole, pa.string()), pc.cast(numbers, pa.string()))


def _write_duration(duration: dt.timedelta) -> str:
    """Return hours, minutes and seconds, as in 26:00:00."""
    hours, rest = divmod(duration, dt.timedelta(hours=1))
    return f"{hours:02}:{str(rest)[2:]}"


def _write_copy(columns: Sequence[pa.Array], path: str) -> None:
    """Write the texts as CSV. Arrow's writer would put all of them in quotes; a text in quotes is never NULL."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        csv.writer(file, delimiter=_DELIMITER, lineterminator="\n").writerows(rows)


def _find_dialect(
    path: str, columns: Sequence[pa.Array], options: Mapping[str, str], url: SourceURL
) -> CSVDialect:
    """Return the dialect of the copy, with the names of the columns."""
    top = (column.slice(0, _MOST_FIRST_ROWS).to_pylist() for column in columns)
    rows = [[text or "" for text in row] for row in zip(*top, strict=True)]
    header = csv_dialect.find_header(path, rows, options, url)
    dialect = CSVDialect(
        _DELIMITER, '"', '"', header, csv_encoding.UTF8, 0, csv_dialect.null_texts(options), is_copied=True
    )
    return csv_dialect.name_columns(path, rows[0], dialect)


def _without_forms(column: csv_readings.CSVColumn) -> csv_readings.CSVColumn:
    """Return a column of numbers and texts without the readings that know forms of numbers.

    The cell with the number 1.234 among texts such as 1.234,50 is no 1234.
    """
    return replace(column, fitting=[reading for reading in column.fitting if reading.is_plain])


def _describe_mixed(columns: Mapping[str, csv_readings.CSVColumn], mixed: Mapping[str, str]) -> list[str]:
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
