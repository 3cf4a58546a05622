"""Relations of figures: metrics, explanations and drift, each beside another way to come to them."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
from sklearn import metrics

from tests.relations.comparing import Pair, answer
from tests.relations.kinds import quoted
from tests.relations.places import DATABASES
from tests.relations.registry import Case, Input, Pairs, relation, training_input
from tests.relations.statements import MODELS, NUMBERS
from tests.relations.tables import LABEL, POSITION


def _label_input(draw: Random, shape: str, source: str, model: str) -> Input:
    """Like all inputs of trainings, also with labels whose size exceeds their differences by far."""
    labels = ("number", "large") if MODELS[model].regresses else MODELS[model].labels
    return training_input(labels=labels)(draw, shape, source, model)


@relation("split held", tolerance="singles", trains=True, sources=DATABASES, draw=_label_input)
def evaluated(case: Case) -> Pairs:
    """EVALUATE gives the metrics of scikit-learn, in doubles, from the predictions and the label in the table."""
    with case.place.stored(case.table, case.source) as (session, name):
        model = f"m_{name}"
        text = case.train.text(f"SELECT * FROM {name}", model, session.dialect)
        text = text.replace(
            "SELECT *", "SELECT " + ", ".join(quoted(n, session.dialect) for n in case.table.names)
        )
        first = answer(lambda: case.place.run_training(session, text, model, keep=True))
        if not hasattr(first, "figures"):
            yield Pair(first, first)
            return
        features = ", ".join(quoted(n, session.dialect) for n in case.table.names if n != LABEL)
        [result] = session.run(
            f"SELECT {features}, {LABEL} FROM {name} ORDER BY {POSITION} TO EVALUATE {model}"
        )
        shown = {
            key: value
            for key, value in (result.figures or {}).items()
            if key in ("rmse", "mae", "r2", "accuracy")
        }
        [predicted] = session.run(
            f"SELECT {features} FROM {name} ORDER BY {POSITION} TO PREDICT USING {model}"
        )
        guesses = predicted.to_arrow()[LABEL].to_pylist()
        for _ in session.run(f"DROP MODEL {model}"):
            pass
        truth = case.table[LABEL].values
        for metric, value in shown.items():
            expected = _by_hand(metric, truth, guesses)
            if expected is not None and value is not None:
                yield Pair(expected, float(value), what=metric)


def _by_hand(metric: str, truth: Any, guesses: Any) -> float | None:
    if metric == "accuracy":
        return float(metrics.accuracy_score([str(each) for each in truth], [str(each) for each in guesses]))
    one, other = np.array(truth, np.float64), np.array(guesses, np.float64)
    if metric == "r2":
        return float(metrics.r2_score(one, other)) if len(one) > 1 and one.std() > 0 else None
    error = (
        metrics.mean_squared_error(one, other) ** 0.5
        if metric == "rmse"
        else metrics.mean_absolute_error(one, other)
    )
    return float(error)


__all__ = ["NUMBERS"]
