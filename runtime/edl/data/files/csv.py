"""CSV files read exactly: RFC 4180, types determined by all values, no silent guesses.

Fields are separated by commas (tabs in .tsv files). They may be quoted, and may then hold commas, line ends and
doubled quotes. The first line names the columns. If a file looks different, the error says which option to add to its
URL.

A column is BIGINT, DOUBLE, BOOLEAN (true and false), DATE or TIMESTAMP (ISO 8601) if all its values are, and text
otherwise; so codes with leading zeros and whole numbers too large for 64 bits stay text. An empty field is NULL; `""`
is an empty text, but NULL in a column that is not text.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from edl.data.files.csv_index import LineScanner
from edl.data.names import duplicate, quoted
from edl.errors import SourceError

OPTIONS = ("header", "delim", "quote", "escape", "nullstr", "encoding")

_DIGITS = r"[+-]?(0|[1-9]\d{0,18})"
_FRACTION = r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
# type -> pattern of its values, the narrowest first; each value must also be castable.
_TYPES = {
    "BIGINT": _DIGITS,
    "DOUBLE": rf"{_FRACTION}|[+-]?(?i:nan|inf|infinity)",
    "BOOLEAN": "(?i:true|false)",
    "DATE": _DAY,
    "TIMESTAMP": rf"{_DAY}([ T]{_TIME})?",
    "TIMESTAMPTZ": rf"{_DAY}[ T]{_TIME}(Z|[+-]\d{{2}}(:?\d{{2}})?)",
}
# encoding in a URL -> its names in DuckDB and in Python
_ENCODINGS = {
    "utf-8": ("utf-8", "utf-8-sig"),
    "utf-16": ("utf-16", "utf-16"),
    "latin-1": ("latin-1", "latin-1"),
}
BLOCK_BYTES = 4 << 20  # per pass over lines; the masks take about ten times that
FIRST_ROWS = 10_000  # examined before all rows are
_ENCODING_HINT = "if it is not UTF-8, add ?encoding=latin-1 or ?encoding=utf-16 to the URL"
# part of DuckDB's report -> message and hint
_DAMAGES = (
    (
        r"Expected Number of Columns: (\d+) Found: (\d+)",
        "{0} fields are expected, but there are {1}",
        "check its quotes",
    ),
    (
        r"unterminated quote",
        "a quote is not closed, or text follows one",
        "write a quote inside quotes twice",
    ),
    (r"Invalid unicode", "its text is not UTF-8", _ENCODING_HINT),
    (r"invalid state", "the lines end in different ways", "end all lines with a line feed"),
)
_DATA = re.compile(rf"\s*({_FRACTION}|{_DAY}.*)\s*")


def select(connection: duckdb.DuckDBPyConnection, files: Sequence[str], options: Mapping[str, str]) -> str:
    """Return a query of all rows of the files with typed columns. Raises SourceError if the files cannot be read."""
    settings = settled(files[0], options)
    headers = [_header(file, settings, certain="header" in options) for file in files]
    check_same(files, headers)
    try:
        return _typed_rows(connection, files, headers, settings)
    except duckdb.Error as error:
        if not _sound(files, settings):
            raise _damaged(error) from None
    try:  # a parallel scan may start inside a long quoted field and mistake it for rows
        return _typed_rows(connection, files, headers, {**settings, "parallel": "false"})
    except duckdb.Error as error:
        raise _damaged(error) from None


def _typed_rows(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    headers: Sequence[list[str]],
    settings: Mapping[str, str],
) -> str:
    """Build the query. Raises duckdb.Error if a file cannot be read."""
    texts = _texts(files, headers, settings)
    found = types(connection, f"SELECT * FROM ({texts}) LIMIT {FIRST_ROWS}", texts, headers[0])
    columns = ", ".join(_typed(quoted(name), kind) for name, kind in found.items())
    return f"SELECT {columns} FROM ({texts})"


def _sound(files: Sequence[str], settings: Mapping[str, str]) -> bool:
    """Return True if every quote encloses a whole field and is closed.

    DuckDB's single-threaded parser does not check this.
    """
    marks = settings["delim"] + settings["quote"]
    if settings["escape"] != settings["quote"] or not marks.isascii() or settings["encoding"] == "utf-16":
        return False
    for file in files:
        scanner = LineScanner(file, settings["delim"].encode(), settings["quote"].encode(), empty_lines=False)
        opened = gzip.open if file.lower().endswith(".gz") else open
        try:
            with opened(file, "rb") as blocks:
                while block := blocks.read(BLOCK_BYTES):
                    scanner.rows(block)
            scanner.end()
        except (OSError, EOFError, SourceError):
            return False
    return True


def types(
    connection: duckdb.DuckDBPyConnection, first: str, rows: str, names: Sequence[str]
) -> dict[str, str]:
    """Return the type of each column, determined by all its texts.

    `first` is a query of the first FIRST_ROWS rows and `rows` a query of all rows. Patterns are slow, so all rows are
    only asked for the facts that the first rows leave open, and not at all if there are no others.
    """
    anything = _Facts(0, digit=False, fraction=False, fits=tuple(_TYPES))
    number, known = _looked_at(connection, first, dict.fromkeys(names, anything))
    if number >= FIRST_ROWS:
        _, known = _looked_at(connection, rows, known)
    return {name: facts.type for name, facts in known.items()}


def column_names(file: str, options: Mapping[str, str]) -> list[str]:
    """Return a file's column names in order. Raises SourceError if the file cannot be read or has no columns."""
    return _header(file, settled(file, options), certain="header" in options)


