"""DNNClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

STORED = Path(__file__).parent / "vocabulary"
FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", fc.stored(STORED / "f1.json"))),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    for units in (10,):
        hidden = keras.layers.Dense(units)(hidden)
        hidden = keras.layers.BatchNormalization()(hidden)
        hidden = keras.layers.Activation("tanh")(hidden)
        hidden = keras.layers.Dropout(0.2)(hidden)
    outputs = keras.layers.Dense(3)(hidden)  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    cost = keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)
    return cost * (1 - keras.ops.exp(-cost)) ** 2.0


def optimizer(lr=0.1):
    return keras.optimizers.SGD(lr, momentum=0.9, nesterov=True)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
