"""Losses that the short form tries by the values of the label, from a statement to its candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from edl.errors import SemanticError
from sqlflow_edl.session.session import Session
from tests.databases import fill

ROWS = 600
TREES = "auto.models = [lightgbm, xgboost]"


def draw(kind: str) -> Any:
    numbers = np.random.default_rng(1)
    size = np.exp(numbers.normal(size=ROWS))
    return {
        "count": lambda: numbers.poisson(3 * size),
        "amount": lambda: numbers.gamma(2.0, 50 * size),
        "paid": lambda: (numbers.random(ROWS) < 0.4) * numbers.gamma(2.0, 50 * size),
        "even": lambda: numbers.normal(100, 5, ROWS),
        "debt": lambda: numbers.gamma(2.0, 50 * size) - 20,
        "price": lambda: (1000 * size).astype(int) + 1,
        "kind": lambda: numbers.choice(["a", "b"], ROWS),
    }[kind]()


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    columns = {name: draw(name) for name in ("count", "amount", "paid", "even", "debt", "price", "kind")}
    with Session("duckdb:") as session:
        fill(session, "visits", pa.table({"x": np.random.default_rng(2).normal(size=ROWS), **columns}))
        yield session


def compiled(session: Session, label: str, attributes: str = TREES) -> Any:
    [only] = session.compile(f"SELECT x, {label} FROM visits LABEL {label} WITH {attributes} INTO m")
    return only


def losses(search: spec.Search | None) -> list[tuple[str, str]]:
    assert search is not None
    return [(each.spec.framework, each.spec.loss.name) for each in search.candidates]


@pytest.mark.parametrize(
    ("label", "loss"), [("count", "poisson"), ("amount", "gamma"), ("paid", "tweedie"), ("price", "gamma")]
)
def test_a_skewed_label_without_negative_values_has_its_loss(session: Session, label: str, loss: str) -> None:
    found = losses(compiled(session, label).spec.search)
    search = compiled(session, label).spec.search
    places = [place for place, (_, name) in enumerate(found) if name == loss]
    end = search.ordered or len(found)
    assert places[0] == 1 if loss == "poisson" else places == [end - 2, end - 1]
    assert found.count(("lightgbm", loss)) == found.count(("xgboost", loss)) == 1
    assert {name for _, name in found} == {"mean_squared_error", loss}


@pytest.mark.parametrize("label", ["even", "debt", "kind"])
def test_other_labels_have_the_usual_loss_alone(session: Session, label: str) -> None:
    found = compiled(session, label)
    assert len({name for _, name in losses(found.spec.search)}) == 1
    assert not [note for note in found.notes if "loss" in note]


def test_the_reason_is_a_note_and_a_line_of_the_plan(session: Session) -> None:
    [note] = [note for note in compiled(session, "count").notes if "loss" in note]
    why = "the values of count are counts, half of them at most 3, a tenth above 9; auto.losses = none leaves it out"
    assert note == f"trees are also tried with the loss poisson: {why}"
    [plan] = session.run(f"EXPLAIN SELECT x, count FROM visits LABEL count WITH {TREES} INTO m")
    lines = {(row["section"], row["name"]): (row["value"], row["why"]) for row in plan.to_arrow().to_pylist()}
    assert lines["search", "losses"] == ("mean_squared_error, poisson", why)
    [written] = session.run(
        f"EXPLAIN SELECT x, even FROM visits LABEL even WITH {TREES}, auto.losses = gamma INTO m"
    )
    lines = {
        (row["section"], row["name"]): (row["value"], row["why"]) for row in written.to_arrow().to_pylist()
    }
    assert lines["search", "losses"] == ("mean_squared_error, gamma", "written")


def test_the_statement_names_the_losses_or_none(session: Session) -> None:
    found = losses(compiled(session, "even", f"{TREES}, auto.losses = [poisson, gamma]").spec.search)
    assert {name for _, name in found} == {"mean_squared_error", "poisson", "gamma"}
    none = compiled(session, "count", f"{TREES}, auto.losses = none")
    assert {name for _, name in losses(none.spec.search)} == {"mean_squared_error"}
    assert not [note for note in none.notes if "loss" in note]


def test_a_candidate_with_a_loss_is_a_statement_of_its_own(session: Session) -> None:
    search = compiled(session, "count").spec.search
    [candidate, _] = [each for each in search.candidates if each.spec.loss.name == "poisson"]
    assert candidate.name == "BoostedTreesRegressor (lightgbm), learning_rate 0.05, loss poisson"
    [alone] = session.compile(candidate.spec.statement)
    assert alone.spec.loss == candidate.spec.loss
    points = [each.point for each in search.candidates]
    assert len(set(points)) == len(points)


def test_written_trials_are_the_most_that_are_tried(session: Session) -> None:
    search = compiled(session, "count", f"{TREES}, auto.trials = 2").spec.search
    assert (search.count, search.ordered) == (2, 0)
    assert losses(search)[:2] == [("lightgbm", "mean_squared_error"), ("lightgbm", "poisson")]


@pytest.mark.parametrize(
    ("label", "loss", "message"),
    [
        ("debt", "poisson", "the loss poisson needs labels from 0, and debt goes down to -"),
        ("paid", "gamma", "the loss gamma needs labels above 0, and paid goes down to 0"),
        ("kind", "gamma", "auto.losses names losses of a number, and kind has classes"),
    ],
)
def test_a_loss_that_the_label_contradicts_is_an_error(
    session: Session, label: str, loss: str, message: str
) -> None:
    with pytest.raises(SemanticError) as caught:
        compiled(session, label, f"{TREES}, auto.losses = {loss}")
    assert caught.value.message.startswith(message)
    assert caught.value.span is not None


def test_a_loss_of_another_name_is_an_error(session: Session) -> None:
    with pytest.raises(SemanticError, match=r"auto\.losses") as caught:
        compiled(session, "count", "auto.losses = huber")
    assert "poisson" in (caught.value.hint or "")
