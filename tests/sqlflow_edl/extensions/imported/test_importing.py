"""Models of files in SQL: imported, used, and refused, by the real libraries."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from onnx import helper

from edl.errors import SQLFlowError
from edl.models.archive import read_archive
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.samples.tables import TABLES
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.onnx_files import identity, linear, make_file, softmax

FLOWERS = "input_columns = ['sepal_length', 'sepal_width', 'petal_length', 'petal_width']"
SPECIES = "input_label_cols = ['species'], classes = ['setosa', 'versicolor', 'virginica']"
ROWS = 120


def people() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": draw.integers(18, 80, ROWS).astype(float),
            "city": pd.Categorical(draw.choice(["rome", "oslo", "bern"], ROWS)),
        }
    )
    frame["amount"] = frame["age"] * 2 + 10.0 * (frame["city"] == "rome")
    return frame


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Session]:
    """Session with tables, and a folder of files that it may import."""
    folder = tmp_path_factory.mktemp("models")
    for file in (repository / "tests/fixtures/imported").glob("*.onnx"):
        shutil.copy(file, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PATH_VARIABLE, str(folder))
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session("duckdb:") as opened:
            fill(opened, "iris", TABLES["iris"]("iris"))
            frame = people()
            frame["city"] = frame["city"].astype(str)
            opened.register("people_frame", frame)
            opened.run("CREATE TABLE people AS SELECT row_number() OVER () AS id, * FROM people_frame")
            yield opened


def folder_of(session: Session) -> Path:
    import os

    return Path(os.environ[PATH_VARIABLE])


def write(session: Session, name: str, data: bytes) -> None:
    (folder_of(session) / name).write_bytes(data)


def create(session: Session, name: str, options: str, kind: str = "onnx") -> Any:
    file = name if "." in name else f"{name}.onnx"
    model = file.replace(".", "_")
    [result] = session.run(
        f"CREATE MODEL {model} OPTIONS(model_type = '{kind}', model_path = '{file}'{options})"
    )
    return result


def frame_of(session: Session, statement: str) -> pd.DataFrame:
    return session.run(statement)[-1].to_pandas()


def probabilities(frame: pd.DataFrame) -> np.ndarray:
    return frame.sort_values("id")[[name for name in frame if "_prob_" in name]].to_numpy(dtype=float)


# ONNX --------------------------------------------------------------------------------------------------------


@pytest.mark.variants(1)
@pytest.mark.parametrize("name", ["iris_zipmap", "iris_tensor"])
def test_a_classifier_of_skl2onnx_predicts_as_scikit_learn(
    name: str, session: Session, repository: Path
) -> None:
    create(session, name, f", {FLOWERS}, input_label_cols = ['species']")
    frame = frame_of(session, f"SELECT * FROM iris TO PREDICT USING {name}_onnx")
    expected = np.load(repository / "tests/fixtures/imported/iris.npy")
    ordered = frame.sort_values("id")
    own = session.run("SELECT * FROM iris ORDER BY id")[-1].to_pandas()
    places = [matching_rows(own, repository)]
    np.testing.assert_allclose(probabilities(ordered), expected[places[0]], atol=2e-6)
    [figures] = session.run(f"SELECT * FROM iris TO EVALUATE {name}_onnx")
    assert figures.figures is not None
    assert figures.figures["accuracy"] > 0.9


def matching_rows(own: pd.DataFrame, repository: Path) -> list[int]:
    """Return the places of the rows of a table among the rows of scikit-learn's iris."""
    from sklearn.datasets import load_iris

    places: dict[tuple[float, ...], int] = {}
    for place, row in enumerate(load_iris().data):
        places[tuple(np.round(row, 3))] = place
    names = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    return [places[tuple(np.round(row, 3))] for row in own[names].to_numpy(dtype=float)]


