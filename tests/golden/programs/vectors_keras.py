"""LinearRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.vector("point", mean=[24.5, 49.0, 7.0]),
    fc.vector(
        'a "b"',
        mean=fc.stored(STORED / "f1_mean.json"),
        std=fc.stored(STORED / "f1_std.json"),
        delimiter="|",
    ),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    outputs = keras.layers.Rescaling(LABEL.std, LABEL.mean)(keras.layers.Dense(1)(hidden))
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    return keras.losses.mean_squared_error(labels / LABEL.std, predictions / LABEL.std)


def optimizer(lr=0.001):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # in units of the label


def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
