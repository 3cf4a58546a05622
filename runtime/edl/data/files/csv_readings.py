"""Readings of CSV columns: how texts become numbers, dates and times.

`READINGS` is the one table. A column has the first reading that every non-empty value of all files fits, and that some
value decides where two readings look alike (the 13th of a month tells day/month from month/day); without one it stays
text. Blanks around values are ignored. The SQL source and the reader of row ranges both use the table, so both give the
same values. A reading is stored with a model by its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from edl.errors import SourceError
from edl.spec.computed import SYMBOLS

TEXT = "VARCHAR"
NA = "NA"  # of R and pandas, for NULL
_WITH_NA = f" {NA}"  # end of the name of a reading

_TIME = r"[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_CLOCK = r"[ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?"  # also with hours of one digit
_HALF_DAY = r"[ T](0?[1-9]|1[0-2]):\d{2}(:\d{2}(\.\d{1,6})?)? ?(?i:[ap]\.?m\.?)"
_DAY = r"\d{4}-\d{2}-\d{2}"
_EXPONENT = r"([eE][+-]?\d+)?"
_WHOLE = r"(0|[1-9]\d*)"
_MARKS = {".": "a decimal point", ",": "a decimal comma"}
_NARROW = "\u00a0\u202f"  # blanks that no line ends at
_EXACT_DIGITS = 15  # a float64 holds every whole number of so many digits
_MIDNIGHT = r"[ T]24:00(:00(\.0*)?)?"  # the end of a day in ISO 8601, which Arrow does not read
CURRENCIES = (
    *SYMBOLS,
    "EUR",
    "USD",
    "GBP",
    "CHF",
    "kr",
    "SEK",
    "NOK",
    "DKK",
    "PLN",
    "zł",
    "CZK",
    "Kč",
    "Ft",
)
_MONTHS = (
    "jan(uary)?", "feb(ruary)?", "mar(ch)?", "apr(il)?", "may", "june?", "july?", "aug(ust)?", "sept?(ember)?",
    "oct(ober)?", "nov(ember)?", "dec(ember)?",
)  # fmt: skip
THREADS = 4
SHARED_ROWS = 8192  # batches of fewer rows are faster in one thread


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read the texts of a column.

    `type` is DuckDB's type. `pattern` matches every value without surrounding blanks. `steps` are replacements, each a
    pattern and a text with \\1 for its first group, that make the value one that both DuckDB and Arrow cast to the
    type. `evidence` must match some value. `words` say the form, for notes. `options` of the URL state this reading
    without evidence. `covers` names a narrower reading: this one fits all values of it. `has_na`: some values are `NA`,
    which is NULL.
    """

    name: str
    type: str
    pattern: str
    steps: tuple[tuple[str, str], ...] = ()
    evidence: str = ""
    words: str = ""
    options: tuple[tuple[str, str], ...] = ()
    covers: str = ""
    has_na: bool = False

    @property
    def arrow(self) -> pa.DataType:
        return ARROW[self.type]

    @property
    def is_plain(self) -> bool:
        """True for readings that need no word to the user: every tool reads such values alike."""
        return not self.words

    def sql(self, column: str) -> str:
        """Return SQL that converts the trimmed, non-empty texts of a column of DuckDB."""
        if self.has_na:
            column = f"nullif({column}, '{NA}')"
        for pattern, replacement in self.steps:
            column = f"regexp_replace({column}, '{pattern}', '{replacement}', 'g')"
        return f"CAST({column} AS {self.type})"

    def convert(self, values: pa.Array) -> pa.Array:
        """Convert trimmed texts that match the pattern. Raises pa.ArrowInvalid for a value such as 2024-02-30."""
        if self.has_na:
            values = pc.if_else(pc.equal(values, NA), pa.scalar(None, values.type), values)
        for pattern, replacement in self.steps:
            values = pc.replace_substring_regex(values, pattern, replacement)
        if self.type == "BOOLEAN":
            return pc.equal(pc.utf8_lower(values), "true")
        if self.type in ("BIGINT", "DOUBLE"):
            values = pc.utf8_ltrim(values, "+")
        try:
            return pc.cast(values, self.arrow)
        except pa.ArrowInvalid:
            is_midnight = pc.match_substring_regex(values, _MIDNIGHT)
            if self.type in ("BIGINT", "DATE") or not pc.any(is_midnight).as_py():
                raise
        begun = pc.cast(pc.replace_substring_regex(values, "([ T])24:00", r"\100:00"), self.arrow)
        return pc.if_else(is_midnight, pc.add(begun, pa.scalar(timedelta(days=1))), begun)

    def fits(self, values: pa.Array) -> bool:
        """Return True if the reading fits all of the trimmed texts."""
        if not pc.all(self._match(values)).as_py():
            return False
        try:
            if self.is_cast:
                self.convert(values)
        except pa.ArrowInvalid:
            return False
        return True

    def fit(self, values: pa.Array) -> pa.BooleanArray:
        """Mask of the trimmed texts that the reading fits, found one by one if a cast refuses them together."""
        matches = self._match(values)
        if not self.is_cast:
            return matches
        matching = pc.if_else(matches, values, None)
        try:
            self.convert(matching)
        except pa.ArrowInvalid:
            distinct = matching.dictionary_encode()
            are_cast = [self._casts(value) for value in distinct.dictionary.to_pylist()]
            return pc.fill_null(pc.take(pa.array(are_cast, pa.bool_()), distinct.indices), False)
        return matches

    def _match(self, values: pa.Array) -> pa.BooleanArray:
        """Mask of the texts that match the pattern, and that a float64 holds exactly."""
        matches = pc.match_substring_regex(values, rf"^(?:{self.pattern})$")
        if self.type == "DOUBLE" and (pc.max(pc.binary_length(values)).as_py() or 0) > _EXACT_DIGITS:
            return pc.and_(matches, _are_exact(values))
        return matches

    @property
    def is_cast(self) -> bool:
        """True if values may match the pattern and still be none of the type: 2024-02-30."""
        return self.type not in (TEXT, "DOUBLE", "BOOLEAN")

    def _casts(self, value: str) -> bool:
        try:
            self.convert(pa.array([value]))
        except pa.ArrowInvalid:
            return False
        return True