@pytest.mark.variants(1)
@pytest.mark.parametrize("name", ["net", "net_one_row"])
def test_a_network_of_pytorch_predicts_as_pytorch_with_any_number_of_rows(
    name: str, session: Session, repository: Path
) -> None:
    result = create(session, name, f", {FLOWERS}, {SPECIES}, output_kind = 'logits'")
    assert ("computes 1 row at a time" in result.message) == (name == "net_one_row")
    own = session.run("SELECT * FROM iris ORDER BY id")[-1].to_pandas()
    expected = np.load(repository / "tests/fixtures/imported/net.npy")[matching_rows(own, repository)]
    frame = frame_of(session, f"SELECT * FROM iris TO PREDICT USING {name}_onnx")
    np.testing.assert_allclose(probabilities(frame), expected, atol=2e-6)


def test_columns_are_bound_by_name_in_any_order_and_number_type(session: Session) -> None:
    create(session, "people", ", input_label_cols = ['amount']")
    frame = frame_of(
        session,
        "SELECT id, city, amount AS truth, CAST(age AS DECIMAL(9, 2)) AS AGE FROM people TO PREDICT USING people_onnx",
    )
    np.testing.assert_allclose(frame["amount"], frame["truth"], rtol=1e-5)


def test_the_names_of_columns_may_be_in_the_metadata(session: Session) -> None:
    for number, names in enumerate(('["age", "id"]', "age, id")):
        write(session, f"names{number}.onnx", linear([2, 0], metadata={"feature_names": names}))
        create(session, f"names{number}", "")
        frame = frame_of(session, f"SELECT * FROM people TO PREDICT USING names{number}_onnx")
        assert (frame["prediction"] == 2 * frame["age"]).all()


@pytest.mark.soak
def test_a_sigmoid_is_the_probability_of_the_second_class(session: Session) -> None:
    write(session, "sigmoid.onnx", softmax(1, "Sigmoid"))
    create(
        session,
        "sigmoid",
        ", input_columns = ['age'], classes = ['no', 'yes'], input_label_cols = ['is_old']",
    )
    frame = frame_of(session, "SELECT age - 50 AS age FROM people TO PREDICT USING sigmoid_onnx")
    assert ((frame["age"] > 0) == (frame["is_old"] == "yes")).all()


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("name", "data", "options", "message", "hint"),
    [
        (
            "w1",
            linear([1, 2]),
            "",
            "the input x of the file does not name its 2 columns",
            "input_columns = ['a', 'b']",
        ),
        (
            "w2",
            linear([1, 2]),
            ", input_columns = ['a']",
            "takes 2 columns, and input_columns names 1: a",
            "each column",
        ),
        (
            "w3",
            softmax(3),
            ", input_columns = ['a', 'b', 'c'], classes = ['x', 'y']",
            "scores of 3 classes",
            "all classes",
        ),
        (
            "w4",
            identity(shape=(None, 2)),
            ", input_columns = ['a', 'b']",
            "probabilities or logits",
            "output_kind = 'logits'",
        ),
        ("w5", identity(shape=(None, 2, 2)), "", r"the dimensions (rows, 2, 2)", "(rows, columns)"),
        ("w6", identity(shape=(4,)), "", r"the dimensions (4)", "(rows, columns)"),
        ("w7", linear([1]), ", output = 'z'", "the file has no output z", "y"),
        ("w8", linear([1]), ", rounds = 3", "rounds are of trees of XGBoost", "leave rounds out"),
        (
            "w9",
            linear([1]),
            ", classes = ['a', 'b'], output_kind = 'number'",
            "a number has no classes",
            "leave",
        ),
        ("w10", identity("string"), "", "does not tell the classes of its output y", "add classes"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("w") else "",
)
def test_a_file_that_does_not_tell_enough_says_what_to_add(
    name: str, data: bytes, options: str, message: str, hint: str, session: Session
) -> None:
    write(session, f"{name}.onnx", data)
    with pytest.raises(SQLFlowError) as raised:
        create(session, name, options)
    assert message in raised.value.message
    assert hint in str(raised.value.hint)
    assert raised.value.span is not None


@pytest.mark.soak
def test_several_outputs_are_named_to_choose_from(session: Session) -> None:
    nodes = [helper.make_node("Identity", ["x"], [name]) for name in ("mean", "spread")]
    shapes = {"x": ("float", [None, 1])}, {name: ("float", [None, 1]) for name in ("mean", "spread")}
    write(session, "two.onnx", make_file(nodes, *shapes))
    with pytest.raises(SQLFlowError, match="several outputs: mean, spread") as raised:
        create(session, "two", ", input_columns = ['age']")
    assert raised.value.hint == "write output = 'mean', the one that predicts"
    create(session, "two", ", input_columns = ['age'], output = 'spread'")


@pytest.mark.soak
def test_classes_are_asked_for_where_the_file_predicts_some_and_names_none(session: Session) -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"]),
        helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0),
    ]
    shapes = {"x": ("float", [None, 2])}, {"label": ("int64", [None]), "p": ("float", [None, 2])}
    write(session, "unnamed.onnx", make_file(nodes, *shapes))
    with pytest.raises(SQLFlowError, match="does not tell the classes of its output p"):
        create(session, "unnamed", ", input_columns = ['a', 'b']")
    create(session, "unnamed", ", input_columns = ['a', 'b'], classes = ['no', 'yes']")


