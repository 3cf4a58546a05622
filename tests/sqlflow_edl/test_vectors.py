"""Several numbers in one cell as a feature: written and derived, from TRAIN to PREDICT, on two databases."""

from __future__ import annotations

from pathlib import Path

import pytest

import sqlflow_edl
from edl.errors import SQLFlowError

SETTINGS = "train.epoch = 20, train.batch_size = 16, optimizer.learning_rate = 0.02"
ROWS = "SELECT i, i % 7 AS a, i % 5 AS b, i % 3 AS c FROM numbers"
CELLS = f"SELECT a || ';' || b || ';' || c AS point, 3.0 * a - 2 * b + c AS worth FROM ({ROWS}) AS parts"
NUMBERS = "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 600)"


@pytest.mark.parametrize(
    ("framework", "database", "columns"),
    [
        ("keras", "duckdb:", 'COLUMN STANDARDIZE(DENSE(point, 3, ";"))'),
        ("torch", "sqlite:///{}/cells.db", ""),
    ],
)
def test_what_numbers_in_a_text_are_worth_is_learned(
    framework: str, database: str, columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with sqlflow_edl.connect(database.format(tmp_path), create=True) as session:
        *_, described, found = session.run(
            f"""CREATE TABLE cells AS {NUMBERS} {CELLS};
            SELECT * FROM cells TO TRAIN LinearRegressor WITH model.framework = {framework}, {SETTINGS}
            {columns} LABEL worth INTO m;
            DESCRIBE MODEL m;
            SELECT * FROM cells TO EVALUATE m"""
        )
        assert "vector, 3 numbers, standardised" in str(described.to_arrow().to_pylist())
        assert found.to_arrow()["rmse"][0].as_py() < 0.5
        with pytest.raises(SQLFlowError, match="column point holds '1;2', not 3 numbers"):
            list(session.run("SELECT '1;2' AS point TO PREDICT USING m"))
