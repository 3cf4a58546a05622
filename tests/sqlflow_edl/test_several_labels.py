"""One model of several labels, from LABEL a, b to the columns, the figures and the files of each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from edl.metrics import AUC, RMSE
from tests.databases import fill, spelt
from tests.workshops import Workshop

ROWS = 120
draw = np.random.default_rng(7)
X = draw.normal(size=ROWS).round(3)
SALES = pa.table(
    {
        "id": range(ROWS),
        "x": X,
        "often": draw.integers(1, 4, ROWS),
        "cost": 50 + 5 * X,
        "kind": np.where(X > 0.4, "c", np.where(X < -0.4, "a", "b")),
        "late": X + draw.normal(size=ROWS) > 0,
    }
)
QUERY = "SELECT x, often, cost, kind, late FROM deals"


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With a model of a number, of three classes and of two."""
    fill(workshop.session, "deals", SALES)
    workshop.run(
        f"{QUERY} TO TRAIN DNN WITH model.framework = {workshop.framework}, epochs = 40, model.hidden_units = [8], "
        "optimizer.learning_rate = 0.05, train.label_weights = [1, 2, 0.5], "
        "validation.metrics = [rmse, kind.accuracy, late.auc] "
        "VALIDATE 0.25 LABEL cost, kind, late INTO deal"
    )
    return workshop


def predicted(workshop: Workshop, target: str = "", model: str = "deal", more: str = "") -> pa.Table:
    text = f"SELECT * FROM deals ORDER BY id TO PREDICT {target} USING {model}{more}"
    table = target.partition(".")[0]
    return workshop.rows(f"{text}; SELECT * FROM {table} ORDER BY id" if target else text)


def test_each_label_has_the_columns_of_a_model_of_its_own(workshop: Workshop) -> None:
    found = predicted(workshop)
    assert found.column_names == [
        *("id", "x", "often", "cost"),
        *("kind", "kind_confidence", "kind_prob_a", "kind_prob_b", "kind_prob_c"),
        *("late", "late_confidence", *(spelt(name, workshop.session) for name in found.column_names[-2:])),
    ]
    errors = found["cost"].to_numpy() - SALES["cost"].to_numpy()
    assert np.abs(errors).mean() < 2
    right = [a == b for a, b in zip(found["kind"].to_pylist(), SALES["kind"].to_pylist(), strict=True)]
    assert np.mean(right) > 0.8
    sums = sum(found[f"kind_prob_{each}"].to_numpy() for each in "abc")
    assert sums == pytest.approx(np.ones(ROWS))


@pytest.mark.soak
def test_a_column_of_the_target_is_before_the_name_of_each_label(workshop: Workshop) -> None:
    found = predicted(workshop, "guesses.guess", more=" WITH predict.probabilities = false")
    added = ["guess_cost", "guess_kind", "guess_kind_confidence", "guess_late", "guess_late_confidence"]
    assert found.column_names == ["id", "x", "often", "cost", "kind", "late", *added]
    more = " WITH predict.probabilities = false, predict.extra_outputs = [probabilities]"
    assert "kind_prob_a" in predicted(workshop, more=more).column_names
    assert found["guess_cost"].to_pylist() == predicted(workshop)["cost"].to_pylist()


def test_a_call_of_predict_has_a_column_for_each_label(workshop: Workshop) -> None:
    found = workshop.rows("SELECT cost, kind FROM PREDICT(deal, deals) p ORDER BY id")
    assert found["kind"].to_pylist() == predicted(workshop)["kind"].to_pylist()


def test_each_label_has_its_figures(workshop: Workshop) -> None:
    found = predicted(workshop)
    [result] = workshop.run(
        "SELECT x, often, cost AS c, kind AS k, late AS l FROM deals TO EVALUATE deal LABEL c, k, l"
    )
    figures = result.to_arrow().to_pylist()[0]
    assert list(figures) == ["loss", "c_rmse", "k_accuracy", "l_auc"]
    rmse, auc = RMSE(), AUC(exact=True)
    labels = SALES["cost"].to_numpy().reshape(-1, 1)
    assert figures["c_rmse"] == pytest.approx(
        rmse.result(rmse.update((), labels, found["cost"].to_numpy().reshape(-1, 1))), rel=1e-5
    )
    late, second = SALES["late"].to_numpy(zero_copy_only=False), found[found.column_names[-1]].to_numpy()
    assert figures["l_auc"] == pytest.approx(
        auc.result(auc.update((), late[:, np.newaxis], second[:, np.newaxis]))
    )
    assert figures["k_accuracy"] == pytest.approx(
        np.mean([a == b for a, b in zip(found["kind"].to_pylist(), SALES["kind"].to_pylist(), strict=True)])
    )


def test_the_model_is_described_label_by_label(workshop: Workshop) -> None:
    rows = workshop.rows("DESCRIBE MODEL deal").to_pylist()
    assert [row["name"] for row in rows if row["section"] == "label"] == ["cost", "kind", "late"]
    assert [row["name"] for row in rows if row["section"] == "validation"][-3:] == [
        *("cost.rmse", "kind.accuracy", "late.auc")
    ]