def _are_exact(values: pa.Array) -> pa.BooleanArray:
    """Return False for numbers if a float64 would change their whole part. Few are long enough to be looked at."""
    is_long = pc.match_substring_regex(values, rf"^[+-]?\d{{{_EXACT_DIGITS + 1},}}([.,]\d*)?$")
    wholes = pc.if_else(is_long, pc.replace_substring_regex(values, "[.,].*", ""), None).to_pylist()
    return pa.array([value is None or int(float(value)) == int(value) for value in wholes], pa.bool_())


ARROW: Mapping[str, pa.DataType] = {
    TEXT: pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}


def _dates() -> list[Reading]:
    """Make the readings of dates and times that are not ISO 8601: orders of their parts, and marks between them."""
    readings = []
    orders = {
        # order -> pattern, evidence, words, replacement, option
        "d{0}m{0}Y": (r"\d{1,2}[{0}]\d{1,2}[{0}]\d{4}", r"(1[3-9]|2\d|3[01])[{0}].*", r"\3-\2-\1", "day-first"),
        "m{0}d{0}Y": (r"\d{1,2}[{0}]\d{1,2}[{0}]\d{4}", r"\d{1,2}[{0}](1[3-9]|2\d|3[01])[{0}].*", r"\3-\1-\2",
                      "month-first"),
        "Y{0}m{0}d": (r"\d{4}[{0}]\d{1,2}[{0}]\d{1,2}", "", r"\1-\2-\3", ""),
    }  # fmt: skip
    for mark in "/.-":
        for order, (pattern, evidence, replacement, option) in orders.items():
            if mark == "-" and order.startswith("Y"):
                continue  # ISO 8601
            letters = order.replace("{0}", mark)
            day, decides = (text.replace("{0}", mark) for text in (pattern, evidence))
            # The first steps write one digit as two.
            steps = (
                (rf"\b(\d)([{mark}])", r"0\1\2"),
                (rf"^(\d+[{mark}]\d+[{mark}])(\d)\b", r"\10\2"),
                (rf"^(\d+)[{mark}](\d+)[{mark}](\d+)", replacement),
            )
            words = "/".join(
                {"d": "day", "m": "month", "Y": "year"}[letter] for letter in letters.split(mark)
            )
            options = (("dates", option),) if option else ()
            date = Reading(f"DATE {letters}", "DATE", day, steps, decides, words.replace("/", mark), options)
            readings += [date, *_with_times(date)]
    return [*readings, *_dates_with_names()]


