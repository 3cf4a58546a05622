"""Readings of CSV columns: all values, one form, and the same values by DuckDB and by Arrow."""

from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl.data.files.csv_readings import (
    CURRENCIES,
    READINGS,
    TEXT,
    Reading,
    candidates,
    first_misfit,
    observe_columns,
    reading_named,
)
from edl.errors import SourceError


def found(
    values: list[str | None], delimiter: str = ";", batch: int = 2, **options: str
) -> tuple[str, list[str]]:
    batches = [
        pa.record_batch({"v": pa.array(values[at : at + batch], pa.string())})
        for at in range(0, len(values), batch)
    ]
    column = observe_columns(["v"], candidates(options, delimiter), batches)["v"]
    return column.reading.name if column.reading else TEXT, [each.name for each in column.undecided_readings]


@pytest.mark.variants(20)
@pytest.mark.parametrize(
    ("values", "reading"),
    [
        (["1", None, "-2"], "BIGINT"),
        (["1", "2", "2.5"], "DOUBLE"),
        (["1,5", "7", "1,234"], "DOUBLE ,"),
        (["0,234"], "DOUBLE ,"),
        (["1234,567"], "DOUBLE ,"),
        (["1.5", "1,5"], TEXT),
        (["1.234,50", "2"], "DOUBLE .,"),
        (["2", "1,234.5"], "DOUBLE ,."),
        (["1,234,567"], "DOUBLE ,."),
        (["€1.234,50", "€12,00", "-€ 5"], "DOUBLE €.,"),
        (["1.234 €", "2.345 €"], TEXT),
        (["$1,234.50", "$7"], "DOUBLE $,."),
        (["9%", "15 %"], "DOUBLE %"),
        (["9%", "0.15"], TEXT),
        (["€5", "$6"], TEXT),
        (["007 €"], TEXT),
        (["1", "NA", None], "BIGINT NA"),
        (["NA", "1,5", "NA"], "DOUBLE , NA"),
        (["26.12.2024", "NA"], "DATE d.m.Y NA"),
        (["NA", "x"], TEXT),
        (["NA"], TEXT),
        (["0.30000000000000004", "1.000000000000000056e-01"], "DOUBLE"),
        (["9007199254740992", "-9234567890123456.0", "0.5"], "DOUBLE"),
        (["9007199254740993", "0.5"], TEXT),
        (["1", "3", "9007199254740993", "0.5"], TEXT),
        (["9007199254740993", "3"], "BIGINT"),
        (["9007199254740993,0", "0,5"], TEXT),
        (["12345678901234567e3", "0.5"], "DOUBLE"),
        (["2024-01-02", "2024-01-02 10:11"], "TIMESTAMP"),
        (["13/02/2024", "01/02/2024"], "DATE d/m/Y"),
        (["02/13/2024", "01/02/2024"], "DATE m/d/Y"),
        (["13/02/2024", "02/13/2024"], TEXT),
        (["31/02/2024", "13/02/2024"], TEXT),
        (["1.2.2024", "26.12.2024 10:11:12"], "TIMESTAMP d.m.Y"),
        (["26-12-2024"], "DATE d-m-Y"),
        (["2024/12/26", "2024/1/2"], "DATE Y/m/d"),
        (["2024/12/26", "1"], TEXT),
        (["26-Dec-2024", "1-sept-2024"], "DATE d-b-Y"),
        (["26 May 2024", "3 june 2024 10:11"], "TIMESTAMP d b Y"),
        (["26-Dez-2024"], TEXT),
        (["Dec 26 2024", "january 1, 2024", "Sept. 3, 2024"], "DATE b d Y"),
        (["Dec 26, 2024 9:05"], "TIMESTAMP b d Y"),
        (["12/1/2010 8:26", "12/13/2010 10:03"], "TIMESTAMP m/d/Y"),
        (["2010-12-01 8:26"], "TIMESTAMP Y-m-d"),
        (["01/13/2024 12:00:00 AM", "1/2/2024 3:15PM"], "TIMESTAMP m/d/Y p"),
        (["13.1.2024 11:59 p.m."], "TIMESTAMP d.m.Y p"),
        (["13/1/2024 13:15 PM"], TEXT),
        (["13/1/2024 3:15 PM", "14/1/2024 15:15"], TEXT),
        (["31-Feb-2024"], TEXT),
        (["2 500,00 kr", "300,00 kr"], "DOUBLE kr ,"),
        (["EUR 1,234.5", "EUR 2"], "DOUBLE EUR,."),
        (["EUR 2", "USD 2"], TEXT),
        (["1\u202f234,50", "7"], "DOUBLE  ,"),
        (["12 345", "123 45"], TEXT),
        (["12 345", "678 901"], TEXT),
        (["yes", "NO"], "BOOLEAN yes"),
        (["no", "no"], TEXT),
        (["yes", "no", "?"], TEXT),
        (["99999999", "88888888", "+55(85)99999"], TEXT),
    ],
)
def test_a_column_has_the_reading_that_all_its_values_fit(values: list[str | None], reading: str) -> None:
    for batch in (1, 2, 100):
        assert found(values, batch=batch)[0] == reading


