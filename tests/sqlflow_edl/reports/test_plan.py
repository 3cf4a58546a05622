"""The plan of a statement: everything that would run, and where each value comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl.errors import SemanticError, SQLFlowError
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.session.session import Session
from tests.databases import spelt

Plan = dict[tuple[str, str], tuple[str, str]]


def explained(session: Session, text: str) -> Plan:
    [result] = session.run(f"EXPLAIN {text}")
    found = result.to_arrow().to_pylist()
    return {(row["section"], row["name"]): (row["value"], row["why"]) for row in found}


def test_written_values_are_told_from_defaults(session: Session) -> None:
    found = explained(
        session,
        "SELECT age, height, income FROM people TO TRAIN DNNRegressor WITH hidden_units = [8], lr = 0.01, epochs = 3, "
        "optimizer = sgd LABEL income INTO m",
    )
    assert found["model", "hidden_units"] == ("[8]", "written")
    assert found["model", "activation"] == ("relu", "default")
    assert found["model", "framework"] == ("keras", "default")
    assert found["optimizer", "sgd"][1] == "written"
    assert found["optimizer", "learning_rate"] == ("0.01", "written")
    assert found["optimizer", "momentum"] == ("0", "default")
    assert found["loss", "mean_squared_error"][1] == "default"
    assert found["training", "epochs"] == ("3", "written")
    assert found["training", "batch_size"] == ("64", "default for 1,080 rows")
    assert found["training", "steps"] == ("51", "17 per epoch")
    assert found["rows", "total"][0] == "1,200"
    assert found["rows", "validation"] == ("120", "default: a tenth")


def test_the_plan_says_what_copying_the_rows_costs(session: Session) -> None:
    found = explained(session, "SELECT age, income FROM people TO TRAIN DNNRegressor LABEL income INTO m")
    value, _ = found["rows", "pinned"]
    assert value.startswith("1,200 rows, about ")
    assert value.endswith("kB of memory")


def test_every_column_says_what_it_becomes_and_why(session: Session) -> None:
    found = explained(
        session,
        "SELECT age, city, flat, 1 AS one, NULLIF(height, 150) AS height, income FROM people "
        "TO TRAIN DNNRegressor COLUMN EMBEDDING(HASH(age, 100), 8) LABEL income INTO m",
    )
    assert found["features", "age"] == ("embedding of hash bucket, buckets 100; 8 wide", "written in COLUMN")
    assert found["features", "city"] == (
        "one-hot of vocabulary, 4 values: bonn, lima, oslo, rome; 5 wide",
        "by type: a text, as a category; 5 ids, so one-hot",
    )
    assert found["features", "height"][1] == "by type: a number, in bins too; 2.8 % NULL"
    assert found["left out", "one"] == ("", "it is the same in every training row")
    assert found["left out", "flat"][1].startswith("its text is different in every row")


def test_cells_of_several_values_say_what_their_items_become(session: Session) -> None:
    found = explained(
        session,
        "SELECT point, ids, pairs, income FROM packed TO TRAIN DNNRegressor COLUMN "
        "EMBEDDING(CONCAT(BUCKETIZE(ids, 9), SPARSE(pairs, 20, SPACE, kv_delimiter=COLON)), 4) LABEL income INTO m",
    )
    assert found["features", "ids, pairs"] == (
        "embedding of concat of hash bucket, buckets 9 and list of category id, buckets 20, weighted; 4 wide",
        "written in COLUMN; 2.0 % NULL",
    )
    assert found["features", "point"] == ("vector, 3 numbers, standardised", "by type: a text, of lists")


def test_a_feature_says_which_input_it_enters_where_there_are_several(session: Session) -> None:
    text = (
        "SELECT age, city, income FROM people TO TRAIN DNNLinearCombinedRegressor "
        "COLUMN CROSS([city, age], 50) FOR wide, EMBEDDING(city, 3) FOR deep LABEL income INTO m"
    )
    found = explained(session, text)
    assert found["features", "city, age"][1] == "written in COLUMN; 51 ids, so one-hot; in wide"
    assert found["features", "city"] == (
        "embedding of vocabulary, 4 values: bonn, lima, oslo, rome; 3 wide",
        "written in COLUMN; in deep",
    )


def test_the_label_and_its_classes_are_shown(session: Session) -> None:
    found = explained(session, "SELECT age, team FROM people TO TRAIN DNN LABEL team INTO m")
    assert found["label", "team"] == ("3 classes: blue, green, red", "a logit per class; no NULL")
    assert found["model", "DNNClassifier"][1] == "chosen by the label"


def test_a_limit_of_steps_is_the_number_of_steps(session: Session) -> None:
    text = (
        "SELECT age, income FROM people TO TRAIN LinearRegressor WITH train.max_steps = 7 LABEL income INTO m"
    )
    assert explained(session, text)["training", "steps"] == ("7", "train.max_steps = 7")


def test_a_setting_without_effect_is_noted(session: Session) -> None:
    text = "SELECT age, income FROM people TO TRAIN LinearRegressor WITH gpus = 2 LABEL income INTO m"
    found = explained(session, text)
    assert found["note", "1"] == ("gpus has no effect: devices are found automatically", "")


def test_a_device_and_a_precision_that_are_written_are_shown(session: Session) -> None:
    text = "SELECT age, income FROM people TO TRAIN DNNRegressor {} LABEL income INTO m"
    found = explained(session, text.format("WITH device = gpu, precision = bfloat16"))
    assert found["training", "device"] == ("cuda", "written")
    assert found["training", "precision"] == ("bfloat16", "written")
    assert ("training", "device") not in explained(session, text.format(""))


def test_how_training_ends_and_how_the_rate_falls_are_shown(session: Session) -> None:
    text = (
        "SELECT age, income FROM people TO TRAIN LinearRegressor "
        "WITH early_stopping = 3, optimizer.schedule = cosine, clipnorm = 1.5 LABEL income INTO m"
    )
    found = explained(session, text)
    assert found["training", "early_stopping"] == ("3", "written")
    assert found["training", "keep"] == ("best", "default")
    assert found["schedule", "cosine"][1] == "written"
    assert found["optimizer", "clipnorm"] == ("1.5", "written")


def test_planning_leaves_nothing_behind(session: Session) -> None:
    before = session.source.tables()
    explained(session, "SELECT age, income FROM people TO TRAIN LinearRegressor LABEL income INTO m")
    assert session.source.tables() == before
    assert not session.registry.has("m")


def test_an_error_of_the_plan_points_into_the_statement(session: Session) -> None:
    text = "EXPLAIN SELECT * FROM people TO TRAIN DNNRegresor LABEL income INTO m"
    with pytest.raises(SQLFlowError) as raised:
        list(session.run(text))
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == "DNNRegresor"


def test_the_use_of_a_model_is_planned_with_its_columns_and_its_table(models: Session) -> None:
    [statement] = models.parse("SELECT 1.5 AS X TO PREDICT t.guess USING a.m")
    found = {
        (row["section"], row["name"]): row["value"] for row in models.plan(statement).to_arrow().to_pylist()
    }
    assert found["model", "a.m@1"] == "DNNRegressor in keras"
    assert found["features", spelt("X", models)] == "standardize, mean 1, std 2"
    assert found["result", "t"] == f"a table in {models.source.url}"


def test_the_plan_of_a_use_estimates_its_rows_where_that_costs_nothing(models: Session) -> None:
    found = explained(models, "SELECT 1 AS x UNION ALL SELECT 2 TO PREDICT USING b")
    estimated = re.match(r"(about )?2 rows, about \d+ bytes; less than a second$", found["rows", "pinned"][0])
    assert bool(estimated) == (models.dialect != "maxcompute")


def test_the_plan_of_an_explanation_says_what_it_costs(models: Session) -> None:
    [statement] = models.parse("SELECT 1.5 AS X TO EXPLAIN a.m WITH explain.samples = 10 INTO t")
    found = {
        (row["section"], row["name"]): (row["value"], row["why"])
        for row in models.plan(statement).to_arrow().to_pylist()
    }
    assert found["explanation", "level"] == ("rows", "contribution of each column in each row")
    assert found["explanation", "samples"] == ("10", "1 prediction for each row")
    assert ("metrics", "rmse") not in found


def test_a_report_of_classes_is_refused_where_a_number_is_predicted(models: Session) -> None:
    [statement] = models.parse(
        "SELECT 1.5 AS X, 2 AS y TO EVALUATE a.m WITH evaluate.report = confusion_matrix"
    )
    with pytest.raises(SemanticError, match=r"confusion_matrix needs a label with classes; .* has none"):
        models.plan(statement)


def test_a_drop_says_what_it_would_drop_and_drops_nothing(models: Session) -> None:
    [statement] = models.parse("DROP MODEL a.m")
    [row] = models.plan(statement).to_arrow().to_pylist()
    assert row["value"] == "a.m@1, a.m@2 would be dropped"
    assert models.registry.has("a.m@2")


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    "text",
    ["DROP MODEL nn", "SELECT 1 TO PREDICT USING nn", "SELECT 1 TO EXPLAIN b", "SELECT 2 AS y TO EVALUATE b"],
)
def test_what_would_fail_at_once_fails_in_the_plan(models: Session, text: str) -> None:
    [statement] = models.parse(text)
    with pytest.raises(SQLFlowError):
        models.plan(statement)


def test_functions_of_the_models_module_are_named(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(Path(__file__).parents[2] / "fixtures" / "models"))
    query = "SELECT age, age % 3 AS y FROM people"
    found = explained(session, f"{query} TO TRAIN torch_zoo.custom_model WITH optimizer = sgd LABEL y INTO m")
    assert found["loss", "torch_zoo.loss"] == ("", "from the model's module")
    assert found["metrics", "torch_zoo.eval_metrics_fn"] == ("", "from the model's module")
    assert found["callbacks", "torch_zoo.callbacks"] == ("", "from the model's module")
    assert found["optimizer", "sgd"][1] == "written"


def test_a_large_category_says_that_its_vectors_are_outside_of_the_graph(session: Session) -> None:
    found = explained(
        session,
        "SELECT age, city, income FROM people TO TRAIN DNNRegressor "
        "COLUMN EMBEDDING(HASH(age, 20000), 8), EMBEDDING(HASH(city, 20000), 4) LABEL income INTO m",
    )
    assert found["features", "age"][1] == "written in COLUMN; vectors in a row table, outside of the graph"
    assert found["features", "city"][1] == "written in COLUMN"
