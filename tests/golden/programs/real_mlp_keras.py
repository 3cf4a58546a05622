"""RealMLPClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics, schedules
from edl.keras import FeatureScales, NTPDense, concatenated, feature_inputs

import keras  # after edl.keras, which sets its backend

FEATURES = fc.Features(
    fc.standardize("carat", mean=0.8, std=0.5, limit=4.0),
    fc.piecewise_linear("carat", [0.25, 0.5, 1.0, 5.0]),
    fc.one_hot(fc.vocabulary("cut", ["good", "ideal"])),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = FeatureScales()(concatenated(FEATURES, inputs))
    for units in (256, 256, 256):
        hidden = NTPDense(units)(hidden)
        hidden = keras.layers.Activation("selu")(hidden)
        hidden = keras.layers.Dropout(0.15)(hidden)
    outputs = NTPDense(3)(hidden)  # logits
    return keras.Model(inputs, outputs)


def loss(labels, predictions):
    wanted = keras.ops.one_hot(labels, 3)
    return keras.losses.categorical_crossentropy(wanted, predictions, from_logits=True, label_smoothing=0.1)


def optimizer(lr=0.04):
    return keras.optimizers.AdamW(lr, beta_2=0.95, weight_decay=0.02)


def learning_rate(steps):
    return schedules.coslog(steps, 0.04, over=4000)


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
