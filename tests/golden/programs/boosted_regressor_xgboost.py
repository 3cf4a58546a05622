"""BoostedTreesRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics, schedules
from edl.trees import XGBoost

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.raw("age"),
    fc.codes(fc.vocabulary("department", fc.stored(STORED / "f1.json"))),
    fc.raw("hired", part="month"),
    fc.codes(fc.bucket("height", [1.5, 1.8])),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)
WEIGHTS = fc.weights("often", mean=2.5)


def custom_model():
    return XGBoost(
        FEATURES,
        objective="reg:pseudohubererror",
        huber_slope=22500.0,
        learning_rate=0.1,
        seed=0,
    )


def learning_rate(steps):
    return schedules.cosine(steps, 0.1, over=90, end=0.1, warmup=10)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode), WEIGHTS.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # in units of the label


def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
