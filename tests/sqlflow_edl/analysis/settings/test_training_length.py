"""Training settings: what is written, and what suits the number of rows."""

from __future__ import annotations

import pytest

from edl import spec
from sqlflow_edl.session.session import Session


def training(session: Session, attributes: str, validate: str = "VALIDATE 0.2") -> spec.Training:
    [compiled] = session.compile(
        f"SELECT age, income FROM people TO TRAIN DNNRegressor {attributes} {validate} LABEL income INTO m"
    )
    return compiled.spec.training


@pytest.mark.parametrize(
    ("attributes", "early_stopping"),
    [
        ("", 10),
        ("WITH train.epoch = 30", 0),  # who writes how long means it
        ("WITH train.max_steps = 30", 0),
        ("WITH train.epoch = 30, patience = 4", 4),
        ("WITH train.early_stopping = 0", 0),
    ],
)
def test_training_ends_early_unless_its_length_is_written(
    session: Session, attributes: str, early_stopping: int
) -> None:
    found = training(session, attributes)
    assert (found.early_stopping, found.keep) == (early_stopping, "best")


def test_the_last_weights_are_kept_where_nothing_is_held_out_or_it_is_written(session: Session) -> None:
    nothing = training(session, "", "VALIDATE 0")
    assert (nothing.early_stopping, nothing.keep) == (0, "last")
    assert training(session, "WITH train.keep = last, train.min_delta = 0.1").keep == "last"
