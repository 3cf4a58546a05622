"""Texts that are almost all numbers or dates: `'12.5'`, `'$1,003.50'`, `'7,5'`, `'31/12/2024'`, and a few `'?'`.

Such a column becomes a category, and as a label it has hundreds of classes, without an order among them. A warning
names the expression that reads it; see `sqlflow_edl.analysis.checks.text_expressions`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edl.features.arrays import Bools, Ints
from edl.features.text_numbers import PATTERNS, are_numbers, without_symbols
from edl.spec.computed import SYMBOLS
from sqlflow_edl.analysis.checks.warning import FEWEST_ROWS
from sqlflow_edl.analysis.statistics.fitting import ValueCounts

ALMOST_ALL = 0.9  # share of the rows that a reading explains; of an enumeration hardly one does
MOST = 0.5  # the same where all other texts stand for a value that is not known
UNKNOWN_VALUES = frozenset(
    ("", "?", "-", "--", ".", "..", "na", "n/a", "#n/a", "nan", "null", "nil", "none", "missing", "unknown")
)
FEW_VALUES = 20  # distinct plain whole numbers that are as good as categories
_MOST_EXCEPTIONS = 5  # distinct texts that a reading lists
_CODE_DIGITS = 4  # digits that texts of one length have as codes, such as postcodes
_MONTHS, _DAYS = 12, 31  # in a year, and at most in a month
_DIGITS = r"\d+"
_ISO = r"^\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?$"
_YEAR_LAST = r"^(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})[./-](?P<year>\d{4})$"
_SHORT_YEAR = r"^(?P<first>\d{1,2})(?P<mark>[./-])(?P<second>\d{1,2})[./-](?P<year>\d{2})$"
_YEAR_FIRST = r"^\d{4}(?P<mark>[./])\d{1,2}[./]\d{1,2}$"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Reading of texts. share: of the rows with a text that it explains.

    others: texts that it does not explain, the most frequent first, the empty one among them; at most one more than
    are listed. ambiguous: a text that has another reading, too, where no text decides between them.
    """

    share: float = 1.0
    others: tuple[str, ...] = ()
    ambiguous: str = ""

    @property
    def lists_others(self) -> bool:
        """True if `others` are all."""
        return len(self.others) <= _MOST_EXCEPTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberReading(_Reading):
    """Numbers in texts. symbols: characters beside the numbers, such as $ and thousands separators, in order.

    decimal: the mark before the fraction, `.` or `,`. Ambiguous is 1,234, which may be 1234 or 1.234.
    """

    symbols: str = ""
    decimal: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class DateReading(_Reading):
    """Dates in texts. order: of day, month and year, as `dmy`; `iso` with or without a time of day.

    mark: between the parts. has_short_year: the year has two digits. Ambiguous is 1/2/2024, in which the day may be
    first or second, and 25/12/23, in which the year may be first.
    """

    order: str
    mark: str = "-"
    has_short_year: bool = False


TextReading = NumberReading | DateReading


@functools.lru_cache(maxsize=64)  # the drafts of a column ask once each
def read_texts(counts: ValueCounts | None) -> TextReading | None:
    """Return how almost all texts can be read, or None if they are a category.

    counts: the distinct texts of a column and their rows; None if there are too many to know.
    """
    if counts is None or not counts.values or not isinstance(counts.values[0], str):
        return None
    texts = pc.utf8_trim_whitespace(pa.array(counts.values, pa.large_string()))
    rows = np.array(counts.counts)
    held = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
    if rows[held].sum() < FEWEST_ROWS:
        return None
    some = texts.filter(pa.array(held))
    reading = _read_numbers(some, rows[held]) or _read_dates(some, rows[held])
    return reading if reading is None or held.all() else replace(reading, others=(*reading.others, ""))


def decimal_mark(counts: ValueCounts | None) -> str:
    """Return the mark before the fractions of texts that are almost all numbers, empty for other texts."""
    reading = read_texts(counts)
    return reading.decimal if isinstance(reading, NumberReading) and not reading.ambiguous else ""


