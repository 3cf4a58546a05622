"""Optimizers, clipping and schedules as a statement writes them."""

from __future__ import annotations

import pytest

from edl import spec
from edl.errors import SQLFlowError
from sqlflow_edl.analysis.settings.optimizer import steps
from sqlflow_edl.session.session import Session


def compiled(session: Session, attributes: str) -> spec.JobSpec:
    [found] = session.compile(
        f"SELECT age, income FROM people TO TRAIN DNNRegressor WITH {attributes} VALIDATE 0 LABEL income INTO m"
    )
    return found.spec


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ("schedule = constant", {"warmup_steps": 0}),
        ("schedule = cosine_decay", {"warmup_steps": 0, "end": 0.0, "decay_steps": 100}),
        (
            "schedule = linear, warmup_steps = 20, end = 0.5",
            {"warmup_steps": 20, "end": 0.5, "decay_steps": 80},
        ),
        ("schedule = step", {"warmup_steps": 0, "decay_rate": 0.1, "decay_steps": 33}),
        (
            "optimizer.schedule = exponential, schedule.decay_rate = 0.9, schedule.decay_steps = 7",
            {"warmup_steps": 0, "decay_rate": 0.9, "decay_steps": 7},
        ),
        ("schedule = cosine, max_steps = 30", {"warmup_steps": 0, "end": 0.0, "decay_steps": 30}),
        ("schedule = cosine, warmup_steps = 1000", {"warmup_steps": 1000, "end": 0.0, "decay_steps": 1}),
    ],
)
def test_a_schedule_is_written_out_with_the_steps_it_takes(
    session: Session, attributes: str, wanted: dict[str, float]
) -> None:
    """100 steps: 10 epochs over 1,200 rows."""
    found = compiled(session, f"{attributes}, epochs = 10, batch_size = 120")
    assert steps(found.training, found.rows.training) == (30 if "max_steps" in attributes else 100)
    assert found.schedule is not None
    assert found.schedule.params == wanted


def test_the_rate_of_a_dense_network_falls_by_default_and_others_stay(session: Session) -> None:
    found = compiled(session, "epochs = 2")
    assert found.optimizer.name == "adamw"
    assert found.schedule is not None
    assert found.schedule.name == "cosine"
    linear = "SELECT age, income FROM people TO TRAIN LinearRegressor WITH epochs = 2 VALIDATE 0 LABEL income INTO m"
    [other] = session.compile(linear)
    assert other.spec.optimizer.name == "adam"
    assert other.spec.schedule is None


def test_an_optimizer_that_is_written_has_its_own_defaults(session: Session) -> None:
    found = compiled(session, "optimizer = adamw").optimizer
    assert (found.params["learning_rate"], found.params["weight_decay"]) == (0.001, 0.004)


@pytest.mark.soak
def test_clipping_is_a_parameter_of_the_optimizer(session: Session) -> None:
    found = compiled(session, "optimizer = sgd, optimizer.max_grad_norm = 2").optimizer
    assert found.params == {"learning_rate": 0.01, "momentum": 0.0, "nesterov": False, "global_clipnorm": 2.0}


LINEAR = "SELECT age, income FROM people TO TRAIN"


def compiled_linear(
    session: Session, model: str, attributes: str = "", workers: int | None = None
) -> spec.JobSpec:
    session.workers = workers
    try:
        [found] = session.compile(
            f"{LINEAR} {model} {attributes and f'WITH {attributes}'} LABEL income INTO m"
        )
    finally:
        session.workers = None
    return found.spec


@pytest.mark.parametrize("model", ["LinearRegressor", "Linear"])
def test_a_linear_regression_is_solved_for_in_one_pass(session: Session, model: str) -> None:
    job = compiled_linear(session, model)
    assert job.optimizer == spec.Component("least_squares")
    assert (job.training.epochs, job.training.early_stopping, job.schedule) == (1, 0, None)


@pytest.mark.parametrize("model", ["LinearClassifier", "Linear"])
def test_linear_classes_are_solved_for_in_one_pass(session: Session, model: str) -> None:
    [found] = session.compile(f"SELECT age, income, city FROM people TO TRAIN {model} LABEL city INTO m")
    assert found.spec.optimizer == spec.Component("newton")
    assert (found.spec.training.epochs, found.spec.training.early_stopping) == (1, 0)


