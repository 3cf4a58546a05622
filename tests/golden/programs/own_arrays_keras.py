"""zoo.wide, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import checked_model, feature_inputs

import keras  # after edl.keras, which sets its backend

from zoo.wide import build

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.class_label("left", [False, True])


def custom_model():
    inputs = feature_inputs(FEATURES)
    model = checked_model(build(features=FEATURES))
    outputs = model(inputs)  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    return keras.losses.binary_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.001):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"auc": metrics.AUC()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
