"""Dialect of a CSV file: encoding, lines before the table, separator, quote, and the names of the columns.

What the URL does not state is found in the first `SAMPLE_BYTES` of the text (the encoding: in the whole file), by
fixed rules. A rule that cannot decide is an error that names the option which does; none chooses the likelier of two.

* The separator is the comma (a tab in .tsv), `;`, tab or `|` with which all rows have the same number of fields, more
  than one. Two such separators are an error.
* Lines that begin with `#` before the table, and do not have its number of fields, are skipped; so is Excel's `sep=;`.
* The quote is `"`, or `'` if only that gives all rows the same number of fields. Blanks beside quoted fields, and
  backslashes before quotes inside of them, are no part of the values if all quotes enclose whole fields then.
* The first row names the columns unless it has numbers or dates. It is a row of values if some of them have fractions
  or occur twice, in columns of such values; with whole numbers alone (2019, 2020) the option `header` decides.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote as percent_escaped

from edl.data.files import csv_encoding
from edl.data.files.csv_copies import NO_REPAIRS, Repairs
from edl.data.files.csv_readings import listed_names
from edl.data.names import duplicate, free_name
from edl.data.url import SourceURL
from edl.errors import SourceError

OPTIONS = (
    "header", "delim", "quote", "escape", "nullstr", "encoding", "skip", "comment", "decimal", "dates", "text",
)  # fmt: skip
SAMPLE_BYTES = 1 << 20
_MOST_SAMPLE = 256 << 20  # of a file with rows longer than the sample
_SAMPLE_ROWS = 1000
_MOST_LINES = 20  # before the table, for the advice to skip them
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "|"}
_NUMBER = r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
_DATA = re.compile(rf"\s*({_NUMBER}|\d{{4}}-\d{{2}}-\d{{2}}.*)\s*")
_WHOLE_NUMBER = re.compile(r"\s*\d+\s*")
_CHOICES = {"header": ("true", "false"), "decimal": (".", ","), "dates": ("day-first", "month-first")}


@dataclass(frozen=True, slots=True)
class CSVDialect:
    """Division of the text of one file into fields. `names`: of its columns, in order.

    `skip`: lines before the row of names or values. `notes`: what was found that is not plain, in a few words each.
    `stated`: the options of a URL that state it.
    """

    delim: str
    quote: str
    escape: str
    header: bool
    encoding: str
    skip: int
    nulls: tuple[str, ...]
    compression: str | None = None
    is_copied: bool = False  # DuckDB reads a copy, in UTF-8 and without the skipped lines
    repairs: Repairs = NO_REPAIRS  # of the copy
    names: tuple[str, ...] = ()
    unnamed_last: bool = False  # the last column is dropped if it has no value
    notes: tuple[str, ...] = ()
    stated: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def is_rfc(self) -> bool:
        """True if quotes are doubled inside of quotes, as RFC 4180 says."""
        return self.escape == self.quote


def settings(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the options of a URL by name; of several `nullstr` the others are `nullstr2` and so on.

    Raises SourceError for an option that is given twice, or has an invalid value.
    """
    stated: dict[str, str] = {}
    for option, value in options:
        if option == "nullstr":
            number = sum(key.startswith(option) for key in stated) + 1
            stated[option if number == 1 else f"{option}{number}"] = value
        elif option in stated:
            raise SourceError(f"the option {option} is given twice", hint=f"keep one: ?{option}={value}")
        else:
            stated[option] = value
    for option, values in _CHOICES.items():
        if option in stated and stated[option].lower() not in values:
            raise SourceError(f"the option {option} is {' or '.join(values)}, not {stated[option]}")
    for option in ("delim", "quote", "escape", "comment"):
        if option in stated and len(stated[option]) != 1:
            empty = f"a shell ends at a semicolon: quote the URL, as in '…?{option}=;'"
            raise SourceError(
                f"the option {option} is one character, not {stated[option]!r}",
                hint=None if stated[option] else empty,
            )
    if "skip" in stated and not (stated["skip"].isascii() and stated["skip"].isdigit()):
        raise SourceError(f"the option skip is a number of lines, not {stated['skip']}")
    if "encoding" in stated:
        csv_encoding.named_encoding(stated["encoding"])
    return stated


