"""Plans of a search's candidates: once for all that differ in numbers alone, each with its own settings."""

from __future__ import annotations

import pytest

from edl.errors import SemanticError
from sqlflow_edl.analysis.search import portfolio
from sqlflow_edl.analysis.search.plan import SearchPlan
from sqlflow_edl.analysis.search.planning import VARIED
from sqlflow_edl.session.session import Session
from tests.databases import Databases


@pytest.fixture
def duckdb(databases: Databases) -> Session:
    return databases.filled("duckdb")


def plan_search(session: Session, attributes: str, columns: str = "") -> SearchPlan:
    text = f"SELECT age, city, team, income FROM people TO TRAIN DNN WITH {attributes} {columns} LABEL income INTO m"
    [statement] = session.parse(text)
    plan = session.compiler.training_plan(statement)
    assert isinstance(plan, SearchPlan)
    return plan


def test_numbers_of_the_model_and_the_optimizer_share_a_plan(duckdb: Session) -> None:
    plan = plan_search(duckdb, "hidden_units = CANDIDATES([8], [16]), lr = CANDIDATES(0.1, 0.2)")
    assert len(plan.candidates) == 4
    assert len(plan.plans) == 1
    values = [candidate.settings.get("optimizer.learning_rate") for candidate in plan.candidates]
    assert sorted(values) == [0.1, 0.1, 0.2, 0.2]  # type: ignore[type-var]


def test_other_attributes_have_a_plan_for_each_value(duckdb: Session) -> None:
    plan = plan_search(duckdb, "train.batch_size = CANDIDATES(8, 16), model.dropout = CANDIDATES(0.1, 0.2)")
    assert len(plan.candidates) == 4
    assert len(plan.plans) == 2
    assert {candidate.plan.settings.get("train.batch_size") for candidate in plan.candidates} == {8, 16}


def test_each_form_of_the_columns_has_a_plan(duckdb: Session) -> None:
    plan = plan_search(duckdb, "model.dropout = CANDIDATES(0.1, 0.2)", "COLUMN CANDIDATES(age, LOG(age))")
    assert len(plan.candidates) == 4
    assert len(plan.plans) == 2


def test_attributes_that_name_columns_have_a_plan_for_each_value(duckdb: Session) -> None:
    text = """SELECT age, income FROM people TO TRAIN BoostedTrees
        WITH model.monotone = CANDIDATES([+age], [-age]), model.num_leaves = CANDIDATES(4, 8) LABEL income INTO m"""
    [statement] = duckdb.parse(text)
    plan = duckdb.compiler.training_plan(statement)
    assert isinstance(plan, SearchPlan)
    assert (len(plan.candidates), len(plan.plans)) == (4, 2)


def test_a_wrong_value_of_a_later_candidate_is_an_error(duckdb: Session) -> None:
    with pytest.raises(SemanticError, match=r"model\.dropout = 3"):
        plan_search(duckdb, "model.dropout = CANDIDATES(0.1, 3.0)")


def test_the_library_must_have_the_parameters_of_each_candidate(duckdb: Session) -> None:
    text = """SELECT age, income FROM people TO TRAIN BoostedTrees WITH model.framework = CANDIDATES(lightgbm, xgboost),
        model.min_child_samples = CANDIDATES(5, 10) LABEL income INTO m"""
    [statement] = duckdb.parse(text)
    with pytest.raises(SemanticError, match=r"XGBoost has no model\.min_child_samples"):
        duckdb.compiler.training_plan(statement)


def test_the_short_form_has_a_plan_for_each_library_and_form_of_texts(duckdb: Session) -> None:
    [statement] = duckdb.parse("SELECT age, city, income FROM people LABEL income INTO m")
    plan = duckdb.compiler.training_plan(statement)
    assert isinstance(plan, SearchPlan)
    models = {(c.draft.shared.model, c.settings.framework, c.draft.encoded) for c in plan.candidates}
    assert len(plan.plans) == len(models)


def test_values_of_the_portfolio_are_as_the_dictionary_reads_them(duckdb: Session) -> None:
    [statement] = duckdb.parse("SELECT age, city, income FROM people LABEL income INTO m")
    plan = duckdb.compiler.training_plan(statement)
    assert isinstance(plan, SearchPlan)
    for candidate in plan.candidates:
        errors: list[SemanticError] = []
        attributes = candidate.draft.statement.attributes
        read = candidate.settings.dictionary.resolve(attributes, errors, [])  # type: ignore[arg-type]
        assert not errors
        assert {name: resolved.value for name, resolved in read.items()} == {
            name: resolved.value for name, resolved in candidate.settings.resolved.items()
        }


def test_candidates_of_the_portfolio_differ_in_what_may_vary() -> None:
    for variant in portfolio.PORTFOLIO:
        assert variant.attributes.keys() <= VARIED