@pytest.mark.soak
def test_a_row_without_one_of_the_labels_is_left_out_where_that_is_asked_for(workshop: Workshop) -> None:
    query = "SELECT x, CASE WHEN id > 3 THEN cost END AS cost, CASE WHEN id < 100 THEN kind END AS kind FROM deals"
    train = f"{query} TO TRAIN DNN WITH model.framework = {workshop.framework}, epochs = 1"
    with pytest.raises(SQLFlowError, match="cost is NULL in"):
        workshop.run(f"{train} LABEL cost, kind INTO some")
    [result] = workshop.run(f"{train}, train.on_bad_row = skip LABEL cost, kind INTO some")
    assert (
        "24 of 120 rows have no cost or no kind and are left out: WHERE cost IS NULL OR kind IS NULL"
        in result.notes
    )


def test_training_goes_on_with_the_same_labels_alone(workshop: Workshop) -> None:
    more = "TO TRAIN DNN WITH epochs = 1, train.weight_column = often"
    [result] = workshop.run(f"{QUERY} {more} LABEL cost, kind, late USING deal INTO further")
    assert result.model == "further@1"
    with pytest.raises(SQLFlowError, match="deal@1 predicts cost, kind, late"):
        workshop.run(f"{QUERY} {more} LABEL cost, late USING deal INTO further")


@pytest.mark.soak
def test_a_model_of_the_users_own_gives_an_output_for_each_label(workshop: Workshop) -> None:
    name = {"torch": "torch_heads.Heads", "keras": "keras_heads.heads"}[workshop.framework]
    workshop.run(f"SELECT x, cost, kind FROM deals TO TRAIN {name} WITH epochs = 2 LABEL cost, kind INTO own")
    found = predicted(workshop, model="own")
    assert found["kind_confidence"].null_count == 0
    assert found["cost"].to_numpy().std() > 0


@pytest.mark.soak
def test_an_output_that_is_missing_is_named(workshop: Workshop) -> None:
    if workshop.framework == "keras":
        pytest.skip("the check is that of both")
    text = (
        "SELECT x, cost, kind FROM deals TO TRAIN torch_heads.Half WITH epochs = 1 LABEL cost, kind INTO half"
    )
    with pytest.raises(SQLFlowError, match="the model gives outputs kind") as caught:
        workshop.run(text)
    assert caught.value.hint == "give a dict, or one tensor for each label: cost (rows, 1), kind (rows, 3)"


@pytest.mark.soak
@pytest.mark.parametrize("more", ["train.num_workers = 2", "train.num_workers = 1, train.num_ps = 1"])
def test_workers_and_servers_train_it(workshop: Workshop, more: str) -> None:
    [result] = workshop.run(
        f"{QUERY} TO TRAIN DNN WITH model.framework = {workshop.framework}, epochs = 2, {more}, "
        "validation.metrics = [cost.rmse] VALIDATE 0.25 LABEL cost, kind, late INTO shared"
    )
    assert set(result.figures or {}) == {"loss", "cost.rmse"}
    assert predicted(workshop, model="shared", more=" WITH predict.num_workers = 2").num_rows == ROWS


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "TO EXPLAIN deal",
            "deal@1 predicts cost, kind, late, and EXPLAIN is of one predicted number or class",
        ),
        (
            "TO PREDICT USING deal WITH predict.interval = 0.9",
            "an interval is of one number, and deal@1 predicts",
        ),
        ("TO PREDICT USING deal WITH predict.threshold = 0.9", "and cost, kind, late are several labels"),
        ("TO EVALUATE deal WITH evaluate.report = roc_curve", "; cost, kind, late are several labels"),
        ("TO EVALUATE deal LABEL cost, kind, kind", "kind is a label twice"),
        ("TO EVALUATE deal LABEL cost", "the model predicts 3 labels, and LABEL names 1"),
        ("TO PREDICT USING deal WITH predict.extra_outputs = [logits]", "deal@1 has no extra output logits"),
    ],
)
def test_what_is_of_one_label_is_refused_with_the_reason(
    workshop: Workshop, statement: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message) as caught:
        workshop.run(f"SELECT * FROM deals {statement}")
    assert caught.value.hint


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "message"),
    [("'d'", "kind has classes in the validation rows that no"), ("NULL", "kind is NULL in 9")],
)
def test_validation_rows_of_their_own_have_the_classes_of_every_label(
    workshop: Workshop, kind: str, message: str
) -> None:
    given = f"SELECT x, cost, {kind} AS kind FROM deals WHERE id < 9"
    with pytest.raises(SQLFlowError, match=message) as caught:
        workshop.run(
            f"SELECT x, cost, kind FROM deals TO TRAIN DNN WITH model.framework = {workshop.framework} "
            f"VALIDATE ON ({given}) LABEL cost, kind INTO n"
        )
    assert caught.value.span is not None


@pytest.mark.soak
def test_versions_are_compared_by_the_first_metric(workshop: Workshop) -> None:
    framework = f"model.framework = {workshop.framework}"
    more = f"TO TRAIN Linear WITH {framework}, epochs = 1, train.activate = better, validation.metrics = [cost.rmse]"
    statement = f"SELECT x, cost, kind FROM deals {more} VALIDATE 0.25 LABEL cost, kind INTO compared"
    *_, result = workshop.run(f"{statement};{statement}")
    assert "its cost.rmse is" in result.message
    assert result.message.startswith("trained Linear compared@2")
    assert [each.record.model for each in workshop.session.registry.list("compared")] == ["Linear", "Linear"]