def find_dialect(path: str, options: Mapping[str, str], url: SourceURL) -> CSVDialect:
    """Return the dialect of a file. `options`: options that state parts of it; `url`: for hints.

    Raises SourceError if the file cannot be read, or a part is neither stated nor found.
    """
    try:
        encoding = _encoding(path, options)
        sample = _Sample(path, encoding)
    except csv_encoding.EncodingError as error:
        western = with_options(url, ("encoding", csv_encoding.WESTERN))
        hint = f"write {western} if it is of Western Europe, or name another encoding"
        raise SourceError(error.message, hint=hint) from None
    if not sample.text.strip("\r\n"):
        raise SourceError(
            f"{path} is empty", hint="its first line has the names of the columns, the others the rows"
        )
    form, skip = _find_form(path, sample, options, url)
    records = form.records(sample.lines_from(skip), complete=sample.complete)
    records = records if form.width(records) == 1 else [record for record in records if record]
    if not records or not records[0]:
        raise SourceError(f"{path} has no first line of names or values")
    header = find_header(path, records, options, url)
    if header and not any(map(str.strip, records[0])):
        hint = f"write {with_options(url, ('header', 'false'))} if it has values"
        raise SourceError(f"the first line of {path} has no names", hint=hint)
    facts = [
        # option, value, is it plain, words
        (
            "delim",
            form.delim,
            form.delim == _separator_by_suffix(path),
            f"with {_SEPARATORS.get(form.delim)} as the separator",
        ),
        ("quote", form.quote, form.quote == '"', f"with {form.quote} as the quote"),
        ("encoding", encoding, encoding == csv_encoding.UTF8, f"as {encoding}"),
        ("skip", str(skip), not skip, f"from line {skip + 1}"),
        ("header", "false", header, "without a line of names"),
    ]
    said = [
        (option, value, words) for option, value, plain, words in facts if not (plain or option in options)
    ]
    notes, stated = [words for _, _, words in said], [(option, value) for option, value, _ in said]
    notes += ["without the blanks beside quotes"] * form.repairs.blanks
    notes += [rf"with \{form.quote} as a quote inside of quotes"] * form.repairs.escapes
    if not options.keys() & {"delim", "skip"} and (mark := _mark_of_rows(records, form)):
        notes.append(f"as one column; {mark} would divide the rows behind the first line")
    elif "delim" in options and (mark := _mark_of_rows([[], *records], form)):
        notes.append(f"as one column; {mark} divides all its lines: leave ?delim= out")
    dialect = CSVDialect(
        form.delim, form.quote, form.escape, header, encoding, skip, null_texts(options),
        compression=csv_encoding.find_compression(path),
        # DuckDB would look for the end of a quote in the lines that it skips.
        is_copied=encoding != csv_encoding.UTF8
        or bool(form.repairs)
        or form.quote in sample.text[: start_of_table(sample.text, skip)],
        repairs=form.repairs, notes=tuple(notes), stated=tuple(stated),
    )  # fmt: skip
    return name_columns(path, records[0], dialect)


def same_dialect(path: str, stated: Mapping[str, str]) -> CSVDialect:
    """Return the dialect that complete options state, with the names in a file's header."""
    escape, quote = stated.get("escape", stated["quote"]), stated["quote"]
    encoding = csv_encoding.named_encoding(stated["encoding"])
    skip = int(stated.get("skip", "0"))
    dialect = CSVDialect(
        stated["delim"], quote, escape, stated["header"].lower() == "true", encoding, skip, null_texts(stated)
    )
    sample = _Sample(path, encoding)
    form = _Form(dialect.delim, quote, escape)
    records = form.records(sample.lines_from(skip), complete=sample.complete)
    return name_columns(path, records[0] if records else [], dialect)


def null_texts(stated: Mapping[str, str]) -> tuple[str, ...]:
    """Return the texts that are NULL: the empty one, and the values of the option `nullstr`."""
    return tuple(
        dict.fromkeys(["", *(value for name, value in stated.items() if name.startswith("nullstr"))])
    )


