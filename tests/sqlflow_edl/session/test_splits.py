"""Which rows of a query are validation rows, by default and as written, and what the plan and the result say of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from edl import data, spec
from edl.errors import SemanticError
from edl.jobs import job_folder
from sqlflow_edl.reports.job_results import trained_on
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.pinning import PinnedTraining, pin_and_fit
from sqlflow_edl.session.session import Session
from tests.sql_cases import Case, cases

TABLES = """
CREATE TABLE orders AS
SELECT
    DATE '2024-01-01' + (range // 10)::INT AS ordered, DATE '2024-01-01' + (range // 100)::INT AS month,
    TIMESTAMP '1980-01-01' + INTERVAL (range % 90) DAY AS date_of_birth,
    CASE WHEN range < 900 THEN DATE '2024-01-01' + (range % 77)::INT END AS returned,
    DATE '2024-01-01' + CASE WHEN range < 700 THEN (range // 20)::INT ELSE 90 END AS closed,
    range % 25 AS customer, range % 3 AS kind, ['a', 'b'][1 + range % 2] AS size, range * 0.5 AS price
FROM range(1000)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(f"duckdb:///{tmp_path}/x.duckdb", create=True) as session:
        session.source.execute(TABLES)
        yield session


def fixed(session: Session, text: str) -> tuple[PinnedTraining, data.Reader]:
    [statement] = session.parse(text)
    job = job_folder.create("train", statement.text)
    found = pin_and_fit(session.source, session.compiler.training_plan(statement), job, Silent())
    return found, data.open_reader(found.pinned, job.rows)


CASES = [case for case in cases("session/splits.sql") if case.dialect == "duckdb"]


@pytest.mark.variants(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rows_are_split_by_what_suits_them(case: Case, session: Session) -> None:
    fields, text = case.fields, case.program
    found, _ = fixed(session, text)
    split = found.spec.split
    assert (f"{split.by} {split.column}".rstrip() if split else "none") == fields["split"]
    assert trained_on(found.spec, "m@1").partition(", ")[2] == fields["said"]
    [statement] = session.parse(text)
    planned = session.compiler.plan(statement).spec.split
    assert planned == (msgspec.structs.replace(split, since="") if split else None)
    rows = session.plan(statement).to_arrow().to_pylist()
    shown = [(row["value"], row["why"]) for row in rows if (row["section"], row["name"]) == ("rows", "split")]
    assert "; ".join(shown[0] if shown else ("none",)) == fields["plan"]


@pytest.mark.soak
def test_validation_rows_are_the_latest_ones(session: Session) -> None:
    found, reader = fixed(
        session, "SELECT ordered, price FROM orders TO TRAIN DNNRegressor LABEL price INTO m"
    )
    rows = found.spec.rows
    [batch] = reader.read(rows.training, rows.total, ["price"])
    assert min(batch.column(0).to_pylist()) == 450


STATES = ("last_order", "LastLogin", "dateLastSeen", "updated_at", "modified", "login")
EVENTS = ("ordered", "blasted", "created_at", "day")


@pytest.mark.variants(2)
@pytest.mark.parametrize("name", STATES + EVENTS)
def test_dates_of_states_do_not_order_the_rows(name: str, session: Session) -> None:
    text = f"SELECT ordered AS {name}, kind, size FROM orders TO TRAIN DNNClassifier LABEL size INTO m"
    [statement] = session.parse(text)
    split = session.compiler.training_plan(statement).splitting.split
    assert split is not None
    assert split.by == ("stratified" if name in STATES else "time")


def test_held_out_rows_of_another_rate_of_the_label_are_said(session: Session) -> None:
    text = "SELECT ordered, customer < CASE WHEN ordered < DATE '2024-03-31' THEN 10 ELSE 2 END AS left FROM orders"
    found, _ = fixed(session, f"{text} TO TRAIN DNNClassifier LABEL left INTO m")
    [said] = map(str, found.warnings)
    assert said == (
        "the class FALSE has 92.0 % of the validation rows and 60.0 % of the training rows: the 100 rows held out by "
        "ordered are unlike the others; if the rows to be predicted are not like these, write validation.split = "
        "stratified"
    )


@pytest.mark.parametrize(("mark", "side"), [("1 = 1", "all"), ("1 = 0", "none")])
def test_a_mark_of_one_side_alone_is_an_error(session: Session, mark: str, side: str) -> None:
    text = f"SELECT kind, price, {mark} AS held FROM orders TO TRAIN DNNRegressor WITH validation.split = column, "
    text += "validation.column = held LABEL price INTO m"
    for reads in (fixed, Session.compile):
        with pytest.raises(SemanticError, match=f"held marks {side} of the 1,000 rows as validation rows"):
            reads(session, text)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("verb", "searched"), [("", ""), ("TO TRAIN DNNRegressor", ", train.epoch = CANDIDATES(1, 2)")]
)
def test_marked_rows_choose_the_model_of_a_search(session: Session, verb: str, searched: str) -> None:
    mark = f"WITH validation.split = column, validation.column = held{searched}"
    text = f"SELECT size, kind, price, customer = 1 AS held FROM orders {verb} LABEL price {mark} INTO m"
    found, _ = fixed(session, text)
    assert (found.spec.rows.training, found.spec.rows.validation) == (960, 40)
    assert "held" not in found.spec.columns


@pytest.mark.soak
def test_the_column_of_groups_is_no_feature_unless_it_is_named(session: Session) -> None:
    text = "SELECT customer, kind, price FROM orders TO TRAIN DNNRegressor WITH validation.split = group, "
    found, _ = fixed(session, f"{text} validation.column = customer LABEL price INTO m")
    assert found.spec.columns == ("kind",)
    named, _ = fixed(session, f"{text} validation.column = customer COLUMN customer LABEL price INTO m")
    assert named.spec.columns == ("customer", "kind")


def test_one_group_cannot_be_split(session: Session) -> None:
    text = "SELECT kind, 7 AS g, price FROM orders TO TRAIN DNNRegressor WITH validation.split = group, "
    with pytest.raises(SemanticError, match="g has one value in all 1,000 rows"):
        fixed(session, f"{text} validation.column = g LABEL price INTO m")


def test_a_program_splits_the_rows_as_the_session_does(session: Session) -> None:
    text = "SELECT kind, size FROM orders TO TRAIN BoostedTreesClassifier LABEL size INTO m"
    [compiled] = session.compile(text)
    assert (
        b'SPLIT = data.Split("stratified", "size", fraction=0.1, fewest=100)'
        in compiled.program.files["reader.py"]
    )
    assert isinstance(compiled.spec.split, spec.Split)
