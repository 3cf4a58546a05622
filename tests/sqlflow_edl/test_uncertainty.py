"""Intervals of predicted numbers and thresholds of classes, from the statement to the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from edl.errors import SQLFlowError
from tests.databases import fill
from tests.workshops import Workshop

ROWS = 1200


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With noisy rows, a model of a number and one of classes."""
    draw = np.random.default_rng(5)
    x = draw.normal(size=ROWS)
    cost = 3 * x + draw.normal(size=ROWS)
    kind = np.where(draw.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x)), "rare", "frequent")
    fill(workshop.session, "noisy", pa.table({"id": range(ROWS), "x": x, "cost": cost, "kind": kind}))
    workshop.run(
        "SELECT x, cost FROM noisy WHERE id < 600 TO TRAIN LinearRegressor WITH model.framework = torch VALIDATE 0.3 "
        "LABEL cost INTO costs;"
        "SELECT x, kind FROM noisy WHERE id < 600 TO TRAIN LinearClassifier WITH model.framework = torch "
        "LABEL kind INTO kinds"
    )
    return workshop


def predicted(workshop: Workshop, attributes: str, model: str = "costs") -> pa.Table:
    rows = "SELECT * FROM noisy WHERE id >= 600 ORDER BY id"
    return workshop.rows(
        f"{rows} TO PREDICT guess USING {model} WITH {attributes}; SELECT * FROM guess ORDER BY id"
    )


def test_an_interval_holds_about_its_share_of_new_rows(workshop: Workshop) -> None:
    query = "SELECT * FROM noisy WHERE id >= 600 ORDER BY id TO PREDICT USING costs"
    truth = workshop.rows("SELECT cost FROM noisy WHERE id >= 600 ORDER BY id")["cost"]
    for coverage in (0.5, 0.9):
        found = workshop.rows(f"{query} WITH predict.interval = {coverage}")
        assert found.column_names == ["id", "x", "kind", "cost", "cost_low", "cost_high"]
        low, high = found["cost_low"], found["cost_high"]
        inside = pc.and_(pc.less_equal(low, truth), pc.less_equal(truth, high))
        assert pc.mean(inside).as_py() == pytest.approx(coverage, abs=0.07)
        middle = (low.to_numpy() + high.to_numpy()) / 2
        assert middle == pytest.approx(found["cost"].to_numpy())


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "model",
    [
        "BoostedTreesRegressor WITH train.num_boost_round = 30",
        "DNNRegressor WITH model.framework = torch, train.epoch = 20",
        "LinearRegressor WITH model.framework = torch, train.epoch = 20",
    ],
)
def test_intervals_are_wide_where_the_errors_are_large(workshop: Workshop, model: str) -> None:
    draw = np.random.default_rng(3)
    x, strain, kind = draw.normal(size=6000), draw.random(6000), draw.choice(["calm", "wild"], 6000)
    size = np.exp(strain) * np.where(kind == "wild", 4.0, 1.0)
    rows = {
        "id": range(6000),
        "x": x,
        "strain": strain,
        "kind": kind,
        "cost": 3 * x + size * draw.normal(size=6000),
    }
    fill(workshop.session, "uneven", pa.table(rows))
    workshop.run(
        f"SELECT x, strain, kind, cost FROM uneven WHERE id < 3000 TO TRAIN {model} VALIDATE 0.3 LABEL cost INTO wide"
    )
    [predicted_rows] = workshop.session.run(
        "SELECT id, kind AS KIND, strain, x FROM uneven WHERE id >= 3000 "
        "TO PREDICT USING wide WITH predict.interval = 0.9"
    )
    found = predicted_rows.to_arrow().sort_by("id")
    low, high = found["cost_low"].to_numpy(), found["cost_high"].to_numpy()
    inside = (low <= rows["cost"][3000:]) & (rows["cost"][3000:] <= high)
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    is_wild = kind[3000:] == "wild"
    assert inside[is_wild].mean() == pytest.approx(0.9, abs=0.05)
    assert inside[~is_wild].mean() == pytest.approx(0.9, abs=0.05)
    assert (high - low)[is_wild].mean() > 2.5 * (high - low)[~is_wild].mean()
    described = {
        (row["section"], row["name"]): row["value"]
        for row in workshop.rows("DESCRIBE MODEL wide").to_pylist()
    }
    assert described["intervals", "widths"].startswith("most by kind")
    assert "for the median row" in described["intervals", "90%"]


@pytest.mark.soak
def test_a_job_with_a_master_gives_the_intervals_of_one_process(workshop: Workshop) -> None:
    workshop.run(
        "SELECT x, cost FROM noisy WHERE id < 600 TO TRAIN LinearRegressor "
        "WITH model.framework = torch, epochs = 2, train.num_workers = 1 VALIDATE 0.3 LABEL cost INTO served;"
        "SELECT x, cost FROM noisy WHERE id < 600 TO TRAIN LinearRegressor "
        "WITH model.framework = torch, epochs = 2 VALIDATE 0.3 LABEL cost INTO alone"
    )
    served = predicted(workshop, "predict.interval = 0.9, predict.num_workers = 2", "served")
    assert served.equals(predicted(workshop, "predict.interval = 0.9", "alone"))