def _with_times(date: Reading) -> list[Reading]:
    """Make the readings of times on days of that form: of 24 hours, and of 12 hours with AM and PM."""
    letters = date.name.removeprefix("DATE ")
    pad = (r"([ T])(\d):", r"\10\2:")
    clock = replace(
        date,
        name=f"TIMESTAMP {letters}",
        type="TIMESTAMP",
        pattern=f"{date.pattern}({_CLOCK})?",
        steps=(*date.steps, pad),
        covers=date.name,
    )
    afternoon = (
        (rf"(?i)([ T]){hour:02}(:[\d:.]*\d) ?p\.?m\.?$", rf"\1{hour + 12}\2") for hour in range(1, 12)
    )
    midnight = (r"(?i)([ T])12(:[\d:.]*\d) ?a\.?m\.?$", r"\100\2")
    half_day = replace(
        clock,
        name=f"TIMESTAMP {letters} p",
        pattern=f"{date.pattern}{_HALF_DAY}",
        covers="",
        steps=(*date.steps, pad, *afternoon, midnight, (r"(?i) ?[ap]\.?m\.?$", "")),
        words=f"{date.words} with AM and PM",
    )
    return [clock, half_day]


def _dates_with_names() -> Iterator[Reading]:
    """Yield the readings of 26-Dec-2024, 26 Dec 2024 and Dec 26, 2024, with or without a time."""
    months, words = "|".join(_MONTHS), "months by their English names"
    for mark, order in (("-", "day-month-year"), (" ", "day month year")):
        day = rf"\d{{1,2}}{mark}(?i:{months}){mark}\d{{4}}"
        steps = (
            *((rf"(?i){mark}{name}{mark}", f"-{number:02}-") for number, name in enumerate(_MONTHS, 1)),
            (r"^(\d)-", r"0\1-"),
            (r"^(\d+)-(\d+)-(\d+)", r"\3-\2-\1"),
        )
        date = Reading(f"DATE d{mark}b{mark}Y", "DATE", day, steps, words=f"{order}, {words}")
        yield from (date, *_with_times(date))
    steps = (
        *((rf"(?i)^{name}\.? ", f"{number:02}-") for number, name in enumerate(_MONTHS, 1)),
        (r"^(\d+)-(\d),? ", r"\1-0\2 "),
        (r"^(\d+)-(\d+),? (\d{4})", r"\3-\1-\2"),
    )
    day = rf"(?i:{months})\.? \d{{1,2}},? \d{{4}}"
    date = Reading("DATE b d Y", "DATE", day, steps, words=f"month day year, {words}")
    yield from (date, *_with_times(date))


def _amounts() -> list[Reading]:
    """Make the readings of numbers with marks between thousands, and of those with a symbol, the same in every value.

    `€1,234` may be a thousand or a fraction: some value must tell.
    """
    readings = [
        _grouped_reading(",", "."),
        _grouped_reading(".", ","),
        _spaced_reading(),
        _spaced_reading("."),
    ]
    for symbol in CURRENCIES:
        plain = Reading(
            f"DOUBLE {symbol}",
            "DOUBLE",
            _symbol_pattern(symbol, r"(0|[1-9]\d{0,14})"),
            words=f"numbers with {symbol}",
        )
        remove = (rf"{re.escape(symbol)}|[ {_NARROW}]", "")
        readings.append(replace(plain, steps=(remove,)))
        for grouped in readings[:4]:
            thousands, decimal = grouped.name[-2], grouped.name[-1]
            between = f" {_NARROW}" if thousands == " " else thousands
            whole = rf"(0|[1-9]\d{{0,2}}([{between}]\d{{3}}){{1,4}}|[1-9]\d{{0,14}})([{decimal}]\d*)?"
            readings.append(
                replace(
                    grouped,
                    name=f"DOUBLE {symbol}{thousands}{decimal}",
                    pattern=_symbol_pattern(symbol, whole),
                    steps=(remove, *grouped.steps),
                    words=f"{plain.words} and {_MARKS[decimal]}",
                    covers=plain.name,
                )
            )
    return readings