@pytest.mark.parametrize(
    ("values", "undecided"),
    [
        (["01/02/2024"], {"DATE d/m/Y", "TIMESTAMP d/m/Y", "DATE m/d/Y", "TIMESTAMP m/d/Y"}),
        (["1,234", "5,678"], {"DOUBLE ,", "DOUBLE ,.", "DOUBLE .,"}),
        (["€1.234"], {"DOUBLE €,.", "DOUBLE €.,"}),
        (["no"], set()),
        (["12345678901234567890"], {"VARCHAR digits"}),
        (["x", "1,234"], set()),
    ],
)
def test_values_that_decide_between_no_two_readings_are_text(
    values: list[str | None], undecided: set[str]
) -> None:
    assert found(values)[0] == TEXT
    assert set(found(values)[1]) == undecided


def test_options_decide_and_exclude_readings() -> None:
    assert found(["01/02/2024"], dates="day-first")[0] == "DATE d/m/Y"
    assert found(["01/02/2024"], dates="month-first")[0] == "DATE m/d/Y"
    assert found(["13/02/2024"], dates="month-first")[0] == TEXT
    assert found(["1,234"], decimal=",")[0] == "DOUBLE ,"
    assert found(["1.234"], decimal=",")[0] == "DOUBLE .,"
    assert found(["€1.234"], decimal=".")[0] == "DOUBLE €,."
    assert found(["1,234.5"], delimiter=",")[0] == "DOUBLE ,."
    assert found(["1,5"], decimal=".")[0] == TEXT
    assert found(["1,5"], delimiter=",")[0] == TEXT
    assert found(["1,5"], delimiter=",", decimal=",")[0] == "DOUBLE ,"


EXAMPLES = {
    "BIGINT": ["0", "+1", "-9223372036854775808"],
    "DOUBLE": ["+1.5", ".5", "1.", "1e-7", "-Infinity"],
    "BOOLEAN": ["TRUE", "false"],
    "DATE": ["2024-02-29", "0001-01-01"],
    "TIMESTAMP": ["2024-02-29", "2024-02-29T01:02:03.123456", "2024-02-29 01:02", "2024-12-31 24:00"],
    "TIMESTAMPTZ": [
        "2024-12-31T24:00:00Z",
        "2024-02-29 01:02Z",
        "2024-02-29T01:02:03.5+01:30",
        "2024-02-29 01:02-02",
    ],
    "DOUBLE ,": ["1,5", "-,5", "7", "1,5e3"],
    "BOOLEAN yes": ["yes", "NO", "Yes"],
}


def examples(name: str) -> list[str]:
    """Return values of a reading; of dates, in the order and with the mark of its name."""
    if name in EXAMPLES:
        return EXAMPLES[name]
    kind, _, order = name.partition(" ")
    if kind == "DOUBLE":
        return amounts(order)
    parts = (("1", "2", "Feb"), ("29", "02", "february"), ("09", "9", "SEPT"))
    is_half_day, order = order.endswith(" p"), order.removesuffix(" p")
    if order == "Y-m-d":
        parts = (("01", "02", ""), ("29", "02", ""))
    days = [
        order.translate(str.maketrans({"d": day, "m": month, "b": word, "Y": "2024"}))
        for day, month, word in parts
    ]
    if is_half_day:
        times = ("12:05 AM", "9:05 a.m.", "12:00PM", "3:15:04.5 pm", "11:59:59 PM")
        return [f"{day} {time}" for day in days for time in times]
    return (
        [*days, f"{days[0]} 10:11", f"{days[0]} 9:05:01", f"{days[1]}T23:59:59.5"]
        if kind == "TIMESTAMP"
        else days
    )


