"""DNNRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.one_hot(fc.list_of(fc.category_id("shelf", 10))),
    fc.embedding(
        fc.list_of(fc.vocabulary("tags", fc.stored(STORED / "f1.json")), delimiter="|"),
        dim=8,
        combiner="mean",
    ),
    fc.embedding(fc.hash_bucket("city", 9), dim=4, initial="normal"),
    fc.embedding(fc.vocabulary("start", fc.stored(STORED / "f1.json")), dim=4, table=1),
    fc.embedding(fc.vocabulary("goal", fc.stored(STORED / "f1.json")), dim=4, table=1),
    fc.embedding(fc.list_of(fc.hash_bucket("words", 1000), delimiter=" ", weights=":"), dim=8),
    fc.embedding(
        fc.concat(fc.hour("seen"), fc.vocabulary("city", fc.stored(STORED / "f6_1.json"))),
        dim=4,
    ),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    for units in (10,):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
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
