"""nets.Model, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import checked_model, concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

from nets import Model as own_model

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.label("income", mean=60000.0, std=15000.0)


def custom_model():
    inputs = feature_inputs(FEATURES)
    model = checked_model(
        own_model(
            in_features=FEATURES.width,
            out_features=1,
            units=[[16, 8], [0.5, ["a"], None]],
            activation="own",
            members="all",
            kind="x'); import os #",
        ),
    )
    outputs = model(concatenated(FEATURES, inputs))
    outputs = keras.layers.Rescaling(LABEL.std, LABEL.mean)(outputs)
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