@pytest.mark.parametrize(
    ("model", "interval", "message", "hint"),
    [
        ("kinds", 0.9, "an interval is of a number, and kinds@1 predicts the class kind", "probabilities"),
        (
            "costs",
            0.999,
            "an interval of 0.999 needs more than the 180 validation rows of costs@1",
            "up to 0.994",
        ),
        (
            "all_rows",
            0.9,
            "all_rows@1 was trained without validation rows, whose errors give the interval",
            "VALIDATE",
        ),
    ],
)
def test_a_model_without_such_an_interval_says_why(
    workshop: Workshop, model: str, interval: float, message: str, hint: str
) -> None:
    if model == "all_rows":
        workshop.run("SELECT x, cost FROM noisy LIMIT 50 TO TRAIN LinearRegressor WITH epochs = 1, "
                     "model.framework = torch LABEL cost INTO all_rows")  # fmt: skip
    with pytest.raises(SQLFlowError) as caught:
        predicted(workshop, f"predict.interval = {interval}", model)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")
    assert caught.value.span is not None


def test_probabilities_of_a_number_are_refused_at_their_name(workshop: Workshop) -> None:
    with pytest.raises(
        SQLFlowError, match="only classes have probabilities, and cost has no classes"
    ) as caught:
        predicted(workshop, "predict.probabilities = true", "costs")
    assert caught.value.span is not None


@pytest.mark.soak
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.soak)])
def test_predictions_and_their_figures_share_a_threshold(workshop: Workshop, workers: int) -> None:
    lower = predicted(workshop, "predict.threshold = 0.3", "kinds")
    plain = predicted(workshop, "predict.batch_size = 100", "kinds")
    second = plain["kind_prob_rare"].to_numpy() >= 0.3
    assert lower["kind"].to_pylist() == np.where(second, "rare", "frequent").tolist()
    assert lower["kind_prob_rare"].equals(plain["kind_prob_rare"])
    assert lower["kind"].to_pylist() != plain["kind"].to_pylist()
    query = "SELECT * FROM noisy WHERE id >= 600 TO EVALUATE kinds"
    truth = workshop.rows("SELECT kind FROM noisy WHERE id >= 600 ORDER BY id")["kind"].to_numpy() == "rare"
    [figures] = workshop.rows(f"{query} WITH evaluate.threshold = 0.3").to_pylist()
    assert figures["recall"] == pytest.approx(second[truth].mean())
    assert figures["accuracy"] == pytest.approx((second == truth).mean())
    report = f"evaluate.report = confusion_matrix, evaluate.num_workers = {workers}"
    found = workshop.rows(f"{query} WITH evaluate.threshold = 0.3, {report}").to_pylist()
    counts = {(row["kind"], row["predicted"]): row["row_count"] for row in found}
    assert counts["rare", "rare"] == (second & truth).sum()
    assert counts["frequent", "rare"] == (second & ~truth).sum()


@pytest.mark.parametrize("verb", ["PREDICT USING costs WITH predict", "EVALUATE costs WITH evaluate"])
def test_a_threshold_of_a_number_is_an_error(workshop: Workshop, verb: str) -> None:
    with pytest.raises(
        SQLFlowError, match="a threshold needs a label of two classes, and cost has no classes"
    ) as caught:
        workshop.rows(f"SELECT * FROM noisy TO {verb}.threshold = 0.3")
    assert caught.value.span is not None


@pytest.mark.soak
@pytest.mark.parametrize("metric", ["f1", "balanced_accuracy"])
def test_a_metric_of_the_validation_rows_chooses_the_threshold(
    workshop: Workshop, metric: str, tmp_path: Path
) -> None:
    chosen = workshop.archive("kinds", tmp_path).calibration
    assert chosen is not None
    probability = chosen.thresholds[metric].probability
    found = predicted(workshop, f"predict.threshold = {metric}", "kinds")
    assert found.equals(predicted(workshop, f"predict.threshold = {probability!r}", "kinds"))


def test_predictions_use_the_threshold_and_the_temperature_of_the_training(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.run(
        "SELECT x, kind FROM noisy WHERE id < 600 TO TRAIN LinearClassifier WITH model.framework = torch, "
        "optimizer = sgd, optimizer.learning_rate = 50, epochs = 3, train.keep = last, "
        "validation.calibration = temperature, validation.threshold = f1 VALIDATE 0.3 LABEL kind INTO sure"
    )
    found = workshop.archive("sure", tmp_path).calibration
    assert found is not None
    assert found.temperature > 1.5
    assert found.log_loss[1] < found.log_loss[0]
    query = "SELECT * FROM noisy WHERE id >= 600 ORDER BY id"
    truth = workshop.rows(query)["kind"].to_numpy() == "rare"
    rows = workshop.rows(f"{query} TO PREDICT USING sure")
    scores = rows["kind_prob_rare"].to_numpy()
    second = scores >= found.thresholds["f1"].probability
    assert rows["kind"].to_pylist() == np.where(second, "rare", "frequent").tolist()
    [figures] = workshop.rows(f"{query} TO EVALUATE sure").to_pylist()
    assert figures["log_loss"] == pytest.approx(-np.log(np.where(truth, scores, 1 - scores)).mean(), rel=1e-5)
    assert figures["recall"] == pytest.approx(second[truth].mean())
    assert figures["loss"] > figures["log_loss"]  # the loss of the training is of the logits


def test_a_model_without_validation_rows_has_no_threshold_by_a_metric(workshop: Workshop) -> None:
    workshop.run(
        "SELECT x, kind FROM noisy WHERE id < 600 TO TRAIN LinearClassifier WITH model.framework = torch, epochs = 1, "
        "validation.fraction = 0 LABEL kind INTO unmeasured"
    )
    with pytest.raises(SQLFlowError) as caught:
        predicted(workshop, "predict.threshold = f1", "unmeasured")
    assert (
        caught.value.message == "unmeasured@1 has no threshold by f1: it was trained without validation rows"
    )
    assert caught.value.span is not None
