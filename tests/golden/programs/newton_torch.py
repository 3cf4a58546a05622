"""LinearClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics
from edl.torch import Concatenated, Newton

FEATURES = fc.Features(fc.standardize("age", mean=38.58, std=13.64))
LABEL = fc.class_label("kind", ["a", "b", "c"])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.output = nn.Linear(FEATURES.width, 3)  # logits

    def forward(self, features):
        return self.output(self.features(features))


def custom_model():
    return Model()


def loss(labels, predictions):
    return F.cross_entropy(predictions, labels, reduction="none")


def optimizer(parameters):
    return Newton()


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
