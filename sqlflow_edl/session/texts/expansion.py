"""Dates in programs, and dates and environment variables in the values of their variables.

`${yyyyMMdd -1d}` is yesterday in the letters of Java's DateTimeFormatter (y, M, d, H, m, s); offsets have the units
y, M, w, d, H, m and s, may be repeated, and are applied in their order. `${HOME}` is a variable of the environment,
`${HOME:-text}` has a default. `$${` is `${` itself.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from edl.errors import SemanticError, did_you_mean

_PLACE = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_DATE_IN_PROGRAM = re.compile(r"(?P<escaped>\$)?\$\{(?P<inside>[^{}\n]*)\}")
_OFFSET = re.compile(r"([+-])(\d{1,6})([yMwdHms])")
_LETTERS = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_OF_DAYS = {"yyyy", "yy", "dd"}
_PART = re.compile("|".join(_LETTERS))
_DATE = re.compile(rf"(?:{'|'.join(_LETTERS)}|[-/:. ])+?(?P<offsets>(?:\s+[+-]\d+[A-Za-z]+)*)\s*")
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_]\w*)(?::-(?P<default>.*))?", re.DOTALL)
_UNITS = {"w": "weeks", "d": "days", "H": "hours", "m": "minutes", "s": "seconds"}


def expand_variables(text: str, now: datetime, environment: Mapping[str, str]) -> str:
    """Replace each `${…}` of the text. Raises SemanticError for an unknown variable, unit or form."""

    def replaced(match: re.Match[str]) -> str:
        if match["escaped"]:
            return match["escaped"]
        if not match["end"]:
            raise SemanticError(f"${{{match['inside']} is not closed by }}", hint="$${ stands for ${ itself")
        inside = match["inside"].strip()
        date = _DATE.fullmatch(inside)
        return _date(inside, date, now) if date else _variable(inside, environment)

    return _PLACE.sub(replaced, text)


def expand_dates(text: str, now: datetime) -> str:
    """Replace each date in a program, such as `${yyyyMMdd -1d}`; what else has this form stays as it is written.

    Raises SemanticError for a date with a wrong offset.
    """

    def replaced(match: re.Match[str]) -> str:
        date = _DATE.fullmatch(match["inside"].strip())
        if date is None or not _PART.search(match["inside"]):
            return match[0]
        return match[0][1:] if match["escaped"] else _date(match["inside"].strip(), date, now)

    return _DATE_IN_PROGRAM.sub(replaced, text) if "${" in text else text


def _date(inside: str, date: re.Match[str], now: datetime) -> str:
    form = inside[: date.start("offsets")].strip()
    _check_letters(form)
    for offset in date["offsets"].split():
        parts = _OFFSET.fullmatch(offset)
        if parts is None:
            raise SemanticError(
                f"unknown offset {offset} in ${{{inside}}}",
                hint="a sign, a number and one of y, M, w, d, H, m, s: -1d",
            )
        try:
            now = _move_time(now, int(parts[1] + parts[2]), parts[3])
        except (OverflowError, ValueError):
            raise SemanticError(f"${{{inside}}} is not between the years 1 and 9999") from None
    return now.strftime(_PART.sub(lambda part: _LETTERS[part[0]], form))


def _check_letters(form: str) -> None:
    """Raise SemanticError where minutes stand for months, or months for minutes: yyyy-mm-dd, HH:MM."""
    letters = set(_PART.findall(form))
    if "mm" in letters and "HH" not in letters and letters & _OF_DAYS:
        raise SemanticError(
            f"mm in ${{{form}}} is minutes", hint=f"MM is the month: ${{{form.replace('mm', 'MM')}}}"
        )
    if letters >= {"HH", "MM"} and not letters & _OF_DAYS:
        raise SemanticError(
            f"MM in ${{{form}}} is the month", hint=f"mm is minutes: ${{{form.replace('MM', 'mm')}}}"
        )


def _move_time(time: datetime, by: int, unit: str) -> datetime:
    """Move the time; by months and years to the same day, or to the last one of a shorter month."""
    if unit in _UNITS:
        return time + timedelta(**{_UNITS[unit]: by})
    months = time.year * 12 + time.month - 1 + by * (12 if unit == "y" else 1)
    year, month = divmod(months, 12)
    return time.replace(
        year=year, month=month + 1, day=min(time.day, calendar.monthrange(year, month + 1)[1])
    )


def _variable(inside: str, environment: Mapping[str, str]) -> str:
    match = _VARIABLE.fullmatch(inside)
    if match is None:
        raise SemanticError(
            f"${{{inside}}} is neither a date nor a variable", hint="such as ${yyyy-MM-dd -1d} or ${HOME}"
        )
    value = environment.get(match["name"], match["default"])
    if value is None:
        name = match["name"]
        date = name.replace("Y", "y").replace("D", "d")
        hint = f"a date is written ${{{date}}}" if _DATE.fullmatch(date) else f"${{{name}:-default}}"
        raise SemanticError(
            f"the environment has no variable {name}",
            hint=did_you_mean(name, environment, list_up_to=0) or hint,
        )
    return value