def _symbol_pattern(symbol: str, number: str) -> str:
    """Return the pattern of a number with the symbol before or behind it."""
    blank, mark = rf"[ {_NARROW}]?", re.escape(symbol)
    return rf"[+-]?{mark}{blank}[+-]?{number}|[+-]?{number}{blank}{mark}"


def _spaced_reading(decimal: str = ",") -> Reading:
    """Make the reading of numbers with blanks between thousands, as in 1 234,50. Some value must have both marks."""
    blank = f"[ {_NARROW}]"
    return Reading(
        f"DOUBLE  {decimal}",
        "DOUBLE",
        rf"[+-]?(0|[1-9]\d{{0,2}}({blank}\d{{3}}){{1,4}}|[1-9]\d*)([{decimal}]\d*)?",
        ((blank, ""), *(((",", "."),) if decimal == "," else ())),
        rf".*{blank}\d{{3}}[{decimal}]\d+\D*",
        f"numbers with blanks between thousands and {_MARKS[decimal]}",
    )


def _grouped_reading(thousands: str, decimal: str) -> Reading:
    """Make the reading of numbers with these marks; it fits all numbers without a mark between thousands."""
    whole = rf"(0|[1-9]\d{{0,2}}([{thousands}]\d{{3}}){{1,4}}|[1-9]\d*)"
    special = "|[+-]?(?i:nan|inf|infinity)" if decimal == "." else ""
    # `.50` and `.5000` are fractions, `,234.` and `,234,` have thousands.
    told = rf".*([{decimal}](\d{{1,2}}|\d{{4,}})?\D*|[{thousands}]\d{{3}}[{decimal}{thousands}].*)"
    return Reading(
        f"DOUBLE {thousands}{decimal}",
        "DOUBLE",
        rf"[+-]?({whole}([{decimal}]\d*)?|[{decimal}]\d+){_EXPONENT}{special}",
        ((rf"[{thousands}]", ""), *(((",", "."),) if decimal == "," else ())),
        rf"{told}|\D*0[{decimal}].*",
        f"numbers with thousands and {_MARKS[decimal]}",
        (("decimal", decimal),),
        covers="DOUBLE ," if decimal == "," else "DOUBLE",
    )


# The narrowest first.
READINGS = {
    reading.name: reading
    for reading in (
        Reading("BIGINT", "BIGINT", r"[+-]?(0|[1-9]\d{0,18})"),
        Reading(
            "DOUBLE",
            "DOUBLE",
            rf"[+-]?({_WHOLE}(\.\d*)?|\.\d+){_EXPONENT}|[+-]?(?i:nan|inf|infinity)",
            evidence=r".*\d.*",
        ),
        Reading("BOOLEAN", "BOOLEAN", "(?i:true|false)"),
        Reading("DATE", "DATE", _DAY),
        Reading("TIMESTAMP", "TIMESTAMP", rf"{_DAY}({_TIME})?", covers="DATE"),
        Reading("TIMESTAMPTZ", "TIMESTAMPTZ", rf"{_DAY}{_TIME}(Z|[+-]\d{{2}}(:?\d{{2}})?)"),
        # `1,234` alone may be a thousand; `1,5` and `0,234` may not.
        Reading(
            "DOUBLE ,",
            "DOUBLE",
            rf"[+-]?({_WHOLE}(,\d*)?|,\d+){_EXPONENT}",
            ((",", "."),),
            r"[+-]?(\d*,(\d{1,2}|\d{4,})|(0\d*|\d{4,}|),\d{3})([eE].*)?",
            "a decimal comma",
            (("decimal", ","),),
        ),
        *_with_times(Reading("DATE Y-m-d", "DATE", _DAY, words="year-month-day")),
        *_dates(),
        *_amounts(),
        Reading(
            "BOOLEAN yes",
            "BOOLEAN",
            "(?i:yes|no)",
            (("(?i)^yes$", "true"), ("(?i)^no$", "false")),
            "(?i:yes)",
            "yes and no",
        ),
        # Not a type, but a reason to say why the column is text.
        Reading(
            "VARCHAR digits",
            TEXT,
            rf"[+-]?(0|[1-9]\d*)(\.\d*)?{_EXPONENT}",
            words="more than 15 digits",
            covers="DOUBLE",
        ),
    )
}
OF_TYPES = {str(kind): name for name, kind in ARROW.items()}  # of plain readings, by Arrow type
_PLURALS = {
    "BIGINT": "whole numbers",
    "DOUBLE": "numbers",
    "BOOLEAN": "true and false",
    "DATE": "dates",
    "TIMESTAMP": "times",
    "TIMESTAMPTZ": "times",
}
_FAMILIES = {"BIGINT": "number", "DOUBLE": "number", "DATE": "date", "TIMESTAMP": "date"}