def _read_numbers(texts: pa.Array, rows: Ints) -> NumberReading | None:
    marks = [mark for mark in SYMBOLS if pc.any(pc.match_substring(texts, mark)).as_py()]
    bare = without_symbols(texts)
    matching = {decimal: are_numbers(bare, decimal).to_numpy(zero_copy_only=False) for decimal in PATTERNS}
    decimal = max(matching, key=lambda candidate: int(rows[matching[candidate]].sum()))
    numbers = matching[decimal]
    share = float(rows[numbers].sum() / rows.sum())
    if share < MOST or (others := _list_others(texts, numbers, share)) is None:
        return None
    if _are_codes(texts.filter(pa.array(numbers)), whole=bool(numbers.all())):
        return None
    readable = bare.filter(pa.array(numbers))
    if pc.any(pc.match_substring(texts.filter(pa.array(numbers)), " ")).as_py():
        marks.append(" ")
    thousands = "," if decimal == "." else "."
    if pc.any(pc.match_substring(readable, thousands)).as_py():
        marks.append(thousands)
    both = bool(rows[matching["."] & matching[","]].sum() >= rows[numbers].sum())
    separated = readable.filter(pc.match_substring_regex(readable, "[.,]"))
    is_ambiguous = both and len(separated) > 0 and "," in marks
    return NumberReading(
        share=share,
        others=others,
        ambiguous=separated[0].as_py() if is_ambiguous else "",
        symbols="".join(marks),
        decimal=decimal,
    )


def _are_codes(texts: pa.Array, *, whole: bool) -> bool:
    """Return True for digits that name something: with leading zeros, of one length, or few whole numbers."""
    if pc.any(pc.match_substring_regex(texts, r"^0\d")).as_py():
        return True
    if not whole or not _matches(texts, rf"^{_DIGITS}$").all():
        return False
    lengths = pc.unique(pc.utf8_length(texts)).to_pylist()
    return len(texts) <= FEW_VALUES or (len(lengths) == 1 and lengths[0] >= _CODE_DIGITS)


def _read_dates(texts: pa.Array, rows: Ints) -> DateReading | None:
    """Read dates by the order of their parts. A year of two digits may be first, unless it is too large for a day."""
    for order, pattern in (("iso", _ISO), ("ymd", _YEAR_FIRST), ("", _YEAR_LAST), ("", _SHORT_YEAR)):
        dates = _matches(texts, pattern)
        share = float(rows[dates].sum() / rows.sum())
        if share < MOST or (others := _list_others(texts, dates, share)) is None:
            continue
        if order == "iso":
            return DateReading(share=share, others=others, order=order)
        readable = texts.filter(pa.array(dates))
        parts = pc.extract_regex(readable, pattern)
        mark = parts.field("mark")[0].as_py()
        if order:
            return DateReading(share=share, others=others, order=order, mark=mark)
        first, second, year = (
            int(pc.max(parts.field(part).cast(pa.int64())).as_py()) for part in ("first", "second", "year")
        )
        if min(first, second) > _MONTHS or max(first, second) > _DAYS:
            return None
        is_short = pattern == _SHORT_YEAR
        is_open = max(first, second) <= _MONTHS or (is_short and second <= _MONTHS and year <= _DAYS)
        return DateReading(
            share=share,
            others=others,
            ambiguous=readable[0].as_py() if is_open else "",
            order="mdy" if second > _MONTHS else "dmy",
            mark=mark,
            has_short_year=is_short,
        )
    return None


def _matches(texts: pa.Array, pattern: str) -> Bools:
    flags: Bools = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return flags


def _list_others(texts: pa.Array, is_read: Bools, share: float) -> tuple[str, ...] | None:
    """Return the texts that a reading does not explain, or None if they are too many for a reading.

    share: of the rows that it explains. The texts are the most frequent first, at most one more than are listed.
    """
    others = list(dict.fromkeys(texts.filter(pa.array(~is_read))[: len(UNKNOWN_VALUES) + 1].to_pylist()))
    if share < ALMOST_ALL and not UNKNOWN_VALUES.issuperset(map(str.casefold, others)):
        return None
    return tuple(others[: _MOST_EXCEPTIONS + 1])
