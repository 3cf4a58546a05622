"""Which digit an image of 8 x 8 pixels shows: a convolutional network in PyTorch, on records."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as PyTorch writes it

from edl import features as fc
from edl import metrics

from .records import images_and_digits, probabilities

LABEL = fc.class_label("digit", range(10))  # names what is predicted, and its classes


def custom_model(filters=16, units=64):
    return nn.Sequential(
        nn.Conv2d(1, filters, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(filters * 9, units),
        nn.ReLU(),
        nn.Linear(units, 10),  # logits
    )


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.003):
    return torch.optim.Adam(parameters, lr)


def feed(batch, mode):
    images, digits = images_and_digits(batch)
    return images[:, None], None if mode == "predict" else digits


def scores(outputs):
    return probabilities(outputs)


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}