def reading_named(name: str) -> Reading | None:
    """Return the reading of a name; None for text. Raises SourceError for a name of a later version."""
    if name == TEXT:
        return None
    if (base := name.removesuffix(_WITH_NA)) != name and base in READINGS:
        return na_reading(READINGS[base])
    if name not in READINGS:
        raise SourceError(
            f"columns of CSV are not read as {name!r} by this version", hint="update sqlflow-edl"
        )
    return READINGS[name]


def na_reading(reading: Reading) -> Reading:
    """Return the reading in which `NA` is NULL."""
    return replace(
        reading,
        name=f"{reading.name}{_WITH_NA}",
        pattern=f"{reading.pattern}|{NA}",
        words=f"{reading.words or _PLURALS[reading.type]}, {NA} for NULL",
        has_na=True,
    )


def is_plain(name: str) -> bool:
    """Return True if the reading of that name needs no word to the user."""
    reading = reading_named(name)
    return reading is None or reading.is_plain


def are_alike(name: str, other: str) -> bool:
    """Return True if both readings give numbers, or both days and times without a zone."""
    kinds = {_FAMILIES.get(text.partition(" ")[0], text) for text in (name, other)}
    return len(kinds) == 1


@dataclass(slots=True)
class CSVColumn:
    """Knowledge of a column: the readings that all values so far fit, and the evidence that was seen.

    `number` is the number of values that are not empty; those that are `NA` are left out of it. `is_trimmed` is
    False if some value has blanks around it, and `is_full` if some is empty or blank without being NULL.
    """

    fitting: list[Reading]
    evident: set[str] = field(default_factory=set)
    number: int = 0
    is_trimmed: bool = True
    is_full: bool = True
    has_na: bool = False

    @property
    def reading(self) -> Reading | None:
        """First reading with evidence, or None: text."""
        decided = (
            candidate
            for candidate in self.fitting
            if not candidate.evidence or candidate.name in self.evident
        )
        chosen = next(decided, None) if self.number else None
        if chosen is None or chosen.type == TEXT:
            return None
        return na_reading(chosen) if self.has_na else chosen

    @property
    def undecided_readings(self) -> list[Reading]:
        """Readings that fit a column of text, but are not decided."""
        if not self.number or self.reading is not None:
            return []
        return [reading for reading in self.fitting if reading.options or reading.type == TEXT]

    def observe(self, texts: pa.Array) -> None:
        """Drop the readings that some of the texts do not fit."""
        values = texts.drop_null()
        if not len(values) or (self.number and not self.fitting):
            return
        if fitting := self._fitting(values):  # no pattern matches blanks
            self.fitting, self.number = fitting, self.number + len(values)
            return
        trimmed = pc.utf8_trim(values, " ")
        self.is_trimmed = self.is_trimmed and pc.all(pc.equal(trimmed, values)).as_py()
        is_value = pc.not_equal(trimmed, "")
        self.is_full = self.is_full and pc.all(is_value).as_py()
        values = trimmed.filter(is_value)
        if pc.any(is_na := pc.equal(values, NA)).as_py():
            self.has_na = True
            values = values.filter(pc.invert(is_na))
        if len(values):
            self.fitting, self.number = self._fitting(values), self.number + len(values)

    def _fitting(self, values: pa.Array) -> list[Reading]:
        """Return the readings that fit these values, too, and note the evidence among them."""
        readings = self.fitting
        if not self.number:  # most readings fall at the first value
            first = values[0].as_py()
            readings = [candidate for candidate in readings if re.fullmatch(candidate.pattern, first)]
        fitting = set(self._whole_numbers(values, readings))
        for reading in readings:
            if reading.name in fitting:
                continue
            if reading.covers in fitting or reading.fits(values):
                fitting.add(reading.name)
                if reading.evidence and reading.name not in self.evident and _decides(reading, values):
                    self.evident.add(reading.name)
        return [reading for reading in readings if reading.name in fitting]

    def _whole_numbers(self, values: pa.Array, readings: Sequence[Reading]) -> Sequence[str]:
        """Return the readings that fit without a look at patterns: the values are whole numbers in their usual form."""
        if not readings or readings[0].name != "BIGINT":
            return ()
        try:
            numbers = pc.cast(values, pa.int64())
        except pa.ArrowInvalid:
            return ()
        if not pc.all(pc.equal(pc.cast(numbers, pa.string()), values)).as_py():
            return ()
        ends = pc.min_max(numbers)
        if max(-ends["min"].as_py(), ends["max"].as_py()) >= 10**_EXACT_DIGITS:
            return ("BIGINT",)
        self.evident.add("DOUBLE")
        return ("BIGINT", "DOUBLE", "DOUBLE ,", "DOUBLE ,.", "DOUBLE .,", "VARCHAR digits")


