"""Plans of searches: their time, their candidates, and the statements of these."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest

from edl import spec
from edl.errors import SemanticError
from edl.installation import install_extras
from sqlflow_edl.analysis.search import local, portfolio
from sqlflow_edl.analysis.search.plan import check_without_columns
from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax import parse
from tests.databases import Databases
from tests.searches import small

AROUND = local.further_candidates


@pytest.fixture(autouse=True)
def candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio, "PORTFOLIO", small())
    monkeypatch.setattr(local, "further_candidates", lambda variants, most: [])
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: True)


@pytest.fixture
def duckdb(databases: Databases) -> Iterator[Session]:
    return databases.filled("duckdb")


def compiled(session: Session, text: str) -> spec.JobSpec:
    [only] = session.compile(text)
    return only.spec


def searched(session: Session, text: str) -> spec.Search:
    found = compiled(session, text).search
    assert found is not None
    return found


@pytest.mark.soak
def test_a_search_tries_the_portfolio_for_its_kind_of_label(duckdb: Session) -> None:
    numbers = compiled(duckdb, "SELECT age, city, income FROM people LABEL income INTO m")
    assert numbers.framework == spec.ENSEMBLE
    assert numbers.search is not None
    assert len(numbers.search.candidates) in (len(portfolio.PORTFOLIO) - 1, len(portfolio.PORTFOLIO))
    assert {each.spec.model.name for each in numbers.search.candidates} == {
        "BoostedTreesRegressor",
        "DNNRegressor",
        "LinearRegressor",
        "RealMLPRegressor",
    }
    assert (numbers.search.metric, numbers.search.max_members, numbers.search.time_limit) == ("rmse", 5, 60)
    classes = searched(duckdb, "SELECT age, city, team FROM people LABEL team INTO m")
    assert classes.metric == "log_loss"
    assert all(each.spec.model.name.endswith("Classifier") for each in classes.candidates)


def test_the_columns_serve_all_candidates(duckdb: Session) -> None:
    found = compiled(duckdb, "SELECT age, city, height, income FROM people LABEL income INTO m")
    assert set(found.columns) == {"age", "city", "height"}
    assert found.inputs == {}


def test_attributes_of_the_search_override_its_defaults(duckdb: Session) -> None:
    found = searched(
        duckdb,
        "SELECT age, income FROM people LABEL income WITH train.time_limit = 7.5, auto.trials = 2, auto.metric = MAE, "
        "auto.models = [xgboost, LightGBM], auto.max_members = 1, auto.folds = 4 INTO m",
    )
    assert (found.time_limit, found.metric, found.max_members, found.folds) == (7.5, "mae", 1, 4)
    assert [each.spec.framework for each in found.candidates] == ["lightgbm", "lightgbm"]


def test_a_model_in_folds_is_the_only_candidate_and_then_trained_on_all_rows(duckdb: Session) -> None:
    text = (
        "SELECT age, team FROM people TO TRAIN DNNClassifier "
        "WITH train.epoch = 2, validation.folds = 3 LABEL team INTO m"
    )
    found = searched(duckdb, text)
    [candidate] = found.candidates
    assert (found.folds, found.refit, found.time_limit, found.max_members) == (3, True, 0, 1)
    assert (candidate.spec.model.name, candidate.spec.training.epochs) == ("DNNClassifier", 2)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("validation.folds = 3", "a training in folds trains"),
        ("max_depth = RANGE(2, 6)", "a search over values trains"),
    ],
)
def test_a_search_does_not_start_from_a_trained_model(attribute: str, message: str) -> None:
    [statement] = parse(
        f"SELECT 1 AS a, 2 AS b TO TRAIN BoostedTrees WITH {attribute} LABEL b USING m INTO n"
    )
    with pytest.raises(SemanticError, match=message) as raised:
        check_without_columns(statement)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("leave USING out")


def test_what_rows_and_seed_are_applies_to_every_candidate(duckdb: Session) -> None:
    found = compiled(
        duckdb,
        "SELECT age, city, height, team FROM people LABEL team VALIDATE 0.25 WITH train.seed = 9, "
        "train.weight_column = height, validation.test_fraction = 0.25, train.class_weights = auto COLUMN age INTO m",
    )
    assert found.search is not None
    assert found.search.test == 300
    for each in (found, *found.models):
        assert (each.rows.total, each.rows.training, each.rows.validation) == (1200, 600, 300)
        assert each.training.seed == 9
        assert each.weights is not None


@pytest.mark.soak
@pytest.mark.parametrize(
    "clauses",
    [
        "WITH auto.trials = 6",
        "WITH auto.trials = 6, seed = 4, test_fraction = 0.2",
        "WITH auto.trials = 6, train.seed = 4 COLUMN age, BUCKETIZE(height, 4)",
        "VALIDATE 0.2 WITH auto.trials = 6",
        "VALIDATE ON (SELECT * FROM people WHERE age > 40) WITH auto.trials = 6",
        "WITH auto.trials = 6, validation.select = 'SELECT * FROM people WHERE age > 40'",
        "WITH auto.trials = 6, validation.fraction = 0.3, test_fraction = 0.1, validation.metrics = 'mae,r2'",
        "WITH auto.trials = 6, train.weight_column = height",
        "COLUMN age WITH auto.trials = 2, auto.models = lightgbm",
    ],
)
def test_the_statement_of_a_candidate_compiles_to_its_jobspec(duckdb: Session, clauses: str) -> None:
    text = f"SELECT age, city, height, income FROM people LABEL income {clauses} INTO m"
    found = searched(duckdb, text)
    for number, each in enumerate(found.candidates, 1):
        own = compiled(duckdb, each.spec.statement)
        assert own.output.name == f"m_{number}"
        for part in (
            "model",
            "framework",
            "inputs",
            "label",
            "optimizer",
            "loss",
            "training",
            "weights",
            "validation",
        ):
            assert getattr(own, part) == getattr(each.spec, part), part
        rows = each.spec.rows
        assert own.rows == msgspec.structs.replace(rows, blocks=msgspec.UNSET), "folds are of the search"


def test_a_search_of_libraries_that_are_not_installed_says_which(
    duckdb: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: framework != "xgboost")
    text = "SELECT age, income FROM people LABEL income WITH auto.models = {} INTO m"
    with pytest.raises(SemanticError, match="none of the models to try is installed") as caught:
        compiled(duckdb, text.format("xgboost"))
    assert caught.value.hint == install_extras("lightgbm", "torch")
    [only] = duckdb.compile(text.format("trees"))
    [note] = [note for note in only.notes if "installed" in note]
    assert note.startswith("xgboost is not installed; its candidates are not tried: ")
    assert note.endswith(f": {install_extras('xgboost')}")


def test_the_plan_of_a_search_without_lightgbm_says_what_it_lacks(
    duckdb: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "is_installed", lambda framework: framework != "lightgbm")
    [plan] = duckdb.run("EXPLAIN SELECT age, income FROM people LABEL income INTO m")
    rows = zip(*plan.to_arrow().to_pydict().values(), strict=True)
    [note] = [value for section, _, value, _ in rows if section == "note"]
    assert note.startswith("lightgbm is not installed; it is usually the best on tables: ")
    assert note.endswith(f": {install_extras('lightgbm')}")


def test_with_workers_each_trial_is_a_task_of_one_of_them(databases: Databases) -> None:
    with Session("duckdb:", workers=2) as session:
        list(session.run("CREATE TABLE t AS SELECT range AS x, range * 2.0 AS y FROM range(200)"))
        found = compiled(session, "SELECT x, y FROM t LABEL y INTO m")
    assert found.search is not None
    assert found.work == "search"
    assert found.cluster == spec.Cluster(2, strategy="local")


FROM_PEOPLE = "SELECT age, city, income FROM people TO TRAIN BoostedTreesRegressor"


def test_forms_of_columns_are_searched_and_stand_in_the_statements_of_their_candidates(
    duckdb: Session,
) -> None:
    text = f"{FROM_PEOPLE} COLUMN CANDIDATES([age, LOG(age)], BUCKETIZE(age, 3)), city LABEL income INTO m"
    found = searched(duckdb, text).candidates
    assert [each.name for each in found] == [
        "BoostedTreesRegressor, age, LOG(age)",
        "BoostedTreesRegressor, BUCKETIZE(age, 3)",
    ]
    assert "COLUMN age, LOG(age), city LABEL" in found[0].spec.statement
    assert "COLUMN BUCKETIZE(age, 3), city LABEL" in found[1].spec.statement
    for each in found:
        again = compiled(duckdb, each.spec.statement)
        assert again.features == each.spec.features


def test_an_error_in_a_form_of_a_column_is_told_at_its_place(duckdb: Session) -> None:
    text = f"{FROM_PEOPLE} COLUMN CANDIDATES(age, BUKETIZE(age, 3)) LABEL income INTO m"
    with pytest.raises(SemanticError, match="unknown function BUKETIZE") as caught:
        compiled(duckdb, text)
    assert caught.value.span is not None
    assert text[caught.value.span.start : caught.value.span.end] == "BUKETIZE"


def test_the_short_form_has_candidates_of_its_own(duckdb: Session) -> None:
    text = "SELECT age, income FROM people LABEL income COLUMN CANDIDATES(age, LOG(age)) INTO m"
    with pytest.raises(SemanticError, match="candidates of its own") as caught:
        compiled(duckdb, text)
    assert "TO TRAIN" in (caught.value.hint or "")


@pytest.mark.soak
def test_a_space_has_more_points_than_trials_and_the_plan_names_both(duckdb: Session) -> None:
    space = "num_leaves = RANGE(4, 400, log), learning_rate = RANGE(0.01, 0.3)"
    text = f"{FROM_PEOPLE} WITH {space}, auto.trials = 10 LABEL income INTO m"
    found = searched(duckdb, text)
    assert (found.count, len(found.candidates)) == (10, 40)
    assert len({each.point for each in found.candidates}) == 40
    fewer = searched(duckdb, text.replace("10 LABEL", "9 LABEL"))
    assert (fewer.count, len(fewer.candidates)) == (9, 9)
    assert [each.spec.statement for each in fewer.candidates] == [
        each.spec.statement for each in found.candidates[:9]
    ]
    [plan] = duckdb.run(f"EXPLAIN {text}")
    assert plan.rows is not None
    rows = plan.to_arrow().to_pylist()
    assert [row["value"] for row in rows if row["name"] == "trials"] == ["at most 10 of 40 candidates"]
    shown = [row["value"] for row in rows if row["section"] == "candidates"]
    assert len(shown) == 6
    assert shown[-1] == "35 with other settings"


def test_candidates_are_first_compared_on_fewer_rows_where_that_is_written(duckdb: Session) -> None:
    text = f"{FROM_PEOPLE} WITH num_leaves = CANDIDATES(4, 8), auto.halving = true LABEL income INTO m"
    found = compiled(duckdb, text)
    assert found.search is not None
    assert found.search.screening == found.rows.training // 9
    assert searched(duckdb, text.replace("true", "false")).screening == 0


@pytest.mark.soak
@pytest.mark.parametrize(
    ("columns", "clauses", "encoded"),
    [("age, city", "", ["city"]), ("age", "", []), ("age, city", "COLUMN city", [])],
)
def test_some_trees_of_the_short_form_see_the_labels_of_other_rows_in_place_of_texts(
    duckdb: Session, columns: str, clauses: str, encoded: list[str]
) -> None:
    found = searched(duckdb, f"SELECT {columns}, income FROM people LABEL income {clauses} INTO m").candidates
    means = [
        [feature.category.column for feature in each.spec.features if isinstance(feature, spec.TargetMean)]  # type: ignore[union-attr]
        for each in found
    ]
    assert [each for each in means if each] == ([encoded] if encoded else [])
    assert [each.name for each in found if each.name.endswith("texts encoded")] == [
        each.name for each, own in zip(found, means, strict=True) if own
    ]


@pytest.mark.soak
def test_the_short_form_goes_on_around_the_portfolio(
    duckdb: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "further_candidates", AROUND)
    monkeypatch.setattr(portfolio, "PORTFOLIO", [variant for variant in small() if not variant.generates])
    text = "SELECT age, city, income FROM people LABEL income WITH auto.models = [trees, networks] INTO m"
    found = searched(duckdb, text)
    first = sum(each.kinds[0] != "linear" for each in portfolio.PORTFOLIO)
    assert found.ordered == first
    assert found.count == len(found.candidates) == first + local.COUNT
    short = searched(duckdb, text.replace("networks]", "networks], train.time_limit = 20"))
    assert short.ordered == min(first, portfolio.FIRST_OF_SHORT)
    assert len({each.spec.statement for each in found.candidates}) == found.count
    few = searched(duckdb, text.replace("networks]", f"networks], auto.trials = {first + 2}"))
    assert (few.ordered, few.count, len(few.candidates)) == (first, first + 2, first + 8)
    fewer = searched(duckdb, text.replace("networks]", "networks], auto.trials = 3"))
    assert (fewer.ordered, fewer.count, len(fewer.candidates)) == (0, 3, 3)


def test_a_pair_of_columns_that_tells_more_than_both_is_in_the_statement_of_a_candidate(
    duckdb: Session,
) -> None:
    duckdb.run(
        """CREATE OR REPLACE TABLE "two loans" AS SELECT i AS id, (1 + hash(i) % 90)::INT AS "the price",
        (1 + hash(i + 1000) % 90)::INT AS area, area * ("the price" - 45) AS value FROM range(800) AS t (i)"""
    )
    query = 'SELECT * FROM "two loans" LABEL value'
    [candidate] = [
        candidate
        for candidate in searched(duckdb, f"{query} INTO m").candidates
        if candidate.name.endswith("generated features")
    ]
    assert re.search(
        r'COLUMN (area, "the price"|"the price", area), ("the price"|area) [*/-] ', candidate.spec.statement
    )
    [again] = duckdb.compile(candidate.spec.statement)
    assert again.spec.features == candidate.spec.features
    named = searched(duckdb, f'{query} COLUMN area, "the price" INTO m').candidates
    assert not [candidate for candidate in named if candidate.name.endswith("generated features")]


def test_words_of_texts_are_features_of_all_candidates_but_the_first(duckdb: Session) -> None:
    duckdb.run(
        """CREATE OR REPLACE TABLE strikes AS
        SELECT i AS id, hash(i) % 9 AS height, city, list_extract(['hit', 'saw', 'Missed'], 1 + i % 3) AS verb,
        concat_ws(' ', 'bird', i, verb, 'near', city) AS "the remarks", (verb = 'Missed')::INT AS damage
        FROM (SELECT range AS i, chr((97 + hash(range) % 4)::INT) AS city FROM range(1200))"""
    )
    query = 'SELECT height, city, "the remarks", damage FROM strikes LABEL damage INTO m'
    first, *others = searched(duckdb, query).candidates
    item = """VOCABULARIZE("the remarks", delimiter=' ', max_size=200)"""
    assert item not in first.spec.statement
    assert others
    assert [o.spec.statement for o in others if item not in o.spec.statement] == []
    encoding = next(other for other in others if "TARGET_ENCODE" in other.spec.statement)
    for candidate in (others[0], encoding, next(o for o in others if o.spec.framework == "torch")):
        [again] = duckdb.compile(candidate.spec.statement)
        assert again.spec.features == candidate.spec.features


def test_a_candidate_with_a_pair_that_decides_the_label_is_tried_second(duckdb: Session) -> None:
    duckdb.run(
        """CREATE OR REPLACE TABLE visits AS
        SELECT TIMESTAMP '2024-01-01' + to_hours((hash(i) % 9000)::INT) AS "from",
        "from" + to_hours((hash(i + 5000) % 90)::INT) AS until, date_diff('hour', "from", until) AS value
        FROM range(1200) AS t (i)"""
    )
    _, second, *_ = searched(duckdb, "SELECT * FROM visits LABEL value INTO m").candidates
    assert second.name.endswith("generated features")
    assert re.search(r'COLUMN .*("from" - until|until - "from")', second.spec.statement)


def test_a_search_in_folds_trains_on_generated_features(
    duckdb: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    generating = [variant for variant in small() if variant.generates]
    monkeypatch.setattr(portfolio, "PORTFOLIO", (small()[0], *generating))
    duckdb.run(
        """CREATE OR REPLACE TABLE loans AS SELECT 1 + hash(i) % 90 AS price, 1 + hash(i + 1000) % 90 AS area,
        price / area AS value FROM range(800) AS t (i)"""
    )
    [result] = duckdb.run("SELECT * FROM loans LABEL value INTO loan_values")
    best = max(result.trials, key=lambda trial: trial.weight)
    assert best.name.endswith("generated features")
    predicted = duckdb.run("SELECT 30 AS price, 15 AS area TO PREDICT USING loan_values")[-1].to_arrow()
    assert predicted["value"][0].as_py() == pytest.approx(2, abs=0.5)


def test_differences_to_the_mean_of_a_group_are_items_of_a_candidate(duckdb: Session) -> None:
    duckdb.run(
        """CREATE OR REPLACE TABLE offers AS SELECT chr((97 + hash(i) % 4)::INT) AS city,
        ascii(city) * 100 + (hash(i + 1000) % 90)::INT AS price, sin(price % 100 / 10) AS value
        FROM range(800) AS t (i)"""
    )
    [candidate] = [
        candidate
        for candidate in searched(
            duckdb, "SELECT city, price, value FROM offers LABEL value INTO m"
        ).candidates
        if candidate.name.endswith("generated features")
    ]
    assert "COLUMN price, city, GROUP_DIFFERENCE(price, city)" in candidate.spec.statement