@pytest.mark.parametrize(
    "attributes",
    [
        "train.epoch = 3",
        "optimizer = adam",
        "loss = focal",
        "loss.label_smoothing = 0.1",
        "train.num_workers = 2",
    ],
)
def test_linear_classes_are_learned_in_steps_where_these_are_written(
    session: Session, attributes: str
) -> None:
    text = f"SELECT age, city FROM people TO TRAIN LinearClassifier WITH {attributes} LABEL city INTO m"
    [found] = session.compile(text)
    assert found.spec.optimizer.name == "adam"


def test_a_penalty_is_of_the_solution_and_not_of_the_model(session: Session) -> None:
    job = compiled_linear(session, "LinearRegressor", "model.l2 = 0.5")
    assert job.optimizer == spec.Component("least_squares", {"l2": 0.5})
    assert job.model == spec.Component("LinearRegressor")


@pytest.mark.parametrize(
    "attributes",
    [
        "train.epoch = 3",
        "train.max_steps = 30",
        "train.batch_size = 64",
        "optimizer.learning_rate = 0.01",
        "optimizer = sgd",
        "optimizer.schedule = cosine",
        "loss = huber",
        "train.precision = bfloat16",
        "train.num_workers = 2",
        "train.strategy = async",
    ],
)
def test_settings_of_steps_are_taken_as_they_are_written(session: Session, attributes: str) -> None:
    assert compiled_linear(session, "LinearRegressor", attributes).optimizer.name in ("adam", "sgd")


def test_several_workers_of_the_session_take_steps(session: Session) -> None:
    assert compiled_linear(session, "LinearRegressor", workers=2).optimizer.name == "adam"
    assert compiled_linear(session, "LinearRegressor", workers=1).optimizer.name == "least_squares"


@pytest.mark.parametrize(
    ("model", "attributes", "message"),
    [
        ("DNNRegressor", "optimizer = least_squares", "least_squares solves LinearRegressor alone"),
        ("DNNRegressor", "optimizer = newton", "newton solves LinearClassifier alone"),
        ("LinearRegressor", "optimizer = newton", "newton solves LinearClassifier alone"),
        (
            "LinearRegressor",
            "optimizer = least_squares, train.epoch = 3",
            "train.epoch is of a training in steps, and least_squares takes none",
        ),
        ("LinearRegressor", "model.l2 = 1, loss = huber", "least_squares minimises the mean squared error"),
        (
            "LinearRegressor",
            "model.l2 = 1, optimizer = sgd",
            "model.l2 is of an exact solution, and sgd takes steps",
        ),
        (
            "LinearRegressor",
            "model.l2 = 1, train.num_workers = 2",
            "model.l2 solves for the weights in one process",
        ),
    ],
)
def test_a_written_solution_that_is_impossible_is_an_error(
    session: Session, model: str, attributes: str, message: str
) -> None:
    with pytest.raises(SQLFlowError, match=message):
        compiled_linear(session, model, attributes)


def test_many_categories_are_learned_in_steps(session: Session) -> None:
    text = f"{LINEAR} LinearRegressor {{}} COLUMN INDICATOR(HASH(age, 2000)) LABEL income INTO m"
    [found] = session.compile(text.format(""))
    assert found.spec.optimizer.name == "adam"
    with pytest.raises(SQLFlowError, match="least_squares has at most 1,000 inputs, and the model has 2,00"):
        session.compile(text.format("WITH model.l2 = 1"))


def test_classes_of_many_inputs_are_learned_in_steps(session: Session) -> None:
    columns = "COLUMN INDICATOR(HASH(age, 600)) LABEL city INTO m"
    text = f"SELECT age, city FROM people TO TRAIN LinearClassifier {{}} {columns}"
    [found] = session.compile(text.format(""))
    assert found.spec.optimizer.name == "adam"
    with pytest.raises(SQLFlowError, match="newton has at most 1,000 weights, and the model has"):
        session.compile(text.format("WITH model.l2 = 1"))


@pytest.mark.parametrize("item", ["PERIODIC(age)", "EMBEDDING(HASH(age, 20), 2)"])
def test_learnt_features_need_steps(session: Session, item: str) -> None:
    [found] = session.compile(f"{LINEAR} LinearRegressor COLUMN {item} LABEL income INTO m")
    assert found.spec.optimizer.name == "adam"