def _decides(reading: Reading, values: pa.Array) -> bool:
    """Return True if one of the values is evidence of the reading; often the first is."""
    if re.fullmatch(reading.evidence, values[0].as_py()):
        return True
    return bool(pc.any(pc.match_substring_regex(values, rf"^(?:{reading.evidence})$")).as_py())


def first_misfit(reading: Reading, texts: pa.Array) -> int | None:
    """Return the place of the first text that the reading does not fit; NULL and blank texts fit."""
    values = pc.utf8_trim(texts, " ")
    fits = pc.or_kleene(pc.equal(values, ""), reading.fit(values))
    place = pc.index(fits.fill_null(True), False).as_py()
    return None if place < 0 else int(place)


def candidates(options: Mapping[str, str], delimiter: str) -> list[Reading]:
    """Return the readings that a column may have. A comma between fields is none in numbers unless that is stated."""
    decimal, dates = options.get("decimal", ""), options.get("dates", "")
    readings = []
    for reading in READINGS.values():
        stated = dict(reading.options)
        mark = stated.get("decimal")
        if mark and decimal and mark != decimal:
            continue
        if mark == "," and delimiter == "," and not decimal:
            continue
        if reading.name in ("DOUBLE", "VARCHAR digits") and decimal == ",":
            continue
        if stated.get("dates") and dates and stated["dates"] != dates:
            continue
        if stated and any(options.get(option) == value for option, value in stated.items()):
            reading = replace(reading, evidence="")
        readings.append(reading)
    return readings


def observe_columns(
    names: Sequence[str], readings: Sequence[Reading], batches: Iterable[pa.RecordBatch]
) -> dict[str, CSVColumn]:
    """Read all batches of texts once, and return what they tell of each column. Linear in columns and rows."""
    columns = {name: CSVColumn(list(readings)) for name in names}

    def observe(batch: pa.RecordBatch, shares: int, share: int) -> None:
        for name, texts in islice(zip(batch.schema.names, batch.columns, strict=True), share, None, shares):
            columns[name].observe(texts)

    with ThreadPoolExecutor(THREADS) as pool:
        for batch in batches:
            if batch.num_rows < SHARED_ROWS:
                observe(batch, 1, 0)
            else:
                list(pool.map(partial(observe, batch, THREADS), range(THREADS)))
    return columns


def describe(
    columns: Mapping[str, CSVColumn], names: Sequence[str]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return notes on columns without a plain reading, and the options that state their readings."""
    by_words: dict[str, list[str]] = {}
    options: dict[tuple[str, str], None] = {}
    for name in names:
        column = columns[name]
        if column.reading is not None and column.reading.words:
            by_words.setdefault(f"as {column.reading.words}", []).append(name)
            options |= dict.fromkeys(column.reading.options)
        elif undecided := column.undecided_readings:
            words = " or ".join(dict.fromkeys(reading.words for reading in undecided))
            states = dict.fromkeys(option for reading in undecided for option in reading.options)
            ways = " or ".join(f"?{option}={value}" for option, value in states)
            why = f"{words}? {ways} decides" if ways else f"its numbers have {words}"
            by_words.setdefault(f"as text: {why}", []).append(name)
    shown = (f"with {listed_names(columns_of_words)} {words}" for words, columns_of_words in by_words.items())
    counts = Counter(option for option, _ in options)  # columns of two forms need none: their values tell
    return "; ".join(shown), tuple(option for option in options if counts[option[0]] == 1)


def listed_names(names: Sequence[str]) -> str:
    """Return at most five names in a sentence."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
