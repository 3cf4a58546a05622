"""DNNRegressor, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.labels(
    fc.label("cost", mean=10.0, std=2.5),
    fc.class_label("left", [False, True]),
    fc.class_label("kind", ["a", "b", "c"]),
)


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    for units in (10,):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
    outputs = keras.layers.Rescaling(LABEL.std, LABEL.mean)(keras.layers.Dense(5)(hidden))
    return keras.Model(inputs, outputs)


def loss_0(labels, predictions):
    return keras.losses.mean_squared_error(labels / LABEL[0].std, predictions / LABEL[0].std)


def loss_1(labels, predictions):
    return keras.losses.binary_crossentropy(labels, predictions, from_logits=True)


def loss_2(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def loss(labels, predictions):
    losses = keras.ops.reshape(loss_0(labels[:, 0:1], predictions[:, 0:1]), (-1,))  # "cost"
    losses += 0.5 * keras.ops.reshape(loss_1(labels[:, 1:2], predictions[:, 1:2]), (-1,))  # "left"
    losses += 2.0 * keras.ops.reshape(loss_2(keras.ops.argmax(labels[:, 2:5], axis=1), predictions[:, 2:5]), (-1,))  # "kind"
    return losses


def optimizer(lr=0.001):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # of each label: a number, or the probabilities of its classes


def eval_metrics_fn():
    return {
        "cost.rmse": metrics.of_label(LABEL, 0, metrics.RMSE()),
        "left.auc": metrics.of_label(LABEL, 1, metrics.AUC()),
        "kind.top_k_accuracy@2": metrics.of_label(LABEL, 2, metrics.TopKAccuracy(2)),
    }


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
