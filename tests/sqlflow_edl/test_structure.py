"""Structure of the rows (times, groups, copies, NULL): what is reported of a model holds for the rows that come next.

A network, trees, a linear model and the short form are measured on rows that no training has seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.sessions import open_in_folder

NETWORK = "model.framework = torch, train.epoch = 20, train.batch_size = 32, optimizer.learning_rate = 0.01"
MODELS = {
    "trees": "TO TRAIN BoostedTreesRegressor WITH train.seed = 1{more} LABEL y",
    "network": f"TO TRAIN DNNRegressor WITH {NETWORK}{{more}} LABEL y",
    "linear": f"TO TRAIN LinearRegressor WITH {NETWORK}{{more}} LABEL y",
    "short form": "LABEL y WITH train.time_limit = 12{more}",
}
rng = np.random.default_rng(5)
DAYS, STAYS = np.arange(120), 12
LEVELS = np.cumsum(rng.normal(scale=5, size=len(DAYS)))
CUSTOMERS = 80
EFFECTS, AGES = rng.normal(scale=10, size=CUSTOMERS), rng.permutation(CUSTOMERS) + 20.0


def make_visits() -> pa.Table:
    """Return rows of days with levels that wander: days that are near in time are alike."""
    day = np.repeat(DAYS, STAYS)
    return pa.table(
        {
            "day": (np.datetime64("2024-01-01") + day).astype("datetime64[D]"),
            "weekday": day % 7,
            "y": LEVELS[day] + rng.normal(scale=0.5, size=len(day)),
        }
    )


def make_orders() -> pa.Table:
    """Return rows of customers, with an age that tells each of them apart, and a mean of their own."""
    customer = np.tile(np.arange(CUSTOMERS), 15)
    return pa.table(
        {
            "customer_id": customer,
            "age": AGES[customer],
            "size": rng.uniform(0, 1, len(customer)),
            "y": EFFECTS[customer] + rng.normal(scale=0.5, size=len(customer)),
        }
    )


def make_copies() -> pa.Table:
    """Return rows that occur four times each, with labels of chance."""
    a, b, y = (np.tile(rng.normal(size=300), 4) for _ in range(3))
    return pa.table({"a": a, "b": b, "y": y})


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with open_in_folder(tmp_path_factory.mktemp("structure")) as opened:
        for name, rows in (
            ("visits", make_visits()),
            ("orders", make_orders()),
            ("copies", make_copies()),
        ):
            fill(opened, name, rows)
        opened.run(
            """CREATE TABLE cities AS SELECT CASE WHEN i % 4 = 0 THEN NULL ELSE 'city ' || i % 11 END AS city,
            (i % 7)::DOUBLE AS size, CASE WHEN i % 4 = 0 THEN 100.0 ELSE 5.0 + i % 11 END AS y
            FROM range(1540) AS r (i)"""
        )
        yield opened


def train(session: Session, model: str, rows: str, more: str = "") -> Result:
    settings = f", {more}" if more else ""
    return session.run(f"{rows} {MODELS[model].format(more=settings)} INTO m")[-1]


def measure(session: Session, rows: str) -> float:
    """Return the root mean square error of the model on other rows."""
    [figures] = session.run(f"{rows} TO EVALUATE m WITH validation.metrics = rmse")[-1].to_arrow().to_pylist()
    return float(figures["rmse"])


each_model = pytest.mark.parametrize(
    "model", [name if name == "trees" else pytest.param(name, marks=pytest.mark.soak) for name in MODELS]
)


@each_model
def test_the_error_of_rows_with_a_date_is_the_error_of_later_days(session: Session, model: str) -> None:
    past, later = (f"SELECT * FROM visits WHERE day {sign} DATE '2024-04-15'" for sign in ("<", ">="))
    reported = train(session, model, past).figures["rmse"]
    assert reported is not None
    assert reported > 0.3 * measure(session, later)
    if model != "linear":  # which does not know one day from the next
        assert reported < 3 * measure(session, later)
        at_random = train(session, model, past, "validation.split = random").figures["rmse"]
        assert at_random is not None
        assert at_random < reported / 3


@each_model
def test_the_error_of_groups_is_the_error_of_other_groups(session: Session, model: str) -> None:
    known, other = (
        f"SELECT age, size, customer_id, y FROM orders WHERE customer_id {sign} 60" for sign in ("<", ">=")
    )
    split = "validation.split = group, validation.column = customer_id, validation.fraction = 0.3"
    reported = train(session, model, known, split if model != "short form" else split.rpartition(",")[0])
    error = reported.figures["rmse"]
    assert error is not None
    assert 0.5 < error / measure(session, other) < 2
    at_random = train(session, model, known)
    assert any("validation.split = group" in str(warning) for warning in at_random.warnings), (
        at_random.warnings
    )


@each_model
def test_copies_of_rows_are_not_what_a_model_is_measured_on(session: Session, model: str) -> None:
    r2 = train(session, model, "SELECT * FROM copies").figures["r2"]
    assert r2 is not None
    assert r2 < 0.2


@each_model
def test_a_copy_of_the_label_is_a_warning(session: Session, model: str) -> None:
    rows = "SELECT age, size, 2 * y + 1 AS billed, y FROM orders"
    warnings = train(session, model, rows, "validation.split = random").warnings
    assert any("billed" in str(warning) for warning in warnings), warnings


@each_model
def test_null_is_a_value_and_an_unseen_one_is_like_the_known_ones(session: Session, model: str) -> None:
    train(session, model, "SELECT * FROM cities")
    values = [*(f"'city {place}'" for place in range(11)), "NULL", "'zzz'"]
    rows = " UNION ALL ".join(
        f"SELECT {place} AS n, {value} AS city, 3.0::DOUBLE AS size" for place, value in enumerate(values)
    )
    found = session.run(f"SELECT * FROM PREDICT(m, ({rows})) ORDER BY n")[-1].to_arrow()["y"].to_pylist()
    *known, null, unseen = found
    slack = 0.0 if model == "trees" else 5.0
    assert null == pytest.approx(100, abs=6)
    assert min(known) - slack - 1e-9 <= unseen <= max(known) + slack + 1e-9
