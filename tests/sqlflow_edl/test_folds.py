"""Folds that fit the rows: metrics of rows of new groups, of later rows, and of copies, by every kind of model."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl.models.archive import read_archive
from edl.spec import FoldValues
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import fill

ROWS, PATIENTS = 400, 40
draw = np.random.default_rng(3)
PATIENT = np.repeat(np.arange(PATIENTS), ROWS // PATIENTS)
PULSE = draw.uniform(50, 90, PATIENTS).round(3)[PATIENT]  # the same in each row of a patient
COST = draw.normal(0, 10, PATIENTS)[PATIENT] + draw.normal(0, 1, ROWS)
LEVEL = np.cumsum(draw.normal(0.4, 1, ROWS))  # it drifts
VISITS = pa.table(
    {
        "patient": [f"p{number}" for number in PATIENT],
        "pulse": PULSE,
        "visited": [dt.date(2024, 1, 1) + dt.timedelta(days=int(day)) for day in range(ROWS)],
        "cost": COST,
        "level": LEVEL,
        "is_dear": COST > 0,
    }
)
TREES = "TO TRAIN BoostedTreesRegressor"
FIVE = "validation.folds = 5"
SHORT = f"{FIVE}, auto.models = lightgbm, auto.trials = 2, auto.max_members = 1"
# By its own bias alone, a network or a linear model is to remember patients as trees do: each is a category of it.
MODELS = {
    "trees": (TREES, f"{FIVE}, train.num_boost_round = 40", ""),
    "network": (
        "TO TRAIN DNNRegressor",
        f"{FIVE}, train.epoch = 25, train.batch_size = 16",
        "COLUMN patient",
    ),
    "linear": (
        "TO TRAIN LinearRegressor",
        f"{FIVE}, train.epoch = 25, train.batch_size = 16",
        "COLUMN patient",
    ),
    "short form": ("", SHORT, ""),
}
EVERY = [
    "trees",
    *(pytest.param(name, marks=pytest.mark.soak) for name in ("network", "linear", "short form")),
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("folds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/visits.duckdb", create=True) as opened:
            fill(opened, "visits", VISITS)
            yield opened


def train(session: Session, kind: str, columns: str, label: str, split: str, more: str = "") -> Result:
    model, attributes, used = MODELS[kind]
    [result] = session.run(
        f"SELECT {columns}, {label} FROM visits {model} {used} LABEL {label} WITH {attributes}, {split}{more} INTO m"
    )
    return result


@pytest.mark.parametrize("kind", EVERY)
def test_folds_of_groups_measure_rows_of_groups_that_no_training_has_seen(
    session: Session, kind: str
) -> None:
    at_random = train(session, kind, "patient, pulse", "cost", "validation.split = random").figures
    by_group = train(
        session, kind, "patient, pulse", "cost", "validation.split = group, validation.column = patient"
    ).figures
    assert at_random is not None
    assert by_group is not None
    assert float(at_random["r2"] or 0) > 0.6, "it knows each patient"
    assert float(by_group["r2"] or 0) < 0.2, "it says nothing of a new one"


@pytest.mark.parametrize("kind", ["trees", pytest.param("short form", marks=pytest.mark.soak)])
def test_folds_by_time_measure_rows_that_are_later_than_all_of_a_training(
    session: Session, kind: str, tmp_path: Path
) -> None:
    at_random = train(session, kind, "visited", "level", "validation.split = random").figures
    by_time = train(session, kind, "visited", "level", "validation.split = time", ", validation.gap = 14")
    assert at_random is not None
    assert by_time.figures is not None
    assert float(by_time.figures["rmse"] or 0) > 3 * float(at_random["rmse"] or 0)
    assert by_time.measured_on.startswith("333 validation rows in 5 folds by visited: ")
    assert "the earliest first; mean" in by_time.measured_on
    [trial] = (trial for trial in by_time.trials if trial.weight)
    assert trial.refit, "the model is trained on all rows"
    session.registry.load("m", tmp_path / "model.zip")
    measured = read_archive(tmp_path / "model.zip").fold_values
    assert measured == FoldValues("rmse", trial.fold_values or ())
