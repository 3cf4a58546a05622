"""Texts that are numbers or dates but for a few, and texts that only look so."""

from __future__ import annotations

from collections import Counter

import pytest

from sqlflow_edl.analysis.checks.text_readings import DateReading, NumberReading, TextReading, read_texts
from sqlflow_edl.analysis.statistics.fitting import ValueCounts


def read(*texts: str) -> TextReading | None:
    values, counts = zip(*Counter(texts).most_common(), strict=True)
    return read_texts(ValueCounts(values, counts))


NUMBERS = [str(n * 7 + 8) for n in range(40)]
DAYS = [f"{n % 28 + 1}/{n % 12 + 1}/2024" for n in range(60)]


@pytest.mark.parametrize(
    ("texts", "symbols", "decimal"),
    [
        (NUMBERS, "", "."),
        ([f"{n}.5" for n in NUMBERS], "", "."),
        ([f"{n},5" for n in NUMBERS], "", ","),
        ([f"${n}.50" for n in NUMBERS], "$", "."),
        ([f"$ {n},003.50" for n in range(40)], "$ ,", "."),
        ([f"€{n}.234,50" for n in range(40)], "€.", ","),
        ([f"{n / 4}%" for n in range(40)], "%", "."),
        ([f"-{n}e-3" for n in NUMBERS], "", "."),
    ],
)
def test_numbers_in_texts_are_read_with_their_marks(texts: list[str], symbols: str, decimal: str) -> None:
    assert read(*texts) == NumberReading(symbols=symbols, decimal=decimal)


def test_the_texts_that_are_no_numbers_are_listed_by_their_frequency() -> None:
    found = read(*NUMBERS, "NA", "?", "NA", "")
    assert isinstance(found, NumberReading)
    assert found.others == ("NA", "?", "")
    assert found.share == pytest.approx(40 / 43)
    assert found.lists_others


@pytest.mark.parametrize("unknown", ["?", "N/A", "unknown", "-"])
def test_half_of_the_texts_may_stand_for_a_value_that_is_not_known(unknown: str) -> None:
    found = read(*NUMBERS, *[unknown] * 30)
    assert found == NumberReading(share=40 / 70, others=(unknown,))
    found = read(*DAYS, *[unknown] * 30)
    assert isinstance(found, DateReading)
    assert found.others == (unknown,)


def test_more_texts_than_are_listed_are_not_all() -> None:
    found = read(*NUMBERS * 3, *"abcdefgh")
    assert found is not None
    assert not found.lists_others


@pytest.mark.parametrize(
    "texts",
    [
        ["red", "blue"] * 20,
        ["1", "2", "3"] * 20,
        [f"{n:05d}" for n in range(40)],
        [str(n) for n in range(10_000, 10_040)],
        [*NUMBERS, *["sold out"] * 10],
        [*NUMBERS, *["?"] * 50],
        NUMBERS[:10],
        [f"{n}/{n}/{n}" for n in NUMBERS],
        [f"192.168.0.{n}" for n in range(40)],
        [f"{n} km" for n in NUMBERS],
        [".", "-", "+"] * 20,
    ],
)
def test_categories_codes_and_few_rows_are_no_numbers(texts: list[str]) -> None:
    assert read(*texts) is None


def test_a_comma_of_which_no_text_tells_its_meaning_is_ambiguous() -> None:
    found = read(*(f"{n},{n * 7 % 900 + 100}" for n in range(1, 40)))
    assert isinstance(found, NumberReading)
    assert found.ambiguous == "1,107"
    found = read(*(f"{n},{n * 7 % 900 + 100}" for n in range(1, 40)), "1,234.5")
    assert isinstance(found, NumberReading)
    assert (found.symbols, found.ambiguous) == (",", "")


@pytest.mark.parametrize(
    ("texts", "order", "mark", "ambiguous"),
    [
        ([f"2024-{n % 12 + 1:02d}-05" for n in range(40)], "iso", "-", ""),
        ([f"2024-{n % 12 + 1:02d}-05 10:00" for n in range(40)], "iso", "-", ""),
        ([f"2024/{n % 12 + 1}/5" for n in range(40)], "ymd", "/", ""),
        (DAYS, "dmy", "/", ""),
        ([text.replace("/", ".") for text in DAYS], "dmy", ".", ""),
        ([f"{n % 12 + 1}/{n % 28 + 1}/2024" for n in range(60)], "mdy", "/", ""),
        ([f"{n % 9 + 1}/{n % 12 + 1}/2024" for n in range(60)], "dmy", "/", "1/1/2024"),
    ],
)
def test_dates_in_texts_are_read_by_the_order_of_their_parts(
    texts: list[str], order: str, mark: str, ambiguous: str
) -> None:
    assert read(*texts) == DateReading(order=order, mark=mark, ambiguous=ambiguous)


@pytest.mark.parametrize(
    ("texts", "order", "ambiguous"),
    [
        ([f"{n % 12 + 1}/{n % 28 + 1}/24" for n in range(60)], "mdy", ""),
        ([f"{n % 28 + 1}/{n % 12 + 1}/{n % 50 + 40}" for n in range(60)], "dmy", ""),
        ([f"{n % 28 + 1}/{n % 12 + 1}/24" for n in range(60)], "dmy", "1/1/24"),
        ([f"{n % 12 + 1:02}/{n % 12 + 1:02}/24" for n in range(60)], "dmy", "01/01/24"),
    ],
)
def test_a_year_of_two_digits_may_be_first(texts: list[str], order: str, ambiguous: str) -> None:
    assert read(*texts) == DateReading(order=order, mark="/", ambiguous=ambiguous, has_short_year=True)


def test_texts_in_which_day_and_month_change_places_are_no_dates() -> None:
    assert read(*DAYS, *["3/25/2024", "3/26/2024"]) is None
    assert read(*(f"{n % 40}-{n % 12 + 1:02}-24" for n in range(60))) is None, "there is no day 39"
