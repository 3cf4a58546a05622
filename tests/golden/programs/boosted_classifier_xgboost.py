"""BoostedTreesClassifier, 5,760 training rows. Generated from job.json; edit freely, run: python model.py."""

# SELECT age, department, address, income FROM employee TO TRAIN …

from edl import features as fc
from edl import metrics
from edl.trees import XGBoost

FEATURES = fc.Features(
    fc.raw("age"),
    fc.codes(fc.vocabulary("department", ["engineering", "finance", "sales"])),
    fc.raw("hired", part="month"),
    fc.codes(fc.bucket("height", [1.5, 1.8])),
)
LABEL = fc.class_label("kind", ["a", "b", "c"])
CLASS_WEIGHTS = [1.0, 2.0, 1.5]


def custom_model():
    return XGBoost(
        FEATURES,
        objective="multi:softprob",
        num_class=3,
        learning_rate=0.1,
        max_depth=5,
        max_leaves=20,
        subsample=0.8,
        grow_policy="lossguide",
        seed=0,
        class_weights=CLASS_WEIGHTS,
    )


def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode)


def scores(outputs):
    return LABEL.scores(outputs)  # probabilities of the classes


def eval_metrics_fn():
    return {"accuracy": metrics.Accuracy(), "log_loss": metrics.LogLoss()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
