"""CSV files read exactly: RFC 4180, types by all values, and nothing guessed in silence.

Fields are separated by commas (tabs in .tsv files), may be quoted, and may then hold commas, line ends and doubled
quotes. The first line names the columns. Where a file looks otherwise the error says which option to add to its URL.

A column is BIGINT, DOUBLE, BOOLEAN (true and false), DATE or TIMESTAMP (ISO 8601) when all its values are, and text
otherwise; so a code with leading zeros, or a whole number too large for 64 bits, stays the text that it is. A field
with nothing in it is NULL; `""` is an empty text, but NULL in a column that is not text.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from edl.data.csv_index import LineScanner
from edl.data.names import duplicate, quoted
from edl.errors import SourceError

OPTIONS = ("header", "delim", "quote", "escape", "nullstr", "encoding")

_DIGITS = r"[+-]?(0|[1-9]\d{0,18})"
_FRACTION = r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
# type -> what all its values match, the narrowest first; each must also be castable.
_TYPES = {
    "BIGINT": _DIGITS,
    "DOUBLE": rf"{_FRACTION}|[+-]?(?i:nan|inf|infinity)",
    "BOOLEAN": "(?i:true|false)",
    "DATE": _DAY,
    "TIMESTAMP": rf"{_DAY}([ T]{_TIME})?",
    "TIMESTAMPTZ": rf"{_DAY}[ T]{_TIME}(Z|[+-]\d{{2}}(:?\d{{2}})?)",
}
# what a URL may say -> what DuckDB calls it, what Python does
_ENCODINGS = {
    "utf-8": ("utf-8", "utf-8-sig"),
    "utf-16": ("utf-16", "utf-16"),
    "latin-1": ("latin-1", "latin-1"),
}
BLOCK_BYTES = 4 << 20  # that a pass over lines looks at together; its masks take some ten times that
FIRST_ROWS = 10_000  # that are looked at before all rows are
_ENCODING_HINT = "if it is not UTF-8, add ?encoding=latin-1 or ?encoding=utf-16 to the URL"
# part of DuckDB's report -> our words, and a hint
_DAMAGES = (
    (
        r"Expected Number of Columns: (\d+) Found: (\d+)",
        "{0} fields are expected, and it has {1}",
        "check its quotes",
    ),
    (
        r"unterminated quote",
        "a quote is not closed, or text follows one",
        "a quote inside quotes is written twice",
    ),
    (r"Invalid unicode", "its text is not UTF-8", _ENCODING_HINT),
    (r"invalid state", "the lines end in different ways", "let all lines end with a line feed"),
)
_DATA = re.compile(rf"\s*({_FRACTION}|{_DAY}.*)\s*")


def select(connection: duckdb.DuckDBPyConnection, files: Sequence[str], options: Mapping[str, str]) -> str:
    """A query of all rows of the files, each column of its type. SourceError: they cannot be read."""
    settings = settled(files[0], options)
    headers = [_header(file, settings, certain="header" in options) for file in files]
    check_same(files, headers)
    try:
        return _typed_rows(connection, files, headers, settings)
    except duckdb.Error as error:
        if not _sound(files, settings):
            raise _damaged(error) from None
    try:  # several threads may begin inside of a long quoted field and take it for rows
        return _typed_rows(connection, files, headers, {**settings, "parallel": "false"})
    except duckdb.Error as error:
        raise _damaged(error) from None


def _typed_rows(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[str],
    headers: Sequence[list[str]],
    settings: Mapping[str, str],
) -> str:
    """The query; duckdb.Error: a file cannot be read."""
    texts = _texts(files, headers, settings)
    found = types(connection, f"SELECT * FROM ({texts}) LIMIT {FIRST_ROWS}", texts, headers[0])
    columns = ", ".join(_typed(quoted(name), kind) for name, kind in found.items())
    return f"SELECT {columns} FROM ({texts})"


def _sound(files: Sequence[str], settings: Mapping[str, str]) -> bool:
    """Whether every quote stands around a whole field and is closed: a single thread does not complain otherwise."""
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
    """The type of each column by all its texts; `first` and `rows` are queries of the first of them and of all.

    Patterns are slow: of all rows only that is asked which the first rows leave open.
    """
    anything = _Facts(0, digit=False, fraction=False, fits=tuple(_TYPES))
    known = _looked_at(connection, first, dict.fromkeys(names, anything))
    return {name: facts.type for name, facts in _looked_at(connection, rows, known).items()}


def column_names(file: str, options: Mapping[str, str]) -> list[str]:
    """The names of a file's columns, in its order. SourceError: it cannot be read, or has none."""
    return _header(file, settled(file, options), certain="header" in options)


def text(value: str) -> str:
    """A literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def settled(file: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options with their defaults. SourceError: a value that is none."""
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
) -> dict[str, _Facts]:
    """What the rows say of each column, where some of them have said this."""
    wanted = [fact for name, facts in known.items() for fact in _asked(quoted(name), facts)]
    values = iter(connection.execute(f"SELECT {', '.join(wanted)} FROM ({rows})").fetchall()[0])
    return {
        name: _Facts(next(values), next(values), next(values), [kind for kind in facts.fits if next(values)])
        for name, facts in known.items()
    }


def _texts(files: Sequence[str], headers: Sequence[list[str]], settings: Mapping[str, str]) -> str:
    """A query of all rows as texts; files whose columns have one order are read together."""
    by_header: dict[tuple[str, ...], list[str]] = {}
    for file, header in zip(files, headers, strict=True):
        by_header.setdefault(tuple(header), []).append(file)
    parts = (f"SELECT * FROM {_read(group, names, settings)}" for names, group in by_header.items())
    return " UNION ALL BY NAME ".join(parts)


def _read(files: Sequence[str], names: Sequence[str], settings: Mapping[str, str]) -> str:
    """A call of read_csv that has nothing to find out."""
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
    """The names of a file's columns. certain: the user says whether the first line has them."""
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
                f"the first line of {file} should name the columns, and has the value {name}",
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
        raise SourceError(f"{file} begins with no line of names or values")
    return first


def check_same(files: Sequence[str], headers: Sequence[list[str]]) -> None:
    for file, header in zip(files, headers, strict=True):
        if sorted(header) != sorted(headers[0]):
            raise SourceError(
                f"{file} has the columns {', '.join(header)}, {files[0]} has {', '.join(headers[0])}",
                hint="name files with the same columns only",
            )


def _damaged(error: duckdb.Error) -> SourceError:
    """DuckDB's report, which is a page long, as a sentence."""
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
    """Of a column: how many values it has, whether one has a digit, whether one has something that a whole number has
    not, and the types that all values are of."""

    count: int
    digit: bool
    fraction: bool
    fits: Sequence[str]

    @property
    def type(self) -> str:
        """The narrowest; text that looks like a number only because it says `nan` stays text."""
        numbers = self.digit and self.fraction
        fitting = (kind for kind in self.fits if self.count and (kind != "DOUBLE" or numbers))
        return next(fitting, "VARCHAR")


def _asked(column: str, known: _Facts) -> list[str]:
    """The aggregates that `_Facts` are made of, with constants for what some of the rows have decided."""
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
