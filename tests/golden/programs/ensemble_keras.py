"""DNNClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics, schedules
from edl.keras import concatenated, feature_inputs, member_inputs, member_outputs

import keras  # after edl.keras, which sets its backend

FEATURES = fc.Features(
    fc.piecewise_linear("carat", [0.25, 0.5, 1.0, 5.0]),
    fc.one_hot(fc.vocabulary("cut", ["good", "ideal"])),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = concatenated(FEATURES, inputs)
    hidden = member_inputs(8, hidden)  # an ensemble: (rows, 8, width)
    for units in (256, 128):
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(0.1)(hidden)
    outputs = member_outputs(hidden, 3)  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.002):
    return keras.optimizers.AdamW(lr, weight_decay=0.01)


def learning_rate(steps):
    return schedules.cosine(steps, 0.002, over=4000)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
