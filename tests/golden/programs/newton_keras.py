"""LinearClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import Newton, concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

FEATURES = fc.Features(fc.standardize("age", mean=38.58, std=13.64))
LABEL = fc.class_label("kind", ["a", "b", "c"])


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    outputs = keras.layers.Dense(3)(hidden)  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer():
    return Newton()


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
