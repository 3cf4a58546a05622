"""Statements all the way, in both frameworks and on each database: from SQL to a model, its predictions and figures."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets, metrics
from sklearn.utils import Bunch

from edl import spec
from edl.data.names import fit_name, free_name
from edl.errors import Span, SQLFlowError
from edl.program.user_model import PATH_VARIABLE, find
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.syntax.lexer import quoted_name
from tests.databases import fill
from tests.workshops import Workshop


def real(data: Bunch) -> pa.Table:
    columns = {f"x{i}": data.data[:, i] for i in range(data.data.shape[1])}
    return pa.table({"id": range(len(data.target)), **columns, "kind": data.target_names[data.target]})


IRIS = real(datasets.load_iris())
SHOPS = {
    "shop": [f"s{i % 7}" for i in range(150)],
    "day": [f"d{i % 5}" for i in range(150)],
    "open": [i % 2 == 0 for i in range(150)],
}
REAL = {
    "iris": IRIS,
    "cancer": real(datasets.load_breast_cancer()),
    "shops": pa.table(dict(zip(IRIS.column_names, IRIS.columns, strict=True)) | SHOPS),
}


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With real tables and a model of each kind."""
    for name, rows in REAL.items():
        fill(workshop.session, name, rows)
    framework = f"model.framework = {workshop.framework}"
    workshop.run(
        f"""
        SELECT x0, x1, x2, x3, kind FROM iris WHERE id % 3 > 0
        TO TRAIN DNNClassifier WITH {framework} LABEL kind INTO flowers;
        SELECT {", ".join(REAL["cancer"].column_names[1:])} FROM cancer WHERE id % 4 > 0
        TO TRAIN LinearClassifier WITH {framework} LABEL kind INTO clinic.tumours;
        SELECT x0, x1, x2, x3 FROM iris TO TRAIN DNNRegressor
        WITH {framework}, hidden_units = [16], epochs = 100, batch_size = 16, lr = 0.003 LABEL x3 INTO widths;
        """
    )
    return workshop


