"""Expressions that read numbers and dates from texts, in the dialect of a query, for warnings and hints."""

from __future__ import annotations

from collections.abc import Mapping

from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.text_readings import DateReading, NumberReading, TextReading

# dialect -> cast of a text to a number that is NULL where it is none; others raise an error or give 0
_LENIENT_NUMBERS: Mapping[str, str] = {
    "duckdb": "TRY_CAST({} AS DOUBLE)",
    "bigquery": "SAFE_CAST({} AS FLOAT64)",
    "clickhouse": "toFloat64OrNull({})",
    "hive": "CAST({} AS DOUBLE)",
    "maxcompute": "CAST({} AS DOUBLE)",
    "redshift": "TRY_CAST({} AS DOUBLE PRECISION)",
    "snowflake": "TRY_CAST({} AS DOUBLE)",
    "spark": "TRY_CAST({} AS DOUBLE)",
    "trino": "TRY_CAST({} AS DOUBLE)",
}
_NUMBERS: Mapping[str, str] = {
    "mysql": "{} + 0.0",
    "postgres": "CAST({} AS DOUBLE PRECISION)",
    "sqlite": "CAST({} AS REAL)",
}
# the same -> condition under which a text is a number
_CONDITIONS: Mapping[str, str] = {
    "mysql": "{0} REGEXP '^[-+]?[0-9]*[.]?[0-9]+(e[-+]?[0-9]+)?$'",
    "postgres": "{0} ~ '^[-+]?[0-9]*[.]?[0-9]+([eE][-+]?[0-9]+)?$'",
    "sqlite": "{0} GLOB '*[0-9]*' AND {0} NOT GLOB '*[^-+.0-9eE]*'",
}
# dialect -> function of a text and a format, and the words for day, month and year in it
_DATES: Mapping[str, tuple[str, str, str, str]] = {
    "duckdb": ("TRY_STRPTIME({}, '{}')", "%d", "%m", "%Y"),
    "bigquery": ("SAFE.PARSE_DATE('{1}', {0})", "%d", "%m", "%Y"),
    "hive": ("TO_DATE({}, '{}')", "dd", "MM", "yyyy"),
    "maxcompute": ("TO_DATE({}, '{}')", "dd", "mm", "yyyy"),
    "mysql": ("STR_TO_DATE({}, '{}')", "%d", "%m", "%Y"),
    "postgres": ("TO_DATE({}, '{}')", "DD", "MM", "YYYY"),
    "redshift": ("TO_DATE({}, '{}')", "DD", "MM", "YYYY"),
    "snowflake": ("TRY_TO_DATE({}, '{}')", "DD", "MM", "YYYY"),
    "spark": ("TO_DATE({}, '{}')", "dd", "MM", "yyyy"),
    "trino": ("TRY(DATE_PARSE({}, '{}'))", "%d", "%m", "%Y"),
}
_TEXTS = {"mysql": "CHAR", "bigquery": "STRING", "hive": "STRING", "maxcompute": "STRING", "spark": "STRING"}
_SHORT_YEARS = {"%Y": "%y", "YYYY": "YY", "yyyy": "yy"}
_TIMES: Mapping[str, str] = {
    "duckdb": "TRY_CAST({} AS TIMESTAMP)",
    "bigquery": "SAFE_CAST({} AS DATETIME)",
    "clickhouse": "parseDateTimeBestEffortOrNull({})",
    "maxcompute": "CAST({} AS DATETIME)",
    "mysql": "CAST({} AS DATETIME)",
    "sqlite": "unixepoch({})",
    "snowflake": "TRY_CAST({} AS TIMESTAMP)",
    "trino": "TRY_CAST({} AS TIMESTAMP)",
}
_RAISING = ("postgres", "redshift")  # a text that is no date is an error


def read_column(column: str, reading: TextReading, dialect: str) -> str | None:
    """Return an expression of the numbers or dates in a column of texts, or None if the dialect has none for them."""
    if isinstance(reading, NumberReading):
        return number(column, reading, dialect)
    return _date(column, reading, dialect)


def date_of_number(column: str, digits: int, dialect: str) -> str | None:
    """Return an expression of the dates in a column of numbers such as 20241226, or of months such as 202412.

    digits: 8 or 6. None if the dialect has none for them.
    """
    if dialect not in _DATES:
        return None
    name = expressions.name(column, dialect)
    number = name if digits == 8 else f"{name} * 100 + 1"
    function, day, month, year = _DATES[dialect]
    date = function.format(f"CAST({number} AS {_TEXTS.get(dialect, 'VARCHAR')})", f"{year}{month}{day}")
    return f"CAST({date} AS DATE)" if dialect in ("duckdb", "trino") else date


def describe_doubt(reading: TextReading) -> str:
    """Return the words, in brackets, for a text that no other text gives one meaning; empty without such a text."""
    if not reading.ambiguous:
        return ""
    doubt = "a fraction behind the comma"
    if isinstance(reading, DateReading):
        doubt = (
            "the day, the month or the year first" if reading.has_short_year else "the month before the day"
        )
    return f" (of {reading.ambiguous!r} no text tells whether it has {doubt})"


def number(column: str, reading: NumberReading, dialect: str) -> str:
    """Return an expression of the numbers in a column of texts, NULL where a text is none."""
    name = expressions.name(column, dialect)
    lenient = _LENIENT_NUMBERS.get(dialect)
    if lenient is not None:
        return lenient.format(_strip_symbols(name, reading))
    if not reading.lists_others:
        bare = _strip_symbols(f"TRIM({name})" if reading.others else name, reading)
        return f"CASE WHEN {_CONDITIONS[dialect].format(bare)} THEN {_NUMBERS[dialect].format(bare)} END"
    return _NUMBERS[dialect].format(_strip_symbols(_null_exceptions(name, reading), reading))


def _strip_symbols(text: str, reading: NumberReading) -> str:
    """Return the text without symbols, with a point before the fraction."""
    for symbol in reading.symbols:
        text = f"REPLACE({text}, '{symbol}', '')"
    return f"REPLACE({text}, ',', '.')" if reading.decimal == "," else text


def _null_exceptions(text: str, reading: TextReading) -> str:
    """Return the text, NULL where it is one of the unreadable texts."""
    if reading.others:
        text = f"TRIM({text})"
    for other in reading.others:
        literal = other.replace("'", "''")
        text = f"NULLIF({text}, '{literal}')"
    return text


def _date(column: str, reading: DateReading, dialect: str) -> str | None:
    name = expressions.name(column, dialect)
    text = _null_exceptions(name, reading) if dialect in _RAISING else name
    if reading.order == "iso":
        return _TIMES.get(dialect, "CAST({} AS TIMESTAMP)").format(text)
    if dialect not in _DATES:
        return None
    function, day, month, year = _DATES[dialect]
    words = {"d": day, "m": month, "y": _SHORT_YEARS[year] if reading.has_short_year else year}
    return function.format(text, reading.mark.join(words[part] for part in reading.order))
