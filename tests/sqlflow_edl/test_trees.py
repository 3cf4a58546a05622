"""Boosted trees from TRAIN to PREDICT, with both libraries and by the names of other systems."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from edl.errors import SQLFlowError
from edl.installation import install_extras
from edl.models.archive import read_archive
from sqlflow_edl.codegen import generate
from sqlflow_edl.session.session import Session
from tests.databases import fill

LIBRARIES = ("lightgbm", "xgboost")
EITHER = ["xgboost", pytest.param("lightgbm", marks=pytest.mark.soak)]
ROWS = 600
rng = np.random.default_rng(3)
CITIES = ["oslo", "rome", "lima", "bonn"]
CITY = rng.integers(0, 4, ROWS)
AGE = rng.uniform(20, 70, ROWS).round(1)
BORN = [dt.date(2000, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 3000, ROWS)]
INCOME = (
    1000
    + 30 * AGE
    + 400 * (CITY == 2)
    - 250 * (CITY == 1) * (AGE > 45)
    + 50 * np.array([b.month for b in BORN])
)
PEOPLE = pa.table(
    {
        "age": pa.array([None if i % 50 == 0 else age for i, age in enumerate(AGE)], pa.float64()),
        "city": pa.array([None if i % 40 == 0 else CITIES[city] for i, city in enumerate(CITY)]),
        "born": BORN,
        "team": rng.integers(0, 3, ROWS),
        "income": INCOME,
        "rich": (INCOME > 2500).tolist(),
        "grade": np.digitize(INCOME, [2300, 2800]),
        "often": rng.integers(1, 4, ROWS),
    }
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("trees")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/trees.duckdb", create=True) as opened:
            fill(opened, "people", PEOPLE)
            yield opened


def last(session: Session, text: str) -> pa.Table:
    return list(session.run(text))[-1].to_arrow()


def compiled(session: Session, text: str) -> spec.JobSpec:
    [only] = session.compile(text)
    return only.spec


@pytest.mark.variants(1)
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_numbers_categories_and_dates_are_worth_is_learned(session: Session, library: str) -> None:
    features = "SELECT age, city, born, team, income FROM people"
    [found] = last(
        session,
        f"""{features} TO TRAIN BoostedTreesRegressor WITH model.framework = {library}, train.num_boost_round = 60
        LABEL income VALIDATE 0.2 INTO incomes_{library};
        {features} TO EVALUATE incomes_{library}""",
    ).to_pylist()
    assert found["r2"] > 0.97
    predicted = last(session, f"SELECT * EXCLUDE income FROM people TO PREDICT USING incomes_{library}")
    errors = np.asarray(predicted["income"]) - INCOME
    assert np.abs(errors).mean() < 60


@pytest.mark.soak
@pytest.mark.parametrize(
    ("library", "label"),
    [
        ("lightgbm", "rich"),
        ("xgboost", "grade"),
        pytest.param("lightgbm", "grade", marks=pytest.mark.soak),
        pytest.param("xgboost", "rich", marks=pytest.mark.soak),
    ],
)
def test_classes_have_probabilities(session: Session, library: str, label: str) -> None:
    [found] = last(
        session,
        f"""SELECT age, city, born, {label} FROM people TO TRAIN BoostedTrees
        WITH model.framework = {library}, num_boost_round = 30, class_weights = auto LABEL {label} INTO classes;
        SELECT * FROM people TO EVALUATE classes""",
    ).to_pylist()
    assert found["accuracy"] > 0.9
    predicted = last(session, "SELECT age, city, born FROM people TO PREDICT USING classes")
    chances = [name for name in predicted.column_names if name.startswith(f"{label}_prob_")]
    sums = sum(np.asarray(predicted[name]) for name in chances)
    np.testing.assert_allclose(sums, 1)


@pytest.mark.soak
@pytest.mark.parametrize("library", EITHER)
def test_the_same_statement_gives_the_same_model(session: Session, tmp_path: Path, library: str) -> None:
    found = []
    for name in ("one", "two"):
        last(
            session,
            f"""SELECT age, city, income FROM people TO TRAIN BoostedTreesRegressor
            WITH model.framework = {library}, num_boost_round = 9, subsample = 0.7, seed = 4
            LABEL income INTO {name}""",
        )
        session.registry.load(name, tmp_path / name)
        found.append(read_archive(tmp_path / name).weights()["booster"].tobytes())
    assert found[0] == found[1]


@pytest.mark.soak
def test_a_training_ends_early_and_keeps_its_best_round(session: Session, tmp_path: Path) -> None:
    [done] = session.run(
        "SELECT age, city, born, income FROM people TO TRAIN LGBMRegressor WITH eta = 0.3 LABEL income INTO early"
    )
    assert "early" in done.message
    session.registry.load("early", tmp_path / "early")
    archive = read_archive(tmp_path / "early")
    losses = [row["validation_loss"] for row in archive.curve]
    assert len(losses) < 1000
    assert archive.metrics["loss"] == pytest.approx(min(losses))
    assert archive.weights()["booster"].tobytes().count(b"\nTree=") == int(np.argmin(losses)) + 1


@pytest.mark.parametrize("library", EITHER)
def test_shapley_values_of_columns_add_up_to_the_margin(session: Session, library: str) -> None:
    query = "SELECT age, city, team, income FROM people"
    of_model, of_rows = (
        result.to_arrow()
        for result in list(
            session.run(
                f"""{query} TO TRAIN BoostedTreesRegressor WITH model.framework = {library}, num_boost_round = 30
                COLUMN age, CROSS([city, team], 60) LABEL income INTO explained;
                {query} TO EXPLAIN explained;
                {query} TO EXPLAIN explained INTO reasons;
                SELECT * FROM reasons"""
            )
        )[1::2]
    )
    assert of_model["feature"].to_pylist()[0] == "age"
    parts = [np.asarray(of_rows[name]) for name in ("income_base", "age_shap", "city_shap", "team_shap")]
    np.testing.assert_allclose(sum(parts), np.asarray(of_rows["income"]), rtol=1e-6)
    np.testing.assert_allclose(parts[2], parts[3])  # both columns have half of what their cross is worth


@pytest.mark.soak
@pytest.mark.parametrize("library", EITHER)
def test_the_explained_class_is_the_predicted_one(session: Session, library: str) -> None:
    rows = last(
        session,
        f"""SELECT age, city, grade FROM people TO TRAIN BoostedTrees
        WITH model.framework = {library}, num_boost_round = 20 LABEL grade INTO graded;
        SELECT age, city FROM people TO EXPLAIN graded INTO whys; SELECT * FROM whys""",
    )
    margins = sum(np.asarray(rows[name]) for name in ("grade_base", "age_shap", "city_shap"))
    chances = np.asarray(rows["grade_confidence"])
    assert np.corrcoef(margins, np.log(chances / (1 - chances)))[0, 1] > 0.8


def test_a_description_lists_the_columns_by_importance(session: Session) -> None:
    found = last(
        session,
        """SELECT age, city, team, income FROM people TO TRAIN LGBMRegressor WITH num_boost_round = 20
        LABEL income INTO described; DESCRIBE MODEL described""",
    ).to_pylist()
    listed = [row for row in found if row["section"] == "importance"]
    assert {row["name"] for row in listed} == {"age", "city", "team"}
    assert listed[0]["name"] == "age"
    assert listed[0]["value"].startswith("gain ")


@pytest.mark.soak
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_model_grows_beyond_another(session: Session, tmp_path: Path, library: str) -> None:
    statement = """SELECT age, city, born, income FROM people TO TRAIN BoostedTreesRegressor
    WITH {}num_boost_round = 10 LABEL income VALIDATE 0.2"""
    first = statement.format(f"model.framework = {library}, ")
    last(session, f"{first} INTO {library}; {statement.format('')} USING {library} INTO grown; SHOW MODELS")
    losses = {}
    for name in (library, "grown"):
        session.registry.load(name, tmp_path / name)
        losses[name] = read_archive(tmp_path / name).metrics["loss"]
    assert read_archive(tmp_path / "grown").lineage.parent == f"{library}@1"
    assert losses["grown"] < losses[library]


@pytest.mark.parametrize(
    ("name", "model", "library", "params"),
    [
        ("BoostedTreesClassifier", "BoostedTreesClassifier", "lightgbm", {}),
        ("BoostedTrees", "BoostedTreesClassifier", "lightgbm", {}),
        ("BOOSTED_TREE_CLASSIFIER", "BoostedTreesClassifier", "lightgbm", {}),
        ("BOOSTED_TREE_REGRESSOR", "BoostedTreesRegressor", "lightgbm", {}),
        ("XGBClassifier", "BoostedTreesClassifier", "xgboost", {}),
        ("xgboost.XGBRegressor", "BoostedTreesRegressor", "xgboost", {}),
        ("xgboost.gbtree", "BoostedTreesClassifier", "xgboost", {"booster": "gbtree"}),
        ("XGBoost.dart", "BoostedTreesClassifier", "xgboost", {"booster": "dart"}),
        ("xgboost.gblinear", "BoostedTreesClassifier", "xgboost", {"booster": "gblinear"}),
        ("xgboost.Estimator", "BoostedTreesClassifier", "xgboost", {}),
        ("LGBMClassifier", "BoostedTreesClassifier", "lightgbm", {}),
    ],
)
def test_models_have_their_names_in_other_systems(
    session: Session, name: str, model: str, library: str, params: dict[str, object]
) -> None:
    found = compiled(session, f"SELECT age, team FROM people TO TRAIN {name} LABEL team INTO m")
    assert (found.model.name, found.framework) == (model, library)
    assert found.model.params == params


@pytest.mark.parametrize(
    ("name", "more", "trees", "depth"),
    [
        ("RandomForestClassifier", "", 100, 15),
        ("RANDOM_FOREST_CLASSIFIER", "WITH n_estimators = 30, model.max_depth = 4", 30, 4),
        ("randomforests", "WITH model.num_parallel_tree = 7", 7, 15),
        ("xgboost.XGBRFClassifier", "", 100, None),
    ],
)
def test_a_random_forest_is_one_round_of_many_trees(
    session: Session, name: str, more: str, trees: int, depth: int | None
) -> None:
    [only] = session.compile(f"SELECT age, team FROM people TO TRAIN {name} {more} LABEL team INTO m")
    found = only.spec
    assert (found.model.name, found.framework) == ("BoostedTreesClassifier", "xgboost")
    assert found.model.params.get("max_depth") == depth
    assert found.model.params["num_parallel_tree"] == trees
    assert found.model.params["subsample"] == found.model.params["colsample_bynode"] == 0.8
    assert (found.training.epochs, found.training.early_stopping) == (1, 0)
    assert found.optimizer.params == {"learning_rate": 1.0}
    assert any("is one round of XGBoost" in note for note in only.notes)


def test_a_random_forest_of_bigquery_is_trained_and_predicts(session: Session) -> None:
    *_, predicted, query = session.run(
        "CREATE MODEL forest OPTIONS(model_type = 'RANDOM_FOREST_CLASSIFIER', input_label_cols = ['team'], "
        "num_parallel_tree = 5, max_tree_depth = 3) AS SELECT age, income, team FROM people; "
        "SELECT * FROM PREDICT(forest, (SELECT age, income FROM people)); SHOW TRAIN forest"
    )
    assert len(set(predicted.to_arrow()["team"].to_pylist())) > 1
    assert "num_parallel_tree = 5" in str(query.to_arrow().to_pylist())


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_prediction_never_falls_with_a_number_that_is_written_so(session: Session, library: str) -> None:
    *_, predicted = session.run(
        "CREATE TABLE waves AS SELECT range / 100.0 AS a, range % 13 AS b, ['x', 'y'][1 + range % 2] AS c, "
        "range / 100.0 + 3 * sin(range / 50.0) AS y FROM range(1000);"
        "SELECT * FROM waves TO TRAIN BoostedTreesRegressor "
        f"WITH model.framework = {library}, model.monotone = [+a], train.num_boost_round = 30 LABEL y INTO rising;"
        "SELECT * FROM PREDICT(rising, (SELECT range / 100.0 AS a, 5 AS b, 'x' AS c FROM range(1000))) ORDER BY a;"
        "DROP TABLE waves"
    )[:-1]
    numbers = np.array(predicted.to_arrow()["y"].to_pylist())
    assert (np.diff(numbers) >= -1e-6).all()
    assert np.ptp(numbers) > 5


@pytest.mark.parametrize(
    "written",
    [
        "[+age, -income]",
        "['+age', '-income']",
        "{'age': 1, 'INCOME': -1}",
        "'age, -income'",
        "[age, -income]",
    ],
)
def test_directions_are_signs_of_columns(session: Session, written: str) -> None:
    [only] = session.compile(
        "SELECT team, age, income, COALESCE(age, 0) > 30 AS old FROM people TO TRAIN BoostedTreesClassifier "
        f"WITH monotone_constraints = {written}, model.framework = xgboost LABEL old INTO m"
    )
    [line] = [
        text
        for text in generate(only.spec).files["model.py"].decode().splitlines()
        if "monotone" in text and text[0] != "#"
    ]
    signs = {"age": "1", "income": "-1"}
    wanted = ",".join(signs.get(next(spec.sources(each)), "0") for each in only.spec.features)
    assert line.strip() == f'monotone_constraints="({wanted})",'


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "BoostedTreesRegressor WITH model.monotone = [+agee] LABEL income",
            "names agee, which is no number",
        ),
        (
            "BoostedTreesRegressor WITH model.monotone = [+word] LABEL income",
            "names word, which is no number",
        ),
        ("BoostedTreesClassifier WITH model.monotone = [+age] LABEL team", "needs a number or two classes"),
        ("xgboost.gblinear WITH model.monotone = [+age] LABEL income", "gblinear is a linear model"),
        ("BoostedTreesRegressor WITH model.monotone = 3 LABEL income", "must be columns with a direction"),
    ],
)
def test_directions_of_other_columns_and_models_are_errors(
    session: Session, statement: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message):
        session.compile(
            f"SELECT age, team, 't' || team % 3 AS word, income FROM people TO TRAIN {statement} INTO m"
        )


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_columns_of_different_lists_add_up(session: Session, library: str) -> None:
    """Without interactions, the effect of one column is the same for each value of the other."""
    *_, predicted = session.run(
        "CREATE TABLE products AS SELECT range % 10 AS a, range * 7 % 13 AS b, ['x', 'y'][1 + range % 2] AS c, "
        "(range % 10) * (range * 7 % 13) * 1.0 AS y FROM range(1300);"
        "SELECT * FROM products TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 20, "
        f"model.framework = {library}, model.interactions = [[A, c], [b]] COLUMN a, b, c LABEL y INTO added;"
        "SELECT * FROM PREDICT(added, (SELECT x.range AS a, z.range AS b, 'x' AS c "
        "FROM range(10) AS x, range(13) AS z)) ORDER BY a, b;"
        "DROP TABLE products"
    )[:-1]
    numbers = np.array(predicted.to_arrow()["y"].to_pylist()).reshape(10, 13)
    effects = numbers - numbers[:1]
    assert np.ptp(effects, axis=1).max() < 1e-4
    assert np.ptp(numbers) > 20


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("[[age, team], [income]]", "[{age},{team}],[{income}]"),
        ("[[age]]", "[{age}],[{team},{income}]"),
        ("[age, income]", "[{age},{income}],[{team}]"),
        ("[['AGE', 'income']]", "[{age},{income}],[{team}]"),
    ],
)
def test_lists_of_columns_are_numbers_of_the_matrix(session: Session, written: str, wanted: str) -> None:
    [only] = session.compile(
        "SELECT team, age, income, COALESCE(age, 0) > 30 AS old FROM people TO TRAIN BoostedTreesClassifier "
        f"WITH interaction_constraints = {written}, model.framework = lightgbm LABEL old INTO m"
    )
    [line] = [
        text
        for text in generate(only.spec).files["model.py"].decode().splitlines()
        if "interaction" in text and text[0] != "#"
    ]
    places = {
        next(iter(spec.source_columns(each))): str(place) for place, each in enumerate(only.spec.features)
    }
    groups = [sorted(group.split(","), key=int) for group in wanted.format(**places).strip("[]").split("],[")]
    assert (
        line.strip()
        == f"""interaction_constraints="{",".join(f"[{','.join(group)}]" for group in groups)}","""
    )


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("model.interactions = [[agee, team]]", "names agee, which is no column of the model"),
        ("model.interactions = [[age, [team]]]", "must be lists of columns"),
        ("model.interactions = 3", "must be lists of columns"),
        (
            "model.interactions = [[age], [team]] COLUMN CROSS([BUCKETIZE(age, 3), team], 10)",
            "has no list with age, team",
        ),
        ("model.booster = gblinear, model.framework = xgboost, model.interactions = [[age]]", "is for trees"),
    ],
)
def test_lists_of_other_columns_are_errors(session: Session, attributes: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        session.compile(
            "SELECT age, team, income FROM people TO TRAIN BoostedTreesRegressor "
            f"WITH {attributes} LABEL income INTO m"
        )


def test_attributes_have_their_names_in_other_systems(session: Session) -> None:
    found = compiled(
        session,
        """SELECT age, team FROM people TO TRAIN xgboost.gbtree WITH objective = "multi:softprob", num_class = 3,
        train.num_boost_round = 30, eta = 0.4, max_depth = 5, train.subsample = 0.5, colsample_bytree = 0.9,
        min_child_weight = 2, gamma = 0.1, reg_lambda = 3, eval_metric = accuracy, random_state = 7,
        tree_method = "hist", scale_pos_weight = 1, early_stopping_rounds = 4 LABEL team INTO m""",
    )
    assert found.model.params == {
        "booster": "gbtree", "max_depth": 5, "min_child_weight": 2, "gamma": 0.1, "subsample": 0.5,
        "colsample_bytree": 0.9, "reg_lambda": 3, "scale_pos_weight": 1, "tree_method": "hist",
    }  # fmt: skip
    assert found.optimizer == spec.Component("boosting", {"learning_rate": 0.4})
    training = found.training
    assert (training.epochs, training.seed, training.early_stopping) == (30, 7, 4)
    assert (training.batch_size, training.shuffle) == (spec.ALL_ROWS, False)
    assert found.metrics == ("accuracy",)


def test_attributes_of_other_systems_without_effect_are_noted(session: Session) -> None:
    [only] = session.compile(
        """SELECT age, team FROM people TO TRAIN xgboost.gbtree WITH train.batch_size = 10, train.epoch = 2,
        nthread = 4, verbosity = 1 LABEL team INTO m"""
    )
    assert [note.partition(" has no effect")[0] for note in only.notes if "has no effect" in note] == [
        "train.batch_size", "train.epoch", "nthread", "verbosity",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("item", "wanted"),
    [
        ("age", spec.Raw("age")),
        ("STANDARDIZE(age)", spec.Raw("age")),
        ("LOG(age)", spec.Raw("age")),
        ("YEAR(born)", spec.Raw("born", "year")),
        ("MONTH(born)", spec.Raw("born", "month")),
        ("INDICATOR(CATEGORY_HASH(city, 9))", spec.Codes(spec.HashBucket("city", 9))),
        ("CATEGORY_ID(team, 3)", spec.Codes(spec.CategoryId("team", 3))),
        ("CROSS([city, team], 50)", spec.Codes(spec.Cross(("city", "team"), 50))),
        ("BUCKET(age, [30, 50])", spec.Codes(spec.Bucket("age", (30.0, 50.0)))),
    ],
)
def test_columns_are_numbers_or_codes(session: Session, item: str, wanted: spec.Feature) -> None:
    text = f"SELECT age, city, born, team, income FROM people TO TRAIN BoostedTreesRegressor COLUMN {item}"
    assert compiled(session, f"{text} LABEL income INTO m").features[0] == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WITH loss = gamma LABEL change", "the loss gamma needs labels above 0, and change goes down to -1"),
        ("WITH loss = poisson LABEL change", "the loss poisson needs labels from 0, and change goes down to -1"),
        ("COLUMN INDICATOR(SEQ_CATEGORY_ID(tags, 5000)) LABEL change", "has lists of 5,001 ids, and trees"),
        ("WITH scale_pos_weight = 3 LABEL change", "scale_pos_weight is of the second of two classes, and change is a"),
        ("WITH loss = quantile, alpha = 0.9 LABEL change", "alpha may be loss.quantile of the loss quantile, or"),
        ("WITH objective = huber, model.alpha = 2 LABEL change", "model.alpha may be loss.delta of the loss huber"),
    ],
)  # fmt: skip
def test_what_trees_cannot_learn_is_an_error(session: Session, text: str, message: str) -> None:
    query = "SELECT age, team - 1 AS change, '1,2' AS tags FROM people"
    with pytest.raises(SQLFlowError, match=message):
        session.compile(f"{query} TO TRAIN BoostedTreesRegressor {text} INTO m")


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from edl import frameworks

    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.delitem(sys.modules, "edl.frameworks.trees.lightgbm", raising=False)
    with pytest.raises(SQLFlowError, match="lightgbm is not installed") as raised:
        frameworks.prepare("lightgbm", 1)
    assert raised.value.hint == install_extras("lightgbm")