def options_of(dialect: CSVDialect) -> dict[str, str]:
    """Return the options that state the dialect; `same_dialect` reads them."""
    first, *others = dialect.nulls[1:] or ("",)
    stated = {
        "header": "true" if dialect.header else "false",
        "delim": dialect.delim,
        "quote": dialect.quote,
        "nullstr": first,
        "encoding": dialect.encoding,
        "escape": dialect.escape,
    }
    stated |= {f"nullstr{number}": text for number, text in enumerate(others, 2)}
    return stated | ({"skip": str(dialect.skip)} if dialect.skip else {})


def with_options(url: SourceURL, *more: tuple[str, str]) -> str:
    """Return the URL with more options, quoted for a shell."""
    names = {name for name, _ in more}
    kept = tuple((name, value) for name, value in url.options if name not in names or name == "nullstr")
    return shlex.quote(str(replace(url, options=(*kept, *more))))


def shown_options(options: Sequence[tuple[str, str]]) -> str:
    """Return options as the end of a URL."""
    return "?" + "&".join(f"{name}={percent_escaped(value, safe='/.-')}" for name, value in options)


class _Sample:
    """Beginning of the text of a file. `complete`: it is all of it."""

    def __init__(self, path: str, encoding: str) -> None:
        text, self.complete, size = "", False, SAMPLE_BYTES
        blocks = csv_encoding.decode_blocks(path, encoding)
        while not self.complete and len(text) < size:
            block = next(blocks, None)
            self.complete = block is None
            text += block or ""
            if len(text) >= size and text.count("\n", 0, size) + text.count("\r", 0, size) < 3:
                size = min(size * 8, _MOST_SAMPLE)
        self.complete = self.complete and len(text) <= size
        self.text = text[:size]

    def lines_from(self, skip: int) -> str:
        """Return the text without its first lines."""
        return self.text[start_of_table(self.text, skip) :]


@dataclass(frozen=True, slots=True)
class _Form:
    """Separator, quote, escape, and what differs from RFC 4180 otherwise."""

    delim: str
    quote: str
    escape: str
    repairs: Repairs = NO_REPAIRS

    def records(self, text: str, *, complete: bool, strict: bool = False) -> list[list[str]]:
        """Return the rows of the text, without a last one that may go on behind it. An empty line is an empty row.

        Of a text with an open quote, the rows before that. strict: the rows before a quote that does not enclose a
        whole field.
        """
        is_doubled = self.escape == self.quote
        reader = csv.reader(
            io.StringIO(self.repair(text), newline=""),
            delimiter=self.delim,
            quotechar=self.quote,
            doublequote=is_doubled,
            escapechar=None if is_doubled else self.escape,
            strict=strict,
        )
        rows: list[list[str]] = []
        limit = csv.field_size_limit(_MOST_SAMPLE)
        try:
            for row in reader:
                rows.append(row)
                if len(rows) > _SAMPLE_ROWS:
                    return rows[:-1]
        except csv.Error:
            return rows
        finally:
            csv.field_size_limit(limit)
        return rows if complete or len(rows) == 1 else rows[:-1]

    def repair(self, text: str) -> str:
        """Return the text as RFC 4180 says."""
        return "".join(self.repairs.apply([text], self.delim, self.quote))

    def with_repairs(self, text: str, *, complete: bool) -> _Form:
        """Return the form with the fewest repairs by which all quotes of the text enclose whole fields, or this one.

        Blanks beside quotes are left out wherever they can be.
        """
        for escapes in (False, True) if self.escape == self.quote else (False,):
            bare = replace(self, repairs=Repairs(escapes=escapes))
            trimmed = replace(self, repairs=Repairs(blanks=True, escapes=escapes))
            for form in (trimmed, bare) if trimmed.repair(text) != bare.repair(text) else (bare,):
                rows = form.records(text, complete=complete, strict=True)
                if form.width(rows) > 1 and rows == form.records(text, complete=complete):
                    return form
        return self

    @staticmethod
    def width(rows: Sequence[Sequence[str]]) -> int:
        """Return the number of fields if all rows that are not empty have the same, or else 0."""
        widths = {len(row) for row in rows if row}
        return widths.pop() if len(widths) == 1 else 0


