"""Forecast, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import forecasting, metrics
from edl.trees import LightGBM

SERIES = forecasting.Series(
    "income",
    time="hired",
    by=["department"],
    horizon=14,
    step="1 day",
    season=7,
    lags=1,
    windows=1,
    known=["age"],
)
FEATURES = fc.Inputs(
    features=fc.Features(
        fc.raw("forecast.step"),
        fc.raw("forecast.lag_1"),
        fc.raw("hired", part="weekday"),
        fc.raw("age"),
        fc.codes(fc.vocabulary("department", ["a", "b"])),
    ),
    scale=fc.Features(fc.raw("forecast.level"), fc.raw("forecast.scale")),
)
LABEL = fc.forecast("income", quantiles=[0.1, 0.9])


def custom_model():
    return LightGBM(FEATURES["features"], objective="regression_l1", learning_rate=0.1, seed=0)


def examples(rows, mode):
    """Return a row for each time to forecast, with what was known at its origin."""
    return SERIES.examples(rows, mode)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # in units of the label


def eval_metrics_fn():
    return {"mase": metrics.MASE(), "seasonal_naive_mase": metrics.SeasonalNaiveMASE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
