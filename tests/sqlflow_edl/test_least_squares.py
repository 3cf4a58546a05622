"""Linear regressions from a statement: predictions of the exact solution, and of values that training did not have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill

rng = np.random.default_rng(21)
ROWS = 400


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("sqlite", "mysql", "postgres", "maxcompute")
        ),
    ],
)
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """With houses, whose price follows from area, year and city but for noise; no rows of the city e are sold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Session(databases.url(request.param), create=True) as found:
            fill(found, "houses", houses())
            yield found


def houses() -> pa.Table:
    city = rng.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1])
    area, year = rng.uniform(20, 200, ROWS), rng.integers(1900, 2020, ROWS)
    effect = np.select([city == "a", city == "b"], [10_000.0, -5_000.0], 90_000.0)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "area": area,
            "year": year,
            "city": city,
            "price": 3e6 + 2_500 * area + 150 * year + effect + rng.normal(size=ROWS) * 1e4,
        }
    )


def predict(session: Session, query: str) -> dict[int, float]:
    rows = [result.to_arrow() for result in session.run(f"{query} TO PREDICT USING costs")][-1].to_pylist()
    return {row["id"]: row["price"] for row in rows}


@pytest.mark.parametrize("framework", ["torch", pytest.param("keras", marks=pytest.mark.soak)])
def test_predictions_are_those_of_numpy_and_an_unseen_city_has_the_mean_effect(
    session: Session, framework: str
) -> None:
    train = "SELECT area, year, city, price FROM houses TO TRAIN LinearRegressor"
    for _ in session.run(f"{train} WITH model.framework = {framework} VALIDATE 0 LABEL price INTO costs"):
        pass
    rows = houses_of(session)
    cities = [np.array(rows["city"]) == name for name in "abc"]
    inputs = np.column_stack([np.ones(ROWS), rows["area"], rows["year"], *cities[:2]]).astype(float)
    labels = np.array(rows["price"])
    weights = np.linalg.lstsq(inputs, labels, rcond=None)[0]
    predicted = predict(session, "SELECT id, area, year, city FROM houses")
    np.testing.assert_allclose(
        [predicted[number] for number in rows["id"]], inputs @ weights, rtol=1e-6, atol=1e-6 * labels.std()
    )
    by_city = {
        name: predict(session, f"SELECT id, area, year, {name} AS city FROM houses WHERE id = 1")[1]
        for name in ("'a'", "'b'", "'c'", "'e'", "CASE WHEN 1 = 2 THEN 'a' END")
    }
    counts = [int(of_city.sum()) for of_city in cities]
    mean = np.average(list(by_city.values())[:3], weights=counts)
    assert list(by_city.values())[3:] == pytest.approx([mean, mean], rel=1e-6)


def houses_of(session: Session) -> dict[str, list[object]]:
    [result] = session.run("SELECT * FROM houses ORDER BY id")
    return result.to_arrow().to_pydict()