def _separator_by_suffix(path: str) -> str:
    """Return the separator by the end of the file's name."""
    return "\t" if re.search(r"\.tsv(\.gz|\.zst)?$", path, re.IGNORECASE) else ","


def _encoding(path: str, stated: Mapping[str, str]) -> str:
    detected = csv_encoding.find_encoding(path) if "encoding" not in stated else ""
    return detected or csv_encoding.named_encoding(stated["encoding"])


def start_of_table(text: str, lines: int) -> int:
    """Return the offset behind so many lines, however they end."""
    place = 0
    for _ in range(lines):
        end = re.compile("\r\n?|\n").search(text, place)
        if end is None:
            return len(text)
        place = end.end()
    return place


def _find_form(path: str, sample: _Sample, options: Mapping[str, str], url: SourceURL) -> tuple[_Form, int]:
    """Return the separator and quote, and the number of lines before the table."""
    quote = options.get("quote", '"')
    escape = options.get("escape", quote)
    if "delim" in options:
        forms = [_Form(options["delim"], quote, escape)]
    else:
        forms = [
            _Form(delim, quote, escape) for delim in dict.fromkeys((_separator_by_suffix(path), *_SEPARATORS))
        ]
    if "skip" in options:
        return _find_separator(path, sample, int(options["skip"]), forms, options, url), int(options["skip"])
    skip = _leading_lines(sample.text, options.get("comment", "#"))
    stated = re.match(r'"?sep=(.)"?[\r\n]', sample.text)  # Excel's own
    if stated and stated[1] in _SEPARATORS:
        forms = [candidate for candidate in forms if candidate.delim == stated[1]] or forms
        return _find_separator(path, sample, 1, forms, options, url), 1
    if not skip:
        return _find_separator(path, sample, 0, forms, options, url), 0
    form = _find_separator(path, sample, skip, forms, options, url)
    if "comment" in options:
        return form, skip
    rest = form.records(sample.lines_from(skip), complete=sample.complete)
    while skip:  # a row of names may begin with `#`
        before = form.records(sample.lines_from(skip - 1), complete=sample.complete)
        width = form.width(rest)
        if width != 1 and (not before or len(before[0]) != width) and width:
            break
        skip -= 1
    return form, skip


def _leading_lines(text: str, mark: str) -> int:
    """Return the number of lines at the beginning that begin with the mark, and of empty ones between."""
    lines, place = 0, 0
    for number, match in enumerate(re.finditer("([^\r\n]*)(\r\n?|\n)", text), 1):
        if match.start() != place or (match[1].strip() and not match[1].startswith(mark)):
            break
        place = match.end()
        lines = number
    return lines


def _find_separator(
    path: str, sample: _Sample, skip: int, forms: Sequence[_Form], stated: Mapping[str, str], url: SourceURL
) -> _Form:
    """Return the only form in which all rows have the same number of fields, or else the usual one."""
    text = sample.lines_from(skip)
    forms = [form.with_repairs(text, complete=sample.complete) for form in forms]
    rows = {form: form.records(text, complete=sample.complete) for form in forms}
    even = [form for form in forms if form.width(rows[form]) > 1]
    if len(even) > 1:
        marks = " or ".join(_SEPARATORS[form.delim] for form in even)
        ways = " or ".join(with_options(url, ("delim", form.delim)) for form in even)
        raise SourceError(f"the fields of {path} may be separated by {marks}", hint=f"write {ways}")
    if even:
        return even[0]
    if "quote" not in stated and '"' not in text and "'" in text:
        others = [replace(form, quote="'", escape="'") for form in forms]
        even = [form for form in others if form.width(form.records(text, complete=sample.complete)) > 1]
        if len(even) == 1:
            return even[0]
    first = {form: len(rows[form][0]) if rows[form] else 0 for form in forms}
    if forms[0].width(rows[forms[0]]) == 1 and max(first.values()) == 1:
        return forms[0]
    if "skip" not in stated:
        _check_lines_before(path, sample, forms, url)
    return max(forms, key=lambda form: first[form])  # rows of other lengths: reading the file says which


