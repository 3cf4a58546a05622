"""DNNRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.target_mean(
        fc.vocabulary("city", ["oslo", "rome"]),
        smoothing=10.0,
        outputs=2,
        counts=[3.0, 2.0, 0.0, 4.0, 1.0, 1.0],
        sums=[1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        folds=2,
        rows=11,
        blocks=2,
    ),
    fc.target_mean(
        fc.hash_bucket("street", 20),
        smoothing=10.0,
        counts=fc.stored(STORED / "f1_counts.json"),
        sums=fc.stored(STORED / "f1_sums.json"),
        folds=5,
        rows=105,
        scaled=False,
    ),
    fc.log_count(fc.vocabulary("city", ["oslo", "rome"]), counts=[7.0, 3.0, 1.0]),
    fc.group_mean(
        fc.vocabulary("city", ["oslo", "rome"]),
        number="age",
        difference=True,
        counts=[7.0, 3.0, 1.0],
        means=[38.0, 40.5, 20.0],
        deviation=5.25,
    ),
    fc.periodic("age", mean=38.58, std=13.64, frequencies=16),
    fc.embedding(fc.ngrams("street", 3, 4096), dim=32, combiner="mean"),
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
