"""Relations of figures: metrics, explanations and drift, each beside another way to come to them."""

from __future__ import annotations

import re
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn import metrics

from tests.relations.comparing import Pair, Refusal, answer
from tests.relations.kinds import quoted
from tests.relations.places import DATABASES
from tests.relations.predicting import FIXTURES, TREES, table_of
from tests.relations.registry import Case, Input, Pairs, relation, training_input
from tests.relations.statements import MODELS
from tests.relations.tables import LABEL, POSITION
from tests.trained import rows as trained_rows
from tests.trained import statements


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


# Of models that are there --------------------------------------------------------------------------------------------

NUMBERS = ("cost", "arrived")
TRAINING = "sales"  # the table on which `tests.trained` trains
SINGLE = tuple(name for name in FIXTURES if name != "ensemble" and not name.endswith("several"))


def _label(model: str) -> str:
    return re.findall(r"LABEL (\w+)", statements()[model])[0]


def draw_labelled(draw: Random, shape: str, source: str, model: str) -> Input:
    """Rows of `tests.trained` with all their labels."""
    found = trained_rows({"few": 30, "many": 200}[shape], draw.randrange(2**32), training=True)
    return Input(table_of(found))


of_models = partial(
    relation, sources=DATABASES, models=SINGLE, shapes=("few", "many"), draw=draw_labelled, kind="split held"
)


def _columns(case: Case) -> list[str]:
    return [*case.place.models[case.model].model.schema.names]


def _figures(session: Any, text: str) -> Any:
    return answer(lambda: dict([*session.run(text)][-1].figures or {}))


@of_models(tolerance="doubles")
def evaluated_again(case: Case) -> Pairs:
    """EVALUATE of a model has the figures of EVALUATE of its predictions in the rows."""
    label, columns = _label(case.model), ", ".join(_columns(case))
    session = case.place.reader(case.source)
    with case.place.stored(case.table, case.source, session) as (_, name):
        query = f"SELECT {columns}, {label} FROM {name} ORDER BY id"
        first = _figures(session, f"{query} TO EVALUATE {case.model}")
        scored = f"scored_{name}"
        try:
            select = f"SELECT {columns}, {label} FROM {name}"
            for _ in session.run(f"{select} TO PREDICT {scored}.guess USING {case.model}"):
                pass
            kind = "regression" if label in NUMBERS else "classification"
            second = _figures(
                session,
                f"SELECT * FROM {scored} TO EVALUATE WITH evaluate.prediction = guess, evaluate.kind = {kind} "
                f"LABEL {label}",
            )
        finally:
            session.source.execute(f"DROP TABLE IF EXISTS {scored}")
    if isinstance(first, dict) and isinstance(second, dict):
        shared = [each for each in first if each in second and each not in ("loss", "log_loss", "auc")]
        first, second = ({each: found[each] for each in shared} for found in (first, second))
    yield Pair(first, second)


@of_models(tolerance="doubles")
def evaluated_in_any_order(case: Case) -> Pairs:
    """EVALUATE of rows in another order has the same figures."""
    label, columns = _label(case.model), ", ".join(_columns(case))
    session = case.place.reader(case.source)
    order = case.draw.sample(range(case.table.rows), case.table.rows)
    found = []
    for table in (case.table, case.table.take(order)):
        with case.place.stored(table, case.source, session) as (_, name):
            text = f"SELECT {columns}, {label} FROM {name} ORDER BY {POSITION} TO EVALUATE {case.model}"
            found.append(_figures(session, text))
    yield Pair(*found, tolerance="" if case.model in TREES else "singles")


@of_models(
    tolerance="singles",  # trees explain the margin of classes, which PREDICT does not show
    models=tuple(
        each for each in SINGLE if each not in TREES or (_label(each) in NUMBERS and each != "poisson")
    ),
)
def explanations_add_up(case: Case) -> Pairs:
    """The base and the values of all columns add up to the prediction of a row."""
    label, columns = _label(case.model), ", ".join(_columns(case))
    session = case.place.reader(case.source)
    with case.place.stored(case.table.take(range(min(30, case.table.rows))), case.source, session) as (
        _,
        name,
    ):
        text = (
            f"SELECT {columns} FROM {name} ORDER BY id TO EXPLAIN {case.model} "
            "WITH explain.level = rows, explain.samples = 4"
        )
        found = answer(lambda: [*session.run(text)][-1].to_arrow())
        if isinstance(found, Refusal):
            yield Pair(found, "explanations")
            return
        parts = [each for each in found.schema.names if each == f"{label}_base" or each.endswith("_shap")]
        total = np.sum([found[each].to_numpy() for each in parts], axis=0)
        shown = _shown_output(found, label)
        yield Pair(shown, total, what=f"{len(parts) - 1} columns")


def _shown_output(found: pa.Table, label: str) -> np.ndarray:
    """The number that is explained: the label, or the probability of the second of two or of the predicted class."""
    if label in NUMBERS:
        output: np.ndarray = found[label].to_numpy()
        return output
    probability: np.ndarray = found[f"{label}_confidence"].to_numpy()
    if label == "is_large":  # of the class that is predicted, but the second one is explained
        return np.where(np.array(found[label].to_pylist(), bool), probability, 1 - probability)
    return probability


@relation(sources=("duckdb",), models=SINGLE, shapes=("few",), draw=draw_labelled)
def no_drift_of_training_rows(case: Case) -> Pairs:
    """The rows on which a model was trained have not drifted, in any order."""
    columns = ", ".join(case.draw.sample(_columns(case), len(_columns(case))))
    session = case.place.models.session
    text = f"SELECT {columns} FROM {TRAINING} TO PREDICT USING {case.model} WITH predict.report = drift"
    found = answer(lambda: [*session.run(text)][-1].to_arrow())
    verdicts = (
        {*found["verdict"].to_pylist()} - {"stable", "unknown"} if isinstance(found, pa.Table) else found
    )
    yield Pair(set(), verdicts)