@pytest.fixture
def models(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of a user, which statements name."""
    monkeypatch.setenv(PATH_VARIABLE, str(workshop.models))


def test_irises_sorted_by_class_are_told_apart(workshop: Workshop) -> None:
    [result] = workshop.run("SELECT * FROM iris WHERE id % 3 = 0 TO EVALUATE flowers")
    assert result.figures is not None
    assert (result.figures["accuracy"] or 0) >= 0.95


def test_tumours_are_ranked(workshop: Workshop) -> None:
    [result] = workshop.run("SELECT * FROM cancer WHERE id % 4 = 0 TO EVALUATE clinic.tumours")
    assert result.figures is not None
    assert (result.figures["auc"] or 0) >= 0.97


def test_a_regression_is_in_units_of_its_label(workshop: Workshop) -> None:
    found = workshop.rows(
        "SELECT * FROM iris TO EVALUATE widths WITH validation.metrics = 'r2, rmse'"
    ).to_pylist()[0]
    assert found["r2"] > 0.9
    assert 0 < found["rmse"] < 0.3


def test_probabilities_sum_to_one_and_the_class_has_the_largest(workshop: Workshop) -> None:
    found = workshop.rows("SELECT * FROM iris TO PREDICT x.guess USING flowers; SELECT * FROM x")
    names = ["setosa", "versicolor", "virginica"]
    shares = np.stack([found[f"guess_prob_{name}"].to_numpy() for name in names], axis=1)
    assert np.allclose(shares.sum(axis=1), 1)
    assert found["guess"].to_pylist() == [names[i] for i in shares.argmax(axis=1)]
    assert np.allclose(found["guess_confidence"].to_numpy(), shares.max(axis=1))
    assert "kind" in found.column_names


def test_figures_equal_scikit_learn(workshop: Workshop) -> None:
    rows = "SELECT * FROM cancer WHERE id % 4 = 0"
    wanted = "validation.metrics = 'accuracy, auc, log_loss, precision, recall, f1'"
    found = workshop.rows(f"{rows} TO EVALUATE clinic.tumours WITH {wanted}").to_pylist()[0]
    guesses = workshop.rows(f"{rows} TO PREDICT guesses.guess USING clinic.tumours; SELECT * FROM guesses")
    truth = np.array(guesses["kind"].to_pylist()) == "malignant"
    score = guesses["guess_prob_malignant"].to_numpy()
    guess = np.array(guesses["guess"].to_pylist()) == "malignant"
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(truth, score), abs=1e-9)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(truth, guess), abs=1e-9)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, score), abs=1e-9)
    assert found["precision"] == pytest.approx(metrics.precision_score(truth, guess), abs=1e-9)
    assert found["recall"] == pytest.approx(metrics.recall_score(truth, guess), abs=1e-9)
    assert found["f1"] == pytest.approx(metrics.f1_score(truth, guess), abs=1e-9)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("model", "columns", "label", "trained", "inputs"),
    [
        (
            "DNNLinearCombinedClassifier",
            "COLUMN CROSS([shop, day], 50) FOR linear COLUMN x0, EMBEDDING(shop, 3) FOR dnn",
            "kind",
            "DNNLinearCombinedClassifier",
            {"wide": 1, "deep": 2},
        ),
        ("DNNLinearCombined", "", "x3", "DNNLinearCombinedRegressor", {"wide": 2, "deep": 5}),
        ("DeepFM", "", "x3", "DeepFMRegressor", {"features": 5}),
        ("DeepFM", "", "open", "DeepFMClassifier", {"features": 5}),
    ],
)
def test_models_of_several_parts_train_and_predict(
    workshop: Workshop,
    tmp_path: Path,
    model: str,
    columns: str,
    label: str,
    trained: str,
    inputs: dict[str, int],
) -> None:
    rows = f"SELECT x0, x1, x2, shop, day, {label} FROM shops"
    workshop.run(
        f"{rows} TO TRAIN {model} WITH epochs = 2, hidden_units = [8], "
        f"model.framework = {workshop.framework} {columns} LABEL {label} INTO parts",
    )
    found = workshop.archive("parts", tmp_path).spec
    assert found.model.name == trained
    if not columns:
        assert {name: len(features) for name, features in found.inputs.items()} == inputs
    assert list(found.inputs) == list(inputs)
    assert workshop.rows(f"{rows} TO PREDICT USING parts").num_rows == 150


OWN = {"keras": ("nets.Tower", "nets.joined"), "torch": ("torch_nets.Model", "torch_nets.custom_model")}


@pytest.mark.soak
@pytest.mark.usefixtures("models")
def test_models_of_the_users_own_train_and_predict_until_their_source_changes(workshop: Workshop) -> None:
    matrix, arrays = OWN[workshop.framework]
    workshop.run(
        f"SELECT * FROM iris TO TRAIN {matrix} WITH epochs = 2, model.units = [8] LABEL kind INTO own;"
        f"SELECT x0, x3 FROM iris TO TRAIN {arrays} WITH epochs = 50, lr = 0.02 LABEL x3 INTO own2",
    )
    assert workshop.rows("SELECT * FROM iris TO PREDICT USING own").num_rows == 150
    assert workshop.rows("SELECT * FROM iris TO EVALUATE own2 WITH metrics = r2")["r2"].to_pylist()[0] > 0.3
    changed = find(arrays).file
    before = changed.read_text()
    changed.write_text(before + "# changed\n")
    with pytest.raises(SQLFlowError, match=f"{arrays} has changed since the model was trained"):
        workshop.run("SELECT * FROM iris TO PREDICT USING own2")
    workshop.run(f"SELECT x0, x3 FROM iris TO TRAIN {arrays} WITH epochs = 1 LABEL x3 INTO own2")
    assert workshop.rows("SELECT * FROM iris TO PREDICT USING own2").num_rows == 150
    changed.write_text(before)


@pytest.mark.usefixtures("models")
def test_a_model_of_the_users_own_learns_from_the_order_of_ids(workshop: Workshop) -> None:
    rows = "SELECT CASE WHEN x0 > 5.8 THEN 'a,b' ELSE 'b,a,c' END AS items, x0 > 5.8 AS large FROM iris"
    workshop.run(
        f"{rows} TO TRAIN {workshop.framework}_sequences.Basket WITH epochs = 12, lr = 0.1, model.width = 3 "
        "COLUMN SEQUENCE(items, 2) LABEL large INTO ordered"
    )
    assert workshop.rows(f"{rows} TO EVALUATE ordered")["loss"].to_pylist()[0] < 0.1


@pytest.mark.usefixtures("models")
def test_a_module_of_a_model_zoo_trains_with_its_own_loss_optimizer_metrics_and_callbacks(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.run(
        f"SELECT * FROM iris TO TRAIN {workshop.framework}_zoo.custom_model WITH epochs = 20 LABEL kind INTO of_zoo",
    )
    found = workshop.archive("of_zoo", tmp_path)
    assert len(found.curve) == 3
    assert found.lineage.ending == "stopped after epoch 3: three are enough"
    assert set(found.metrics) == {"loss", "right"}
    assert workshop.rows("SELECT * FROM iris TO PREDICT USING of_zoo").num_rows == 150
    assert workshop.rows("SELECT * FROM iris TO EVALUATE of_zoo").column_names == ["loss", "right"]
    named = workshop.rows("SELECT * FROM iris TO EVALUATE of_zoo WITH metrics = accuracy")
    assert named.column_names == ["loss", "accuracy"]


@pytest.mark.soak
def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    workshop: Workshop, tmp_path: Path
) -> None:
    weights = []
    for seed in (3, 3, 4):
        workshop.run(
            f"SELECT * FROM iris ORDER BY {'id' if len(weights) % 2 else 'x0'} TO TRAIN DNNClassifier "
            f"WITH epochs = 2, seed = {seed}, dropout = 0.5, "
            f"model.framework = {workshop.framework} LABEL kind INTO seeded",
        )
        weights.append(workshop.archive("seeded", tmp_path).weights())
    assert weights[0].keys() == weights[1].keys()
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not all(np.array_equal(weights[0][name], weights[2][name]) for name in weights[0])


def described(workshop: Workshop, name: str) -> dict[tuple[str, str], str]:
    found = workshop.rows(f"DESCRIBE MODEL {name}").to_pylist()
    return {(row["section"], row["name"]): row["value"] for row in found}


@pytest.mark.parametrize("name", ["flowers", "clinic.tumours", "widths"])
def test_a_plan_knows_the_size_that_its_model_has(workshop: Workshop, name: str) -> None:
    statement = workshop.rows(f"SHOW TRAIN {name}")["statement"][0].as_py()
    plan = workshop.rows(f"EXPLAIN {statement}").to_pylist()
    [parameters] = [row["value"] for row in plan if row["name"] == "parameters"]
    weights = described(workshop, name)["model", "weights"].removesuffix(" numbers")
    made, planned = (int(each.replace(",", "")) for each in (weights, parameters))
    assert made == pytest.approx(planned, rel=0.02)  # the plan has no split, so bins of all rows


@pytest.mark.soak
def test_an_older_version_predicts_by_its_number(workshop: Workshop) -> None:
    for epochs in (1, 2):
        [result] = workshop.run(
            f"SELECT x0, x3 FROM iris TO TRAIN LinearRegressor WITH epochs = {epochs}, "
            f"model.framework = {workshop.framework} LABEL x3 INTO aged",
        )
        assert result.model == f"aged@{epochs}"
    query = "SELECT x0 FROM iris WHERE id < 3 ORDER BY id TO PREDICT USING aged"
    first, second, current = (
        workshop.rows(query + version)["x3"].to_pylist() for version in ("@1", "@2", "")
    )
    assert first != second
    assert second == current


@pytest.mark.parametrize(
    ("query", "use", "message"),
    [
        ("SELECT 'old' AS x0, x1, x2, x3 FROM iris", "TO PREDICT USING", "column x0 is of type"),
        ("SELECT * FROM iris WHERE 1 = 0", "TO EVALUATE", "the query yields no rows"),
        ("SELECT * FROM iris WHERE 1 = 0", "TO EXPLAIN", "the query yields no rows"),
    ],
)
def test_rows_that_a_model_cannot_use_are_errors_at_their_query(
    workshop: Workshop, query: str, use: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as raised:
        workshop.run(f"{query} {use} flowers")
    wrong = "x0" if "x0" in message else query
    place = Span(query.index(wrong), query.index(wrong) + len(wrong))
    assert raised.value.span == place


class Hearing(Silent):
    """Observer that keeps the warnings."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def warn(self, text: str) -> None:
        self.heard.append(text)


def test_a_prediction_of_no_rows_is_warned_of(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    hearing = Hearing()
    monkeypatch.setattr(workshop.session, "observer", hearing)
    workshop.run("SELECT * FROM iris WHERE id > 999999 TO PREDICT nobody.x3 USING flowers")
    assert [warning.partition(" to ")[0] for warning in hearing.heard] == [
        "the query yields no rows; id is from 0"
    ]


def test_a_prediction_in_the_place_of_a_column_that_the_model_reads_is_noted(workshop: Workshop) -> None:
    [result] = workshop.run("SELECT * FROM iris WHERE id < 3 TO PREDICT taken.x0 USING flowers")
    assert "the prediction stands in the place of x0, which the model reads" in result.notes
    [result] = workshop.run("SELECT * FROM iris WHERE id < 3 TO PREDICT taken.kind USING flowers")
    assert not result.notes


def test_a_failed_training_is_known_with_its_reason_and_leaves_the_model_usable(workshop: Workshop) -> None:
    before = workshop.session.registry.find("widths").version
    with pytest.raises(SQLFlowError) as raised:
        workshop.run(
            f"SELECT x0, x3 FROM iris TO TRAIN DNNRegressor WITH optimizer = sgd, learning_rate = 1e30, epochs = 3, "
            f"model.framework = {workshop.framework} LABEL x3 INTO widths",
        )
    assert "learning rate" in (raised.value.hint or "")
    assert workshop.session.registry.find("widths").version == before
    [*_, failed] = (each for each in workshop.session.registry.list() if each.name == "widths")
    assert failed.state == "failed"
    assert failed.reason


WIDE = [
    'x"); import os #',
    "type",
    "a.b",
    "a/b",
    "n" * 300,
    "{{ 7 * 7 }}",
    "{% raw %}",
    "$(rm)",
    "f0",
    "dense",
    "class",
]


CLASSES = (WIDE[0], "n" * 300, "N" * 300)
LONGEST = {"mysql": 64, "postgres": 63, "maxcompute": 128}


def drawn(workshop: Workshop) -> list[str]:
    """Names of columns that are as bad as the database takes them."""
    draw = random.Random(5)  # noqa: S311 - a fixed drawing, not a secret
    alphabet = "ab \"'\\{}%#();.,/`$äß漢😀\t"
    names: list[str] = []
    for name in WIDE + [f"{i}" + "".join(draw.choices(alphabet, k=8)) for i in range(50)]:
        name = name[: LONGEST.get(workshop.dialect)].rstrip()  # nor a space at the end
        names.append(free_name(fit_name(name, workshop.dialect), names))
    return names


def test_tables_with_hostile_names_and_texts_train_and_predict(workshop: Workshop) -> None:
    draw = random.Random(6)  # noqa: S311 - a fixed drawing, not a secret
    rows = 60
    columns = {
        name: [draw.random() if i % 2 else draw.choice(WIDE) for _ in range(rows)]
        for i, name in enumerate(drawn(workshop))
    }
    label = fit_name('l"); exec(1) #', workshop.dialect)
    fill(workshop.session, "wide", pa.table({**columns, label: [draw.choice(CLASSES) for _ in range(rows)]}))
    workshop.run(
        f"SELECT * FROM wide TO TRAIN DNNClassifier WITH epochs = 2, model.framework = {workshop.framework} "
        f"LABEL {quoted_name(label)} INTO hostile",
    )
    found = workshop.rows("SELECT * FROM wide TO PREDICT guessed.guess USING hostile; SELECT * FROM guessed")
    assert found.num_rows == rows
    assert set(found["guess"].unique().to_pylist()) <= set(CLASSES)


def test_a_prediction_spec_derives_nothing_again(workshop: Workshop, tmp_path: Path) -> None:
    trained = workshop.archive("flowers", tmp_path).spec
    assert isinstance(trained.features[0], spec.Standardize)
    one = workshop.rows("SELECT * FROM iris WHERE id = 0 TO PREDICT USING flowers").to_pylist()[0]
    many = workshop.rows("SELECT * FROM iris ORDER BY id TO PREDICT USING flowers").to_pylist()[0]
    assert one["kind_confidence"] == pytest.approx(many["kind_confidence"], rel=1e-5)


def test_describe_of_a_model_as_of_a_table_says_what_to_write(workshop: Workshop) -> None:
    for reference in ("flowers", "clinic.tumours"):
        with pytest.raises(SQLFlowError) as caught:
            workshop.run(f"DESCRIBE {reference};")
        assert caught.value.hint == f"{reference} is a model: DESCRIBE MODEL {reference}"
    with pytest.raises(SQLFlowError) as caught:
        workshop.run("DESCRIBE nothing_there;")
    assert "is a model" not in (caught.value.hint or "")
