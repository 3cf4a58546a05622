"""DeepFMClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs, weighted_sum

import keras  # after edl.keras, which sets its backend

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.embedding(fc.vocabulary("city", ["oslo", "rome"]), dim=8),
    fc.embedding(fc.hash_bucket("flat", 3600), dim=8),
)
LABEL = fc.class_label("left", [False, True])


def custom_model():
    inputs = feature_inputs(FEATURES)
    first_order = weighted_sum(FEATURES, inputs)
    hidden = concatenated(FEATURES, inputs)  # the number, then the vectors
    pairs = pairwise_products(keras.layers.Reshape((2, 8))(hidden[:, 1:]))
    for units in (100, 50):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    outputs = first_order + pairs + keras.layers.Dense(1)(hidden)  # logits
    return keras.Model(inputs, outputs)


def pairwise_products(vectors):
    """Sum the inner products of all pairs of a row's vectors: (square of sum - sum of squares) / 2."""
    square_of_sum = keras.ops.square(keras.ops.sum(vectors, axis=1))
    sum_of_squares = keras.ops.sum(keras.ops.square(vectors), axis=1)
    return 0.5 * keras.ops.sum(square_of_sum - sum_of_squares, axis=1, keepdims=True)


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
