"""Ensemble, 5,760 training rows. Generated from job.json.

candidates/ holds the programs of the models that the search trains; the best become its members.
"""

# SELECT age, department, address, income FROM employee TO TRAIN …

from pathlib import Path

from edl import features as fc
from edl import metrics
from edl.ensemble import Ensemble

LABEL = fc.label("income", mean=60000.0, std=15000.0)
WEIGHTS = fc.weights("often", mean=2.5)
ENSEMBLE = Ensemble(Path(__file__).parent)


def custom_model():
    return ENSEMBLE


def feed(batch, mode):
    return ENSEMBLE.transform(batch), LABEL.transform(batch, mode), WEIGHTS.transform(batch, mode)


def scores(outputs):
    return outputs  # in units of the label


def eval_metrics_fn():
    return {"rmse": metrics.RMSE(), "mae": metrics.MAE()}


if __name__ == "__main__":
    from edl.cli.main import run_program

    run_program(__file__)
