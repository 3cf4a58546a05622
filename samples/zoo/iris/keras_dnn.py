"""The species of an iris from four lengths: a dense network in Keras, on a CSV file."""

import keras

from edl import Callback, metrics
from edl import features as fc

LABEL = fc.class_label("species", ["setosa", "versicolor", "virginica"])
FEATURES = fc.Features(
    fc.standardize("sepal_length", mean=5.84, std=0.83),
    fc.standardize("sepal_width", mean=3.06, std=0.43),
    fc.standardize("petal_length", mean=3.76, std=1.76),
    fc.standardize("petal_width", mean=1.2, std=0.76),
)


def custom_model(units=(16,)):
    inputs = keras.Input((4,))
    hidden = inputs
    for width in units:
        hidden = keras.layers.Dense(width, activation="relu")(hidden)
    return keras.Model(inputs, keras.layers.Dense(3)(hidden))


def loss(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.01):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    return FEATURES.transform(batch)["dense"], LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}


class GoodEnough(Callback):
    """Ends the training once the loss is small."""

    def on_epoch_end(self, epoch, metrics, control):
        if metrics["loss"] < 0.05:
            control.stop_training(f"the loss is {metrics['loss']:.3f}")


def callbacks():
    return [GoodEnough()]