@pytest.mark.soak
def test_numbers_that_are_no_probabilities_are_noticed_by_made_up_rows(session: Session) -> None:
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "probabilities"],
            domain="ai.onnx.ml",
            classlabels_ints=[0, 1],
            coefficients=[-3.0, 3.0],
            intercepts=[0.0, 0.0],
        )
    ]
    shapes = {"x": ("float", [None, 1])}, {"label": ("int64", [None]), "probabilities": ("float", [None, 2])}
    write(session, "plane.onnx", make_file(nodes, *shapes))
    with pytest.raises(SQLFlowError, match="probabilities has -3 for a made-up row") as raised:
        create(session, "plane", ", input_columns = ['age']")
    assert raised.value.hint == "write output = 'label', output_kind = 'class'"
    create(session, "plane", ", input_columns = ['age'], output = 'label', output_kind = 'class'")
    frame = frame_of(session, "SELECT 2 AS age UNION ALL SELECT -2 TO PREDICT USING plane_onnx")
    assert sorted(frame["prediction"]) == [0, 1]


# NULL and types ----------------------------------------------------------------------------------------------


def test_null_is_nan_for_floats_and_an_error_for_whole_numbers_and_texts(session: Session) -> None:
    nodes = [
        helper.make_node("Cast", ["n"], ["f"], to=1),
        helper.make_node("Add", ["f", "x"], ["y"]),
    ]
    inputs = {"n": ("int64", [None, 1]), "x": ("float", [None, 1])}
    write(session, "sum.onnx", make_file(nodes, inputs, {"y": ("float", [None, 1])}))
    create(session, "sum", "")
    frame = frame_of(
        session, "SELECT 3 AS n, NULL::DOUBLE AS x UNION ALL SELECT 4, 1.5 TO PREDICT USING sum_onnx"
    )
    assert sorted(frame["prediction"].fillna(-1.0)) == [-1.0, 5.5]
    with pytest.raises(SQLFlowError, match="n is NULL in 2 rows, and the model takes whole numbers there"):
        session.run("SELECT NULL::INT AS n, 1.0 AS x FROM range(2) TO PREDICT USING sum_onnx")
    with pytest.raises(SQLFlowError, match=r"n is 2\.5 in a row, and the model takes whole numbers of int64"):
        session.run("SELECT 2.5 AS n, 1.0 AS x TO PREDICT USING sum_onnx")
    create(session, "people", ", input_label_cols = ['amount']")
    with pytest.raises(
        SQLFlowError, match="city is NULL in a row, and the model takes texts there"
    ) as raised:
        session.run("SELECT 30 AS age, NULL::VARCHAR AS city TO PREDICT USING people_onnx")
    assert "coalesce(city, '')" in str(raised.value.hint)


def test_a_probability_that_is_nan_is_an_error_and_no_wrong_class(session: Session) -> None:
    create(session, "iris_tensor", f", {FLOWERS}, input_label_cols = ['species']")
    with pytest.raises(
        SQLFlowError, match=r"gives no probability \(NaN\) for a row, of which petal_width is NULL"
    ):
        session.run(
            "SELECT * REPLACE (NULL::DOUBLE AS petal_width) FROM iris LIMIT 3 TO PREDICT USING iris_tensor_onnx"
        )


