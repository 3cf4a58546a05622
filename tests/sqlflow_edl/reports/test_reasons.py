"""Reasons of one prediction in words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl.models.archive import read_archive
from edl.models.fitting import Bins, ColumnSummary, Fitting
from edl.spec import ClassLabel, Component, Field, JobSpec, RankingLabel, Raw, RegressionLabel
from sqlflow_edl.reports.importances import unit
from sqlflow_edl.reports.reasons import Reason, format_contribution, usual_values
from tests.edl.models.conftest import SPEC, write

TYPES = {
    "calls": "int64",
    "day": "date32[day]",
    "late": "bool",
    "plan": "string",
    "note": "string",
    "spend": "double",
}
COLUMNS = {
    "calls": ColumnSummary(100, 0, mean=1.5, bins=Bins((1.0, 2.0, 3.0), (22, 34, 25, 19))),
    "day": ColumnSummary(100, 0, mean=0.0, bins=Bins((86_400.0, 172_800.0), (49, 30, 21))),
    "late": ColumnSummary(100, 0, mean=0.3, top=((False, 70), (True, 30))),
    "plan": ColumnSummary(100, 0, top=(("basic", 45), ("plus", 30))),
    "note": ColumnSummary(100, 0, top=(("angry", 3), ("late", 2))),
    "spend": ColumnSummary(100, 0, mean=668.4),
}


def spec(**changes: object) -> JobSpec:
    query = msgspec.structs.replace(SPEC.query, schema=tuple(Field(*each) for each in TYPES.items()))
    return msgspec.structs.replace(SPEC, query=query, inputs={"features": tuple(map(Raw, TYPES))}, **changes)


def test_usual_values_are_medians_and_frequent_values(tmp_path: Path) -> None:
    model = read_archive(write(tmp_path / "m.zip", spec=spec(), fitting=Fitting(COLUMNS)))
    assert usual_values(model) == {
        "calls": "1", "day": "1970-01-02", "late": "FALSE", "plan": "basic", "note": "", "spend": "668.4",
    }  # fmt: skip


def test_without_statistics_kept_rows_tell_what_is_usual(tmp_path: Path) -> None:
    kept = pa.record_batch(
        {"calls": [1, 2, 9], "plan": ["basic", "basic", None], "day": pa.nulls(3, pa.date32())}
    )
    inputs = {"features": tuple(map(Raw, kept.schema.names))}
    trained = msgspec.structs.replace(spec(), inputs=inputs)
    found = write(tmp_path / "m.zip", spec=trained, background=kept)
    assert usual_values(read_archive(found)) == {"calls": "2", "plan": "basic", "day": ""}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason("tenure", "2", "26", 0.2123), "tenure 2, usually 26: +0.21"),
        (Reason("plan", "basic", "basic", -0.0704), "plan basic, as usual: -0.07"),
        (Reason("note", "late", "", 12345.6), "note late: +12346"),
        (Reason("age", "unknown", "41", 0.0), "age unknown, usually 41: +0"),
    ],
)
def test_a_reason_is_the_value_what_is_usual_and_the_contribution(reason: Reason, words: str) -> None:
    assert reason.words == words


def test_contributions_have_a_sign_and_two_digits() -> None:
    assert [format_contribution(each) for each in (0.214, -0.00211, 3.04, -47.3)] == [
        "+0.21",
        "-0.0021",
        "+3",
        "-47",
    ]


def test_the_unit_is_the_labels_or_the_unit_of_the_margin_of_trees() -> None:
    number, classes = RegressionLabel("cost"), ClassLabel("kind", ("a", "b", "c"))
    two = ClassLabel("late", (False, True))
    assert unit(spec(label=number), is_margin=True) == "the unit of cost"
    counts = spec(label=number, loss=Component("poisson"))
    assert unit(counts, is_margin=True) == "the logarithm of cost"
    assert unit(counts, is_margin=False) == "the unit of cost"
    assert unit(spec(label=two), is_margin=True) == "log-odds of TRUE"
    assert unit(spec(label=two), is_margin=False) == "the probability of TRUE"
    assert unit(spec(label=classes), is_margin=True) == "log-odds of the predicted class"
    assert unit(spec(label=classes), is_margin=False) == "the probability of the predicted class"
    assert unit(spec(label=RankingLabel("clicks", "query")), is_margin=True) == "the score of a row"