def text(value: str) -> str:
    """Return a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def settled(file: str, options: Mapping[str, str]) -> dict[str, str]:
    """Complete the options with their defaults. Raises SourceError for an invalid value."""
    separator = "\t" if re.search(r"\.tsv(\.gz)?$", file, re.IGNORECASE) else ","
    settled = {
        "header": "true",
        "delim": separator,
        "quote": '"',
        "nullstr": "",
        "encoding": "utf-8",
        **options,
    }
    settled.setdefault("escape", settled["quote"])
    if settled["header"].lower() not in ("true", "false"):
        raise SourceError(f"the option header is true or false, not {settled['header']}")
    if settled["encoding"].lower() not in _ENCODINGS:
        raise SourceError(
            f"the encoding {settled['encoding']} is not known", hint=f"known: {', '.join(_ENCODINGS)}"
        )
    for option in ("delim", "quote", "escape"):
        if len(settled[option]) != 1:
            raise SourceError(f"the option {option} is one character, not {settled[option]!r}")
    return settled


def _looked_at(
    connection: duckdb.DuckDBPyConnection, rows: str, known: Mapping[str, _Facts]
) -> tuple[int, dict[str, _Facts]]:
    """Query the rows for their number, and for the facts about each column that `known` leaves open."""
    wanted = [fact for name, facts in known.items() for fact in _asked(quoted(name), facts)]
    [(number, *found)] = connection.execute(
        f"SELECT {', '.join(['count(*)', *wanted])} FROM ({rows})"
    ).fetchall()
    values = iter(found)
    return number, {
        name: _Facts(next(values), next(values), next(values), [kind for kind in facts.fits if next(values)])
        for name, facts in known.items()
    }


def _texts(files: Sequence[str], headers: Sequence[list[str]], settings: Mapping[str, str]) -> str:
    """Return a query of all rows as texts. Files with the same column order are read together."""
    by_header: dict[tuple[str, ...], list[str]] = {}
    for file, header in zip(files, headers, strict=True):
        by_header.setdefault(tuple(header), []).append(file)
    parts = (f"SELECT * FROM {_read(group, names, settings)}" for names, group in by_header.items())
    return " UNION ALL BY NAME ".join(parts)


def _read(files: Sequence[str], names: Sequence[str], settings: Mapping[str, str]) -> str:
    """Return a call of read_csv without auto-detection."""
    nulls = dict.fromkeys(["", settings["nullstr"]])
    arguments = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{text(name)}: 'VARCHAR'" for name in names) + "}",
        "header": settings["header"].lower(),
        **{option: text(settings[option]) for option in ("delim", "quote", "escape")},
        "nullstr": f"[{', '.join(map(text, nulls))}]",
        "encoding": text(_ENCODINGS[settings["encoding"].lower()][0]),
        "allow_quoted_nulls": "false",
        "skip": "0",
        "comment": "''",
        "null_padding": "false",
        "parallel": settings.get("parallel", "true"),
    }
    listed = ", ".join(map(text, files))
    return f"read_csv([{listed}], {', '.join(f'{key} = {value}' for key, value in arguments.items())})"


def _header(file: str, settings: Mapping[str, str], *, certain: bool) -> list[str]:
    """Return a file's column names. `certain`: the user has stated if the first line holds them."""
    first = _first_record(file, settings)
    if settings["header"].lower() == "false":
        return [f"column{number}" for number in range(len(first))]
    if len(first) == 1 and (mark := re.search(r"[;\t|]", first[0])):
        raise SourceError(
            f"{file} has a single column {first[0]!r}",
            hint=f"add ?delim={'%09' if mark[0] == chr(9) else mark[0]} to the URL if {mark[0]!r} separates columns",
        )
    for number, name in enumerate(first, 1):
        if not name.strip():
            raise SourceError(
                f"column {number} of {file} has no name",
                hint="write names into the first line, or add ?header=false to the URL",
            )
        if not certain and _DATA.fullmatch(name):
            raise SourceError(
                f"the first line of {file} should name the columns, but holds the value {name}",
                hint="add ?header=false to the URL if the file has no header, ?header=true if these are names",
            )
    if twice := duplicate(first):
        raise SourceError(f"{file} has more than one column named {twice}", hint="give each its own name")
    return first


