"""EVALUATE by segments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from edl.errors import SemanticError
from sqlflow_edl.analysis.checks.query_errors import UnknownColumnError
from sqlflow_edl.session import segments
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session

WITHOUT_MODEL = (
    "SELECT * FROM visits TO EVALUATE WITH evaluate.prediction = guess, evaluate.by = {} LABEL bought"
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session("duckdb:") as opened:
        opened.run(
            'CREATE TABLE visits AS SELECT i % 7 AS pages, [i] AS tags, i % 2 AS "the plan", '
            "['north', 'south', NULL][1 + i % 3] AS region, "
            "i % 2 AS plan, i % 7 > 3 AS bought, (i % 7 > 3) != (i % 9 = 0) AS returned, "
            "(i % 7 > 3) != (i % 3 = 0 AND i % 5 = 0) AS guess, "
            "(i % 7) * 2.0 + i % 3 * (i % 4) AS cost FROM range(420) AS r (i);"
            "SELECT pages, region, returned FROM visits TO TRAIN LGBMClassifier WITH train.num_boost_round = 3 "
            "LABEL returned INTO buyers;"
            "SELECT pages, region, cost FROM visits TO TRAIN LGBMRegressor WITH train.num_boost_round = 9 "
            "LABEL cost INTO costs"
        )
        yield opened


def rows(session: Session, text: str) -> list[dict[str, Any]]:
    return session.run(text)[0].to_arrow().to_pylist()


def test_each_segment_has_the_figures_of_its_rows_alone(session: Session) -> None:
    by_region = rows(session, "SELECT * FROM visits TO EVALUATE costs WITH evaluate.by = region")
    assert {row["region"] for row in by_region} == {"north", "south", None}
    for row in by_region:
        where = "region IS NULL" if row["region"] is None else f"region = '{row['region']}'"
        [alone] = rows(session, f"SELECT * FROM visits WHERE {where} TO EVALUATE costs")
        assert {name: row[name] for name in alone} == pytest.approx(alone)
        assert row["row_count"] == 140
        assert row["rmse_low"] < row["rmse"] < row["rmse_high"]


def test_segments_of_classes_have_their_probabilities_and_intervals(session: Session) -> None:
    by_both = rows(session, "SELECT * FROM visits TO EVALUATE buyers WITH evaluate.by = [region, plan]")
    assert [row["row_count"] for row in by_both] == [70] * 6
    [whole] = rows(session, "SELECT * FROM visits TO EVALUATE buyers")
    assert sum(row["accuracy"] for row in by_both) / 6 == pytest.approx(whole["accuracy"])
    assert sum(row["log_loss"] for row in by_both) / 6 == pytest.approx(whole["log_loss"])
    assert all(row["accuracy_low"] < row["accuracy"] for row in by_both)


def test_by_is_a_clause_of_evaluate(session: Session) -> None:
    clause, attribute = (
        session.parse(f"SELECT * FROM visits TO EVALUATE buyers {words} INTO segments")[0]
        for words in ("BY region, plan", "WITH evaluate.by = [region, plan]")
    )
    for statement in (clause, attribute):
        assert [str(name) for name in segments.segment_columns(statement)] == ["region", "plan"]
    assert clause.into[0].text == "segments"
    [column] = segments.segment_columns(session.parse("SELECT * FROM t TO EVALUATE m LABEL y BY by")[0])
    assert str(column) == "by"


def test_predictions_of_another_system_have_segments(session: Session) -> None:
    by_region = {row["region"]: row for row in rows(session, WITHOUT_MODEL.format("region"))}
    assert by_region["north"]["accuracy"] == pytest.approx(0.8)
    assert by_region["south"]["accuracy"] == 1.0
    assert by_region["south"]["accuracy_low"] == pytest.approx(140 / (140 + 1.96**2))  # Wilson's


def test_a_figure_that_a_segment_does_not_define_is_null(session: Session) -> None:
    text = "SELECT * FROM visits TO EVALUATE buyers WITH evaluate.by = returned, metrics = [auc, accuracy]"
    by_class = rows(session, text)
    assert [row["auc"] for row in by_class] == [None, None]
    assert all(row["accuracy"] is not None for row in by_class)


def test_a_threshold_decides_in_segments_too(session: Session) -> None:
    text = (
        "SELECT * FROM visits TO EVALUATE buyers WITH evaluate.by = region, threshold = {}, metrics = recall"
    )
    none, every = (rows(session, text.format(value)) for value in (1, 0))
    assert [row["recall"] for row in (*none, *every)] == [0.0] * 3 + [1.0] * 3


def test_segments_become_a_table(session: Session) -> None:
    [result] = session.run(WITHOUT_MODEL.format("region") + " INTO by_region")
    assert result.message == "420 rows in 3 segments; wrote 3 rows to by_region"
    assert {row["row_count"] for row in rows(session, "SELECT * FROM by_region")} == {140}
    session.run("DROP TABLE by_region")


def test_columns_are_found_as_in_other_clauses(session: Session) -> None:
    [result] = session.run('SELECT * FROM visits TO EVALUATE buyers BY Region, "the plan"')
    assert result.to_arrow().column_names[:3] == ["region", "the plan", "row_count"]


def test_a_note_on_the_rows_is_told_once(session: Session) -> None:
    class Notes(Silent):
        def __init__(self) -> None:
            self.told: list[str] = []

        def note(self, text: str) -> None:
            self.told.append(text)

    observer = Notes()
    session.observer, before = observer, session.observer
    session.run("SELECT pages + 90 AS pages, region, returned FROM visits TO EVALUATE buyers BY region")
    session.observer = before
    assert observer.told
    assert len(observer.told) == len({*observer.told})


def test_only_the_largest_segments_are_shown(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "MOST_SEGMENTS", 2)
    [result] = session.run(WITHOUT_MODEL.format("region"))
    assert (result.to_arrow().num_rows, result.message) == (2, "420 rows in 3 segments")
    assert result.notes[-1] == "1 smaller segment with 140 rows are left out"


def test_the_plan_names_the_segments(session: Session) -> None:
    [statement] = session.parse("SELECT * FROM visits TO EVALUATE costs WITH evaluate.by = [region, plan]")
    plan = session.plan(statement).to_arrow().to_pylist()
    assert ("segments", "region, plan") in {(row["section"], row["name"]) for row in plan}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("evaluate.by = regio", "unknown column regio"),
        ("evaluate.by = 3", "evaluate.by is a column or a list of columns"),
        ("evaluate.by = []", "evaluate.by is a column or a list of columns"),
        ("evaluate.by = region BY plan", "evaluate.by is given twice"),
        ("evaluate.by = region, evaluate.report = roc_curve", "evaluate.by gives figures, and no roc_curve"),
        ("evaluate.by = region, validation.unseen_only = true", "evaluate.by measures all rows of the query"),
        ("evaluate.by = region, unseen_only = true", "evaluate.by measures all rows of the query"),
        ("evaluate.by = tags", "tags has several values in a row, so it names no segment"),
    ],
)
def test_segments_that_cannot_be_are_refused(session: Session, settings: str, message: str) -> None:
    with pytest.raises(SemanticError, match=message) as raised:
        session.run(f"SELECT * FROM visits TO EVALUATE buyers WITH {settings}")
    assert raised.value.span is not None


def test_an_unknown_column_is_answered_with_the_nearest(session: Session) -> None:
    with pytest.raises(UnknownColumnError) as raised:
        session.run("SELECT * FROM visits TO EVALUATE buyers WITH evaluate.by = regio")
    assert raised.value.hint == "did you mean region?"


def test_a_value_that_is_no_number_is_a_segment_of_its_own() -> None:
    keys = pa.table({"x": [math.nan, 1.0, None, math.nan]})
    codes = segments._codes(keys).tolist()
    assert codes[0] == codes[3]
    assert len(set(codes)) == 3
