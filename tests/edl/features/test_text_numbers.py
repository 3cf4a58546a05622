"""Numbers in texts, and texts that are none."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from edl.features.computed import column, computed
from edl.spec import Computed

NONE = math.nan


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("12", 12.0, 12.0),
        (" -3 ", -3.0, -3.0),
        ("+5", 5.0, 5.0),
        ("1.5", 1.5, NONE),
        ("1,5", NONE, 1.5),
        ("1,234", 1234.0, 1.234),
        ("1.234", 1.234, 1234.0),
        ("$1,003.50", 1003.5, NONE),
        ("€ 1.003,50", NONE, 1003.5),
        ("12 %", 12.0, 12.0),
        ("-3e2", -300.0, NONE),
        (".5", 0.5, NONE),
        ("1e999", NONE, NONE),
        ("1,23,456", NONE, NONE),
        ("?", NONE, NONE),
        ("", NONE, NONE),
        (None, NONE, NONE),
        (".", NONE, NONE),
        ("e5", NONE, NONE),
        ("nan", NONE, NONE),
        ("0x10", NONE, NONE),
        ("1_000", NONE, NONE),
        ("12 km", NONE, NONE),
        ("٣", NONE, NONE),
    ],
)
def test_a_text_is_the_number_that_its_mark_gives_it(text: str | None, point: float, comma: float) -> None:
    batch = pa.record_batch({"t": pa.array([text], pa.string())})
    for mark, number in (("", point), (",", comma)):
        [found] = column(batch, computed("TO_NUMBER", "t", path=mark)).to_pylist()
        assert found == pytest.approx(number, nan_ok=True)


def test_numbers_and_categories_in_place_of_texts_are_read_too() -> None:
    batch = pa.record_batch({"n": [60, 7], "d": pa.array(["1.5", "?"]).dictionary_encode()})
    assert column(batch, computed("TO_NUMBER", "n")).to_pylist() == [60.0, 7.0]
    assert column(batch, computed("TO_NUMBER", "d")).to_pylist() == [1.5, pytest.approx(NONE, nan_ok=True)]


@pytest.mark.parametrize(
    "source", [Computed("TO_NUMBER", ("t",), ";"), Computed("TO_NUMBER", (Computed("ABS", ("t",)),))]
)
def test_other_marks_and_computed_texts_are_refused(source: Computed) -> None:
    with pytest.raises(SemanticError, match="TO_NUMBER takes a column, and a comma"):
        computed(source.operator, *source.operands, path=source.path)
