"""Which digit an image of 8 x 8 pixels shows: a convolutional network in Keras, on records."""

import keras

from edl import features as fc
from edl import metrics

from .records import images_and_digits, probabilities

LABEL = fc.class_label("digit", range(10))  # names what is predicted, and its classes


def custom_model(filters=16, units=64):
    return keras.Sequential(
        [
            keras.layers.Input((8, 8, 1)),
            keras.layers.Conv2D(filters, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(10),  # logits
        ]
    )


def loss(labels, predictions):
    return keras.losses.sparse_categorical_crossentropy(labels, predictions, from_logits=True)


def optimizer(lr=0.003):
    return keras.optimizers.Adam(lr)


def feed(batch, mode):
    images, digits = images_and_digits(batch)
    return images[..., None], None if mode == "predict" else digits


def scores(outputs):
    return probabilities(outputs)


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}