def test_a_missing_column_and_a_text_in_place_of_a_number_are_errors(session: Session) -> None:
    create(session, "people", ", input_label_cols = ['amount']")
    with pytest.raises(SQLFlowError, match="the query lacks the column age that the model reads"):
        session.run("SELECT city FROM people TO PREDICT USING people_onnx")
    with pytest.raises(SQLFlowError, match="column age is of type string where a number is needed"):
        session.run("SELECT 'x' AS age, city FROM people TO PREDICT USING people_onnx")


# Trees -------------------------------------------------------------------------------------------------------


def test_a_file_of_lightgbm_predicts_as_lightgbm_to_the_bit(session: Session) -> None:
    frame = people()
    rows = lightgbm.Dataset(frame[["age", "city"]], frame["amount"])
    booster = lightgbm.train({"objective": "regression", "verbosity": -1}, rows, 8)
    write(session, "people.txt", booster.model_to_string().encode())
    create(session, "people.txt", ", input_label_cols = ['amount']", "lightgbm")
    predicted = frame_of(session, "SELECT id, city, age FROM people TO PREDICT USING people_txt").sort_values(
        "id"
    )
    assert (predicted["amount"].to_numpy() == booster.predict(frame[["age", "city"]])).all()
    [explained] = session.run("SELECT * FROM people TO EXPLAIN people_txt")
    assert set(explained.to_pandas()["feature"]) == {"age", "city"}
    assert session.run("SELECT * FROM people TO EVALUATE people_txt")[0].figures


@pytest.mark.soak
def test_an_unknown_category_and_null_are_missing_for_trees(session: Session) -> None:
    frame = people()
    rows = lightgbm.Dataset(frame[["age", "city"]], frame["amount"])
    booster = lightgbm.train({"objective": "regression", "verbosity": -1}, rows, 8)
    write(session, "missing.txt", booster.model_to_string().encode())
    create(session, "missing.txt", ", input_label_cols = ['amount']", "lightgbm")
    predicted = frame_of(
        session,
        "SELECT * FROM (VALUES (30, 'nowhere'), (30, NULL), (NULL, 'oslo')) t(age, city) TO PREDICT USING missing_txt",
    )
    given = pd.DataFrame({"age": [30, 30, np.nan], "city": pd.Categorical(["x", None, "oslo"])})
    assert sorted(predicted["amount"]) == sorted(booster.predict(given))


@pytest.mark.variants(1)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_file_of_xgboost_predicts_as_xgboost(suffix: str, session: Session) -> None:
    frame = people()
    matrix = xgboost.DMatrix(frame[["age", "city"]], frame["amount"], enable_categorical=True)
    booster = xgboost.train({"objective": "reg:squarederror", "verbosity": 0}, matrix, 8)
    write(session, f"people.{suffix}", bytes(booster.save_raw(suffix)))
    create(session, f"people.{suffix}", ", input_label_cols = ['amount']", "xgboost")
    statement = f"SELECT id, city, age FROM people TO PREDICT USING people_{suffix}"
    predicted = frame_of(session, statement).sort_values("id")
    np.testing.assert_array_equal(predicted["amount"].to_numpy(np.float32), booster.predict(matrix))


@pytest.mark.variants(1)
@pytest.mark.parametrize(("rounds", "used"), [("", 3), (", rounds = 8", 8)])
def test_the_rounds_until_the_best_one_predict_as_in_xgbclassifier(
    rounds: str, used: int, session: Session
) -> None:
    frame = people()
    matrix = xgboost.DMatrix(frame[["age"]], frame["amount"] > 100)
    booster = xgboost.train({"objective": "binary:logistic", "verbosity": 0}, matrix, 8)
    booster.set_attr(best_iteration="2")
    write(session, "best.json", bytes(booster.save_raw("json")))
    options = f", input_label_cols = ['rich'], classes = ['no', 'yes']{rounds}"
    result = create(session, "best.json", options, "xgboost")
    assert ("the first 3 of 8 rounds" in result.message) == (not rounds)
    predicted = frame_of(session, "SELECT id, age FROM people TO PREDICT USING best_json").sort_values("id")
    expected = booster.predict(matrix, iteration_range=(0, used))
    np.testing.assert_allclose(predicted["rich_prob_yes"], expected, rtol=1e-6)


