"""Several numbers in one cell as a feature: written and derived, from TRAIN to PREDICT, on each database."""

from __future__ import annotations

import pyarrow as pa
import pytest

from edl.errors import SQLFlowError
from tests.databases import fill
from tests.workshops import Workshop

SETTINGS = "train.epoch = 20, train.batch_size = 16, optimizer.learning_rate = 0.02"
PARTS = [(i % 7, i % 5, i % 3) for i in range(1, 601)]
CELLS = pa.table(
    {
        "point": [f"{a};{b};{c}" for a, b, c in PARTS],
        "worth": [3.0 * a - 2 * b + c for a, b, c in PARTS],
    }
)


@pytest.fixture(scope="session")
def workshop(workshop: Workshop) -> Workshop:
    """With the cells."""
    fill(workshop.session, "cells", CELLS)
    return workshop


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "columns", ["", 'COLUMN STANDARDIZE(DENSE(point, 3, ";"))'], ids=["derived", "written"]
)
def test_what_numbers_in_a_text_are_worth_is_learned(workshop: Workshop, columns: str) -> None:
    _, described, found = workshop.run(
        f"""SELECT * FROM cells TO TRAIN LinearRegressor WITH model.framework = {workshop.framework}, {SETTINGS}
        {columns} LABEL worth INTO sums;
        DESCRIBE MODEL sums;
        SELECT * FROM cells TO EVALUATE sums"""
    )
    assert "vector, 3 numbers, standardised" in str(described.to_arrow().to_pylist())
    assert found.to_arrow()["rmse"][0].as_py() < 0.5
    with pytest.raises(SQLFlowError, match="column point holds '1;2', not 3 numbers"):
        workshop.run("SELECT '1;2' AS point TO PREDICT USING sums")
