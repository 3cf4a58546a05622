"""Searches of tables that are too large for their time limit: what is read of them, and what is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from edl import spec
from edl.errors import SemanticError
from edl.jobs import job_folder
from sqlflow_edl.analysis.search import limits, reduction
from sqlflow_edl.analysis.search.limits import Clock, TimeLimit
from sqlflow_edl.analysis.search.table_probe import select_part
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import PinnedTraining, pin_and_fit
from sqlflow_edl.session.session import Session

ROWS, COLUMNS = 3_000, 12
TABLE = f"""
CREATE TABLE points AS SELECT {", ".join(f"hash(range + {number}) % 1000 AS x{number}" for number in range(COLUMNS))},
hash(range + 7) % 1000 + hash(range + 3) % 10 AS y, range // 50 AS place FROM range({ROWS})
"""
SEARCH = "SELECT * FROM points LABEL y WITH train.time_limit = {}, auto.models = lightgbm INTO m"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path}/x.duckdb", create=True) as session:
        session.source.execute(TABLE)
        yield session


def pin(session: Session, text: str, clock: Clock | None = None) -> tuple[PinnedTraining, list[str]]:
    [statement] = session.parse(text)
    plan = replace(session.compiler, clock=clock or Clock()).training_plan(statement)
    fixed = pin_and_fit(session.source, plan, job_folder.create("train", text), Silent())
    return fixed, [
        note
        for note in plan.notes
        if any(words in note for words in ("no more here", "no time", "without folds"))
    ]


def test_a_table_that_fits_is_read_as_it_is(session: Session) -> None:
    fixed, notes = pin(session, SEARCH.format(1000))
    assert fixed.pinned.rows == ROWS
    assert fixed.spec.query.part is msgspec.UNSET
    assert select_part(fixed.spec.query) == "SELECT * FROM points"
    assert notes == []


def test_of_many_rows_a_random_part_is_read_that_the_model_knows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction, "FEW_VALUES", 0)
    monkeypatch.setattr(TimeLimit, "parts_of_rows", lambda self, rows, cost: 4)
    fixed, notes = pin(session, SEARCH.format(1000))
    assert ROWS / 8 < fixed.pinned.rows < ROWS / 2
    assert notes == [
        "a random part of the 3,000 rows is read, one of 4: a limit of 1000 s allows no more here"
    ]
    again = session.source.stream(select_part(fixed.spec.query)).read_all()
    assert again.num_rows == fixed.pinned.rows == fixed.spec.rows.total
    assert fixed.spec.search is not None
    assert {candidate.spec.query.part for candidate in fixed.spec.search.candidates} == {spec.QueryPart(4)}


def test_rows_whose_pinning_took_long_are_pinned_again_in_part(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimeLimit, "parts_of_pinned", lambda self, rows, pinning: 2 if rows == ROWS else 1)
    fixed, _ = pin(session, SEARCH.format(1000))
    assert fixed.spec.query.part == spec.QueryPart(2)
    assert ROWS / 4 < fixed.pinned.rows < ROWS * 3 / 4


def test_of_many_columns_those_by_which_the_label_differs_are_read(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimeLimit, "columns_that_fit", lambda self, columns, planning, texts: 3)
    fixed, [note] = pin(session, SEARCH.format(1000).replace("INTO", "COLUMN x11 INTO"))
    assert {*fixed.spec.columns} == {"x7", "x11"}
    assert [column.name for column in fixed.pinned.schema] == ["x7", "x11", "y"]
    assert note.startswith("3 of 14 columns are read, by which y differs most in ")
    assert fixed.spec.query.part == spec.QueryPart(1, ("x7", "x11", "y"))


def test_late_candidates_are_not_planned(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PLANNED", 0.0)
    monkeypatch.setattr(limits, "FITTED", 0.0)
    monkeypatch.setattr(limits, "FOLDED", 0.0)
    fixed, (in_folds, *notes) = pin(session, SEARCH.format(1000))
    assert fixed.spec.search is not None
    assert len(fixed.spec.search.candidates) == limits.LEAST_FITS
    assert fixed.spec.search.folds == 1, "a small table has five otherwise"
    assert in_folds == "the models are trained without folds: 40% of the limit of 1000 s was over before"
    assert [note.partition(" candidates")[2] for note in notes] == [
        " are planned: there is no time for the plans of the others"
    ]


def test_a_limit_below_the_time_to_read_the_rows_is_an_error_at_the_limit(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "NOTICED", 0.0)
    with pytest.raises(SemanticError, match="is too short for this table") as caught:
        pin(session, SEARCH.format(0.001))
    assert caught.value.span is not None
    pin(session, "SELECT * FROM points LABEL y WITH auto.models = lightgbm INTO m")