@pytest.mark.soak
def test_the_names_of_another_order_are_not_taken_by_position(session: Session) -> None:
    frame = people().assign(size=np.arange(ROWS) * 1.0)
    matrix = xgboost.DMatrix(frame[["size", "age"]], frame["amount"])
    write(session, "order.json", bytes(xgboost.train({"verbosity": 0}, matrix, 3).save_raw("json")))
    create(session, "order.json", "", "xgboost")
    both = (
        "SELECT age, id * 1.0 - 1 AS size FROM people ORDER BY id",
        "SELECT id * 1.0 - 1 AS size, age FROM people",
    )
    one, other = (frame_of(session, f"{query} TO PREDICT USING order_json") for query in both)
    assert sorted(one["prediction"]) == sorted(other["prediction"])
    with pytest.raises(SQLFlowError, match="the query lacks the column size that the model reads"):
        session.run("SELECT age FROM people TO PREDICT USING order_json")


# Life of the model -------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_the_file_is_stored_as_it_is_with_its_digest(session: Session, tmp_path: Path) -> None:
    create(session, "iris_zipmap", f", {FLOWERS}, input_label_cols = ['species']")
    data = (folder_of(session) / "iris_zipmap.onnx").read_bytes()
    session.registry.load("iris_zipmap_onnx", tmp_path / "m.zip")
    archive = read_archive(tmp_path / "m.zip")
    assert archive.weights()["model"].tobytes() == data
    assert archive.spec.imported
    assert archive.spec.imported.sha256 == hashlib.sha256(data).hexdigest()
    described = session.run("DESCRIBE MODEL iris_zipmap_onnx")[0].to_pandas()
    assert archive.spec.imported.sha256 in set(described["value"])


def test_each_import_is_a_version_that_can_be_chosen_and_dropped(session: Session) -> None:
    for weight in (2, 3):
        write(session, "versions.onnx", linear([weight]))
        create(session, "versions", ", input_columns = ['age']")
    [shown] = session.run("SHOW MODELS LIKE 'versions_onnx'")
    assert list(shown.to_pandas()["version"]) == [1, 2]
    frame = frame_of(
        session, "SELECT a.prediction / a.age AS w FROM PREDICT(versions_onnx@1, people) a LIMIT 1"
    )
    assert frame["w"][0] == 2
    session.run("SET MODEL versions_onnx ACTIVE 1; DROP MODEL versions_onnx@2")
    assert (
        frame_of(session, "SELECT prediction / age AS w FROM PREDICT(versions_onnx, people)")["w"].max() == 2
    )


@pytest.mark.soak
def test_a_program_may_use_the_model_that_it_imports(session: Session) -> None:
    write(session, "fresh.onnx", linear([2]))
    results = session.run(
        "CREATE MODEL fresh OPTIONS(model_type = 'onnx', model_path = 'fresh.onnx', input_columns = ['age']);"
        "SELECT age FROM people TO PREDICT USING fresh;"
    )
    assert len(results) == 2


def test_a_program_is_checked_before_its_first_statement_runs(session: Session) -> None:
    with pytest.raises(SQLFlowError, match=r"there is no file nowhere\.onnx"):
        session.run(
            "CREATE TABLE made_too_early (a INT);"
            "CREATE MODEL n OPTIONS(model_type = 'onnx', model_path = 'nowhere.onnx');"
        )
    with pytest.raises(SQLFlowError):
        session.run("SELECT * FROM made_too_early")


def test_a_plan_says_how_a_file_would_be_read_and_stores_nothing(session: Session) -> None:
    write(session, "planned.onnx", linear([2]))
    [statement] = session.parse(
        "CREATE MODEL planned OPTIONS(model_type = 'onnx', model_path = 'planned.onnx', input_columns = ['age'])"
    )
    plan = session.plan(statement).to_pandas()
    assert {"planned.onnx would be stored", "float"} <= set(plan["value"])
    assert not session.registry.has("planned")


