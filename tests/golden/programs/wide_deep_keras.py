"""DNNLinearCombinedClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs, weighted_sum

import keras  # after edl.keras, which sets its backend

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Inputs(
    wide=fc.Features(
        fc.one_hot(fc.vocabulary("city", fc.stored(STORED / "wide_f0.json"))),
        fc.one_hot(fc.cross(["city", "team"], 1000)),
    ),
    deep=fc.Features(
        fc.standardize("age", mean=38.58, std=13.64),
        fc.embedding(fc.vocabulary("city", fc.stored(STORED / "wide_f0.json")), dim=4),
    ),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


def custom_model():
    inputs = feature_inputs(FEATURES)
    wide = weighted_sum(FEATURES["wide"], inputs, units=3)
    hidden = concatenated(FEATURES["deep"], inputs)
    for units in (100, 50):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(0.1)(hidden)
    deep = keras.layers.Dense(3)(hidden)
    outputs = wide + deep  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.001):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
