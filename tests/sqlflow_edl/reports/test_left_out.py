"""Columns that some members of an ensemble read, and others leave out, in the notes, the plan and the reports."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edl.models.archive import Archive, read_archive
from edl.models.fitting import Fitting
from edl.models.registry.records import ModelRecord, ModelVersion
from edl.spec import Member, Query, Standardize
from edl.spec.job import Field
from sqlflow_edl.reports.description import describe
from sqlflow_edl.session.session import Session
from tests.edl.models.conftest import SPEC, write

REASON = "most of its texts occur once"
TABLE = """
CREATE TABLE people AS
SELECT range % 60 AS age, 'street ' || range % 1100 AS street, 'id' || range AS flat, range % 60 * 2.5 AS income
FROM range(2000)
"""


def reading(*columns: str) -> Member:
    features = tuple(Standardize(name, 0.0, 1.0) for name in columns)
    return Member(1 / 3, msgspec.structs.replace(SPEC, inputs={"features": features}))


@pytest.fixture
def ensemble(tmp_path: Path) -> Archive:
    fields = tuple(Field(name, "string") for name in ("x", "zip", "city", "flat", "y"))
    query = Query("SELECT * FROM t", "duckdb", "duckdb:///t.duckdb", fields)
    members = (reading("x", "city"), reading("x", "zip", "city"), reading("x", "city"))
    spec = msgspec.structs.replace(SPEC, query=query, inputs={}, members=members)
    fitting = Fitting(left_out=dict.fromkeys(("zip", "city", "flat"), REASON))
    return read_archive(write(tmp_path / "m.zip", spec=spec, fitting=fitting))


@pytest.fixture
def version() -> ModelVersion:
    record = ModelRecord("Ensemble", "ensemble", 8, {}, SPEC.statement)
    return ModelVersion("m", 1, "ready", True, "2026-01-01T00:00:00", record, "", "abc", 1000, "0")


def test_a_description_says_how_many_members_leave_a_column_out(
    ensemble: Archive, version: ModelVersion
) -> None:
    found = {name: value for section, name, value in describe(version, ensemble) if section == "left out"}
    assert found == {"zip": f"by 2 of 3 members: {REASON}", "flat": REASON}


def test_a_page_shows_the_features_of_a_column_that_some_members_leave_out(
    ensemble: Archive, version: ModelVersion
) -> None:
    reader = pytest.importorskip("sqlflow_edl.extensions.web.model_reader")
    view = pytest.importorskip("sqlflow_edl.extensions.web.model_view")
    page = view.render_report(reader.ModelDetails(version, ensemble, {}, (), (version,)))
    assert f"<strong>left out:</strong> by 2 of 3 members: {REASON}" in page
    assert page.count('<li class="unused">') == 1  # flat
    assert page.count("<strong>left out:</strong>") == 2


def test_the_plan_and_the_notes_of_a_search_count_its_candidates() -> None:
    with Session("duckdb:") as session:
        session.source.execute(TABLE)
        text = "SELECT * FROM people LABEL income WITH auto.models = lightgbm, auto.trials = 4 INTO m"
        [statement] = session.parse(text)
        rows = session.plan(statement).to_arrow().to_pylist()
        plan = {row["name"]: row["why"] for row in rows if row["section"] == "left out"}
        [compiled] = session.compile(text)
    encoding = sum("street" in each.spec.columns for each in compiled.spec.search.candidates)
    count = len(compiled.spec.search.candidates)
    assert 0 < encoding < count
    some = f"by {count - encoding} of {count} candidates: {REASON}"
    assert plan["street"].startswith(some)
    assert plan["flat"].startswith("its text is different in every row")
    assert [note for note in compiled.notes if note.startswith(f"street is left out {some}")]
    assert [note for note in compiled.notes if note.startswith("flat is left out: ")]