def amounts(form: str) -> list[str]:
    """Return numbers with the symbol of a form, and its marks between thousands and before fractions."""
    symbol = next((each for each in CURRENCIES if form.startswith(each)), "")
    marks = form.removeprefix(symbol)
    numbers = ["0", "7", "999999999999999"]
    if marks:
        thousands, decimal = marks
        numbers += [f"1{thousands}234{decimal}50", f"12{thousands}345{thousands}678", f"0{decimal}5"]
    if not symbol:
        return [*numbers, *(f"-{each}" for each in numbers)]
    return (
        [f"{symbol}{each}" for each in numbers]
        + [f"-{symbol} {each}" for each in numbers]
        + [f"{each}\u00a0{symbol}" for each in numbers]
    )


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    "name",
    [name for name, reading in READINGS.items() if reading.type != TEXT]
    + ["BIGINT NA", "DATE NA", "DOUBLE €., NA"],
)
def test_duckdb_and_arrow_read_the_same_values(name: str) -> None:
    reading, plain = reading_named(name), name.removesuffix(" NA")
    assert reading is not None
    values = pa.array([*examples(plain), *(["NA"] if plain != name else [])])
    assert reading.fit(values).to_pylist() == [True] * len(values)
    with duckdb.connect() as connection:
        connection.register("t", pa.table({"v": values}))
        by_duckdb = (
            connection.sql(f"SELECT {reading.sql('v')} AS v FROM t").to_arrow_reader(10).read_all()["v"]
        )
    assert by_duckdb.combine_chunks().cast(reading.arrow).equals(reading.convert(values))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1/2/2024 12:05 AM", dt.datetime(2024, 1, 2, 0, 5)),
        ("1/2/2024 9:05 a.m.", dt.datetime(2024, 1, 2, 9, 5)),
        ("1/2/2024 12:05:01 pm", dt.datetime(2024, 1, 2, 12, 5, 1)),
        ("1/2/2024 3:15:00.5PM", dt.datetime(2024, 1, 2, 15, 15, 0, 500_000)),
    ],
)
def test_hours_of_the_afternoon_follow_noon(text: str, value: dt.datetime) -> None:
    assert READINGS["TIMESTAMP m/d/Y p"].convert(pa.array([text])).to_pylist() == [value]


def test_a_fraction_of_a_second_keeps_its_place() -> None:
    halves = pa.array(["1.2.2024 10:00:00.5", "01.02.2024 9:00:00.05"])
    assert [time.microsecond for time in READINGS["TIMESTAMP d.m.Y"].convert(halves).to_pylist()] == [
        500_000,
        50_000,
    ]


@given(st.lists(st.text("0123456789.,-/+e :TZtrufalsnNA€%", max_size=12), max_size=6))
def test_a_reading_that_is_found_converts_every_value(values: list[str]) -> None:
    column = observe_columns(
        ["v"], candidates({}, ";"), [pa.record_batch({"v": pa.array(values, pa.string())})]
    )["v"]
    if column.reading is not None:
        kept = pa.array([value.strip(" ") for value in values if value.strip(" ")], pa.string())
        nulls = sum(value == "NA" for value in kept.to_pylist())
        assert column.reading.convert(kept).null_count == nulls


def test_no_value_is_converted_by_itself_to_find_the_order_of_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at each of 20,000 dates took ten seconds."""
    monkeypatch.setattr(Reading, "_casts", lambda *_: pytest.fail("one value is converted"))
    assert found(["26.12.2024", "01.02.2024"] * 500, batch=1000)[0] == "DATE d.m.Y"


def test_the_first_value_that_does_not_fit_is_found() -> None:
    texts = pa.array(["1", None, " ", "2", "A7", "B8"])
    assert first_misfit(READINGS["BIGINT"], texts) == 4
    assert first_misfit(READINGS["DATE"], pa.array(["2024-02-29", "2024-02-30"])) == 1
    assert first_misfit(READINGS["BIGINT"], pa.array(["1", None])) is None


def test_a_reading_of_a_later_version_is_an_error() -> None:
    assert reading_named(TEXT) is None
    with pytest.raises(SourceError, match="not read as 'MONEY' by this version"):
        reading_named("MONEY")
