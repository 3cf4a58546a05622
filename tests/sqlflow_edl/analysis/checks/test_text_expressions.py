"""What a warning says to select, selected: numbers and dates from texts, in each database."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow as pa
import pytest

from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases, fill

ROWS = 60


def texts(kind: str) -> tuple[list[str | None], list[object]]:
    """Texts of a kind, and what they are."""
    numbers = [n * 7 % 180 + n / 4 for n in range(ROWS)]
    days = [dt.date(2024, n % 12 + 1, n % 28 + 1) for n in range(ROWS)]
    forms = {
        "plain": ([f"{n}" for n in numbers], numbers),
        "money": ([f"${n + 1000:,.2f}" for n in numbers], [round(n + 1000, 2) for n in numbers]),
        "comma": ([f"{n}".replace(".", ",") for n in numbers], numbers),
        "percent": ([f"{n}%" for n in numbers], numbers),
        "day first": ([f"{day:%d/%m/%Y}" for day in days], days),
        "short year": ([f"{day:%m/%d/%y}" for day in days], days),
        "iso": ([f"{day}" for day in days], days),
    }
    written, known = forms[kind]
    return [None, *written, "?"], [None, *known, None]


@pytest.mark.variants(3)
@pytest.mark.parametrize("kind", ["plain", "money", "comma", "percent", "day first", "short year", "iso"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_expression_of_a_warning_reads_the_texts(dialect: str, kind: str, databases: Databases) -> None:
    if dialect == "sqlite" and kind in ("day first", "short year"):
        pytest.skip("SQLite has no function for dates of this form, and the warning names none")
    if dialect == "maxcompute" and kind in ("day first", "short year"):
        pytest.skip("the double reads mm of TO_DATE as minutes, where the service has months")
    written, known = texts(kind)
    rows = pa.table(
        {"n": range(len(written)), "t": written, "y": [float(n % 5) for n in range(len(written))]}
    )
    with Session(databases.url(dialect), create=True) as session:
        fill(session, "given", rows)
        [compiled] = session.compile("SELECT t, n, y FROM given TO TRAIN LinearRegressor LABEL y INTO m")
        [warning] = [each for each in compiled.warnings if "of the texts of t are" in each]
        select = re.search(r"select (.+?) AS t(?:,|$)", warning)
        assert select, warning
        read = session.source.stream(f"SELECT n, {select[1]} AS t FROM given ORDER BY n").read_all()
    values = read["t"].to_pylist()
    if kind in ("day first", "short year", "iso"):
        values = [as_date(value) for value in values]
    assert values == [pytest.approx(value) if isinstance(value, float) else value for value in known]


def as_date(value: object) -> object:
    """The date of what a database has: a date, a time, or the seconds of SQLite."""
    if isinstance(value, dt.datetime):
        return value.date()
    return dt.datetime.fromtimestamp(value, dt.UTC).date() if isinstance(value, int) else value