def _check_lines_before(path: str, sample: _Sample, forms: Sequence[_Form], url: SourceURL) -> None:
    """Raise SourceError if some first lines have fewer fields, and the rows behind them are even."""
    for skip in range(1, _MOST_LINES):
        for form in forms:
            before = form.records(sample.text, complete=sample.complete)
            rows = [row for row in form.records(sample.lines_from(skip), complete=sample.complete) if row]
            width = form.width(rows)
            if len(rows) < 2 or len(before[0]) >= width:
                continue
            if skip == 1 and len(before[0]) == width - 1 > 1:
                is_last_empty = not any(row[-1] for row in rows)
                raise SourceError(
                    f"the first line of {path} has {width - 1} names, and the rows have {width} fields",
                    hint=f"write {form.delim!r} at the end of the line, too"
                    if is_last_empty
                    else "write a name for the first column into the line",
                )
            raise SourceError(
                f"line 1 of {path} is not part of the table, which begins at line {skip + 1}",
                hint=f"write {with_options(url, ('skip', str(skip)))}",
            )


def _mark_of_rows(records: Sequence[Sequence[str]], form: _Form) -> str | None:
    """Return the separator in all rows of a single column except the first; that may be a title."""
    if len(records) < 3 or form.width(records) != 1:
        return None
    counts = {mark: {row[0].count(mark) for row in records[1:] if row} for mark in _SEPARATORS}
    return next(
        (_SEPARATORS[mark] for mark, numbers in counts.items() if len(numbers) == 1 and 0 not in numbers),
        None,
    )


def find_header(
    path: str, records: Sequence[Sequence[str]], stated: Mapping[str, str], url: SourceURL
) -> bool:
    """Return True if the first row has the names. Raises SourceError if that is neither stated nor found."""
    if "header" in stated:
        return stated["header"].lower() == "true"
    first, rest = records[0], records[1:]
    values = [place for place, name in enumerate(first) if _DATA.fullmatch(name)]
    if not values:
        return True
    marks = [first[place].strip() for place in values]
    is_certain = any(not _WHOLE_NUMBER.fullmatch(mark) for mark in marks) or len(set(marks)) < len(marks)
    like = rest and all(
        not row[place].strip() or _DATA.fullmatch(row[place])
        for row in rest
        for place in values
        if place < len(row)
    )
    if is_certain and like:
        return False
    raise SourceError(
        f"the first line of {path} should name the columns, but holds the value {marks[0]}",
        hint=f"write {with_options(url, ('header', 'false'))} if the file has no header, "
        f"{with_options(url, ('header', 'true'))} if these are names",
    )


def name_columns(path: str, first: Sequence[str], dialect: CSVDialect) -> CSVDialect:
    """Return the dialect with the names of the columns."""
    if not dialect.header:
        return replace(dialect, names=tuple(f"column{place}" for place in range(len(first))))
    names, notes = [name.strip() for name in first], list(dialect.notes)
    if trimmed := [name for name, cell in zip(names, first, strict=True) if name != cell]:
        notes.append(
            f"without the blanks around the name{'s' if len(trimmed) > 1 else ''} {listed_names(trimmed)}"
        )
    numbered = [name or free_name(f"column{place}", names) for place, name in enumerate(names)]
    unnamed_last = bool(names) and not names[-1]  # a note says what becomes of it, once its values are known
    unnamed = [new for new, name in zip(numbered[:-1], names, strict=False) if not name]
    if unnamed:
        plural = "s" if len(unnamed) > 1 else ""
        notes.append(f"with the name{plural} {listed_names(unnamed)} where the first line has none")
    if damaged := next((name for name in names if "\0" in name), None):
        raise SourceError(f"{path} has a zero byte in the column name {damaged!r}", hint="remove it")
    if twice := duplicate(numbered):
        raise SourceError(f"{path} has more than one column named {twice}", hint="give each its own name")
    return replace(dialect, names=tuple(numbered), unnamed_last=unnamed_last, notes=tuple(notes))
