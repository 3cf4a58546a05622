"""Charts of bars."""

from __future__ import annotations

from xml.etree import ElementTree

from edl.models.fitting import Histogram
from sqlflow_edl.charts.bars import bars, histogram, top_values


def titles(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [each.text or "" for each in root.iter() if each.tag.endswith("title")]


def test_each_bin_of_a_histogram_tells_its_range_and_count() -> None:
    assert titles(histogram(Histogram(0.0, 0.5, (3, 0, 1200)))) == [
        "0 to 0.5: 3",
        "0.5 to 1: 0",
        "1 to 1.5: 1,200",
    ]


def test_few_numbers_have_few_bins() -> None:
    told = titles(histogram(Histogram(3.0, 1.0, (1, 2, 0, 4) * 6)))
    assert told[:2] == ["0 to 4: 1", "4 to 8: 7"]
    assert len(told) == 7
    assert sum(int(each.rpartition(" ")[2]) for each in told) == 42


def test_frequent_values_tell_their_shares() -> None:
    assert titles(top_values([("<a>", 30), (True, 10)], 40)) == ["<a>: 75.0 %", "TRUE: 25.0 %"]
    assert top_values([], 0) == ""


def test_values_without_a_number_have_no_bar() -> None:
    assert titles(bars([("a", 0.5), ("b", None)], "gains", shares=True)) == ["a: 50.0 %", "b: not defined"]
    assert bars([], "gains") == ""


def test_a_histogram_of_dates_has_dates() -> None:
    found = histogram(Histogram(1_509_926_400.0, 86_400.0 * 20, (3, 4)), "date32[day]")
    assert "Histogram of 7 dates from 2017-11-06 to 2017-12-16" in found
    assert ">2017-11-06</text>" in found
    assert "2017-11-06 to 2017-11-26: 3" in found
