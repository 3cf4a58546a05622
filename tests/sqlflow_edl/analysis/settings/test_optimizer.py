"""Optimizers, clipping and schedules as a statement writes them."""

from __future__ import annotations

import pytest

from edl import spec
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
    linear = "SELECT age, income FROM people TO TRAIN LinearRegressor VALIDATE 0 LABEL income INTO m"
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
