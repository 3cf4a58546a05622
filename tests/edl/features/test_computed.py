"""Values of computed columns, and what none may be."""

from __future__ import annotations

import datetime as dt
import math

import msgspec
import pyarrow as pa
import pytest

from edl import features as fc
from edl.errors import SemanticError
from edl.features.computed import column, with_computed
from edl.spec import Computed, Source, Standardize, source_columns

BATCH = pa.record_batch(
    {
        "x": pa.array([8.0, None, 2.0, math.nan, 1e308]),
        "y": pa.array([2, 1, 0, 4, -1], pa.int32()),
        "b": pa.array([True, False, None, True, False]),
        "day": pa.array([dt.date(1970, 1, 2)] * 5),
    }
)


@pytest.mark.parametrize(
    ("computed", "wanted"),
    [
        (fc.computed("+", "x", "y", 1), [11.0, None, 3.0, None, 1e308]),
        (fc.computed("-", "y"), [-2.0, -1.0, 0.0, -4.0, 1.0]),
        (fc.computed("*", "x", 10), [80.0, None, 20.0, None, None]),
        (fc.computed("/", "x", "y"), [4.0, None, None, None, -1e308]),
        (fc.computed("/", 1, fc.computed("/", 1, "y")), [2.0, 1.0, None, 4.0, -1.0]),
        (fc.computed("LN", "y"), [math.log(2), 0.0, None, math.log(4), None]),
        (fc.computed("SQRT", "y"), [math.sqrt(2), 1.0, 0.0, 2.0, None]),
        (fc.computed("EXP", fc.computed("*", "y", 1000)), [None, None, 1.0, None, 0.0]),
        (fc.computed("ABS", "y"), [2.0, 1.0, 0.0, 4.0, 1.0]),
        (fc.computed("LEAST", "x", "y"), [2.0, None, 0.0, None, -1.0]),
        (fc.computed("GREATEST", "x", 5), [8.0, None, 5.0, None, 1e308]),
        (fc.computed("COALESCE", "x", "y"), [8.0, 1.0, 2.0, 4.0, 1e308]),
        (fc.computed("+", "b", 0), [1.0, 0.0, None, 1.0, 0.0]),
        (fc.computed("/", "day", 86_400), [1.0] * 5),
    ],
    ids=lambda value: str(value) if isinstance(value, Computed) else "",
)
def test_values_are_finite_or_missing(computed: Computed, wanted: list[float | None]) -> None:
    found = [None if math.isnan(value) else value for value in column(BATCH, computed).to_pylist()]
    assert found == pytest.approx(wanted)


def test_a_feature_reads_a_computed_column_and_the_table_its_parts() -> None:
    ratio = fc.computed("/", "x", "y")
    features = fc.Features(fc.standardize(ratio, mean=1.0, std=3.0), fc.one_hot(fc.bucket(ratio, [3, 5])))
    assert features.source_columns == ("x", "y")
    arrays = features.transform(BATCH.slice(0, 3))
    assert arrays["dense"].tolist() == [[1.0], [0.0], [0.0]]
    assert arrays["f1"].tolist() == [1, 3, 3]


def test_computed_columns_stand_behind_the_batchs_columns() -> None:
    [batch] = with_computed([BATCH], {"x / y": fc.computed("/", "x", "y")})
    assert batch.schema.names == [*BATCH.schema.names, "x / y"]


def test_a_computed_column_is_data() -> None:
    feature = Standardize(fc.computed("LN", fc.computed("+", "x", "na me", 1)), 0.0, 1.0)
    assert msgspec.json.decode(msgspec.json.encode(feature), type=Standardize) == feature
    assert (str(feature.column), [*source_columns(feature)]) == ("LN(x + `na me` + 1)", ["x", "na me"])


@pytest.mark.parametrize(
    ("operand", "text"),
    [("x", "-x"), (fc.computed("-", "x"), "-(-x)"), (-5, "-(-5)"), (fc.computed("*", "x", -5), "-(x * -5)")],
)
def test_a_written_expression_has_no_comment(operand: Source | float, text: str) -> None:
    assert str(fc.computed("-", operand)) == text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fc.computed("LNN", "x"), "computed has no operator 'LNN'"),
        (lambda: fc.computed("/", "x"), "/ takes 2 operands, here are 1"),
        (lambda: fc.computed("+", "x"), "+ takes two or more operands, here are 1"),
        (lambda: fc.computed("+", "x", math.inf), "+ takes names of columns and numbers, not inf"),
        (lambda: fc.year(fc.computed("-", "day"), 0.0, 1.0), "year needs the name of a column"),
        (lambda: fc.raw(fc.computed("-", "day"), "month"), "the month needs the name of a column"),
        (lambda: fc.vocabulary(fc.computed("-", "x"), [1]), "vocabulary needs the name of a column"),
    ],
)
def test_what_no_column_may_be_computed_from(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SemanticError) as raised:
        make()
    assert message in raised.value.message
