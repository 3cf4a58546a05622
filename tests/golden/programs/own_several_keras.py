"""nets.Heads, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.keras import checked_model, concatenated, feature_inputs, joined

import keras  # after edl.keras, which sets its backend

from nets import Heads

FEATURES = fc.Features(
    fc.standardize("age", mean=38.58, std=13.64),
    fc.one_hot(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.embedding(fc.hash_bucket("address", 1000), dim=16),
)
LABEL = fc.labels(fc.label("cost", mean=10.0, std=2.5), fc.class_label("left", [False, True]))


def custom_model():
    inputs = feature_inputs(FEATURES)
    model = checked_model(Heads(in_features=FEATURES.width))
    outputs = joined(model(concatenated(FEATURES, inputs)), LABEL)
    outputs = keras.layers.Rescaling(LABEL.std, LABEL.mean)(outputs)
    return keras.Model(inputs, outputs)


def loss_0(labels, predictions):
    return keras.losses.mean_squared_error(labels / LABEL[0].std, predictions / LABEL[0].std)


def loss_1(labels, predictions):
    return keras.losses.binary_crossentropy(labels, predictions, from_logits=True)


def loss(labels, predictions):
    losses = keras.ops.reshape(loss_0(labels[:, 0:1], predictions[:, 0:1]), (-1,))  # "cost"
    losses += keras.ops.reshape(loss_1(labels[:, 1:2], predictions[:, 1:2]), (-1,))  # "left"
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
    }


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