def _first_record(file: str, settings: Mapping[str, str]) -> list[str]:
    opened = gzip.open if file.lower().endswith(".gz") else open
    doubled = settings["escape"] == settings["quote"]
    try:
        with opened(file, "rt", encoding=_ENCODINGS[settings["encoding"].lower()][1], newline="") as lines:
            reader = csv.reader(
                lines,
                delimiter=settings["delim"],
                quotechar=settings["quote"],
                doublequote=doubled,
                escapechar=None if doubled else settings["escape"],
            )
            first = next(reader, [])
    except (OSError, EOFError, UnicodeError, csv.Error) as error:
        raise SourceError(f"{file} cannot be read: {error}", hint=_ENCODING_HINT) from None
    if not first:
        raise SourceError(f"{file} has no first line of names or values")
    return first


def check_same(files: Sequence[str], headers: Sequence[list[str]]) -> None:
    for file, header in zip(files, headers, strict=True):
        if sorted(header) != sorted(headers[0]):
            raise SourceError(
                f"{file} has the columns {', '.join(header)}, {files[0]} has {', '.join(headers[0])}",
                hint="name files with the same columns only",
            )


def _damaged(error: duckdb.Error) -> SourceError:
    """Shorten DuckDB's page-long report to one sentence."""
    report = str(error)
    file = re.search(r"^ *file = (.*)$", report, re.MULTILINE)
    line = re.search(r"on Line: (\d+)", report)
    for pattern, words, hint in _DAMAGES:
        if match := re.search(pattern, report):
            where = f"line {line[1]} of {file[1]}: " if line and file else ""
            return SourceError(where + words.format(*match.groups()), hint=hint)
    return SourceError(f"{file[1]}: {report.splitlines()[0]}" if file else report.splitlines()[0])


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts about the values of one column.

    `count` is the number of values, `digit` is true if one holds a digit, `fraction` if one holds a character that
    whole numbers lack, and `fits` lists the types that all values match.
    """

    count: int
    digit: bool
    fraction: bool
    fits: Sequence[str]

    @property
    def type(self) -> str:
        """Narrowest type. Text that passes for a number only because of `nan` stays text."""
        numbers = self.digit and self.fraction
        fitting = (kind for kind in self.fits if self.count and (kind != "DOUBLE" or numbers))
        return next(fitting, "VARCHAR")


def _asked(column: str, known: _Facts) -> list[str]:
    """Return the aggregates that make up `_Facts`, with constants for facts that are already decided."""
    value = f"nullif(trim({column}), '')"
    asked = [f"count({value})"]
    for part, found in ((r"\d", known.digit), ("[.a-zA-Z]", known.fraction)):
        has = f"coalesce(bool_or(regexp_matches({value}, '{part}')), false)"
        asked.append("true" if found else has if "DOUBLE" in known.fits else "false")
    for kind in known.fits:
        fits = f"regexp_full_match({value}, {text(_TYPES[kind])}) AND TRY_CAST({value} AS {kind}) IS NOT NULL"
        asked.append(f"coalesce(bool_and({fits}) FILTER (WHERE {value} IS NOT NULL), true)")
    return asked


def _typed(column: str, kind: str) -> str:
    return column if kind == "VARCHAR" else f"CAST(nullif(trim({column}), '') AS {kind}) AS {column}"