def test_what_needs_a_training_is_refused(session: Session) -> None:
    write(session, "untrained.onnx", linear([2]))
    create(session, "untrained", ", input_columns = ['age'], input_label_cols = ['amount']")
    model = "untrained_onnx"
    for statement, message in {
        f"SELECT * FROM people TO TRAIN LinearRegressor LABEL amount USING {model} INTO z": "is not trained further",
        f"SELECT * FROM people TO PREDICT WITH predict.report = drift USING {model}": "keeps no statistics",
        f"SELECT * FROM people TO PREDICT WITH predict.interval = 0.9 USING {model}": "no errors of it are known",
        f"SELECT * FROM ML.EVALUATE(MODEL {model})": "was imported, so it has no figures",
        f"SELECT * FROM ML.GLOBAL_EXPLAIN(MODEL {model})": "was trained elsewhere",
    }.items():
        with pytest.raises(SQLFlowError, match=message):
            session.run(statement)


def test_a_model_in_memory_takes_rows_though_its_whole_numbers_have_no_null(
    session: Session, tmp_path: Path
) -> None:
    write(session, "whole.onnx", identity("int64"))
    create(session, "whole", ", input_columns = ['age'], output_kind = 'number'")
    session.registry.load("whole_onnx", tmp_path / "m.zip")
    model = load_model(tmp_path / "m.zip", "whole_onnx@1")
    rows = pa.record_batch({"age": pa.array([3, 4], pa.int64())})
    assert model.predictor.predict(rows)["prediction"].to_pylist() == [3, 4]
    with pytest.raises(SQLFlowError, match="age is NULL in a row"):
        model.predictor.predict(pa.record_batch({"age": pa.array([3, None], pa.int64())}))


# Files of our own --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "label", "settings"),
    [
        ("BoostedTreesClassifier", "kind", "validation.threshold = 0.4, train.num_boost_round = 4"),
        pytest.param("DNNClassifier", "kind", "train.epochs = 2", marks=pytest.mark.soak),
        pytest.param("DNNRegressor", "amount", "train.epochs = 2", marks=pytest.mark.soak),
        pytest.param("xgboost.gbtree", "amount", "train.num_boost_round = 4", marks=pytest.mark.soak),
    ],
)
def test_an_export_of_ours_predicts_as_the_model_that_it_came_from(
    model: str, label: str, settings: str, tmp_path: Path
) -> None:
    from sqlflow_edl.cli.main import main

    url = f"duckdb:///{tmp_path}/d.duckdb"
    table = (
        "CREATE TABLE t AS SELECT i AS id, CASE WHEN i % 7 > 0 THEN ['oslo', 'rome', ''][1 + i % 3] END AS city,"
        " CASE WHEN i % 5 > 0 THEN i * 0.5 END AS age, DATE '2024-01-01' + i::INT AS day, i % 2 = 0 AS flag,"
        " CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END AS kind, i * 2.0 AS amount FROM range(200) AS r(i)"
    )
    train = (
        f"SELECT city, age, day, flag, {label} FROM t TO TRAIN {model} WITH {settings} LABEL {label} INTO m"
    )
    with Session(url, create=True) as session:
        session.run(table)
        session.run(train)
    assert main(["export", "m", "-o", str(tmp_path / "m.onnx"), "--source", url]) == 0
    assert main(["import", str(tmp_path / "m.onnx"), "--as", "again", "--source", url]) == 0
    with Session(url) as session:
        one, other = (
            frame_of(session, f"SELECT * FROM t TO PREDICT USING {name}").sort_values("id")
            for name in ("m", "again")
        )
    assert list(one) == list(other)
    for column in one:
        if column.startswith(label) and one[column].dtype.kind == "f":
            np.testing.assert_allclose(one[column], other[column], rtol=1e-5)
    if label == "kind":
        assert (one["kind"] == other["kind"]).all()
