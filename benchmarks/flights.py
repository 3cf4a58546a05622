"""Quality of samples/flights.sql, against scikit-learn's Ridge on one-hot of the same columns.

Both learn from the first ten months of the flights and are measured on the last two. Each round trains with a
seed of its own; the ratio is that of the root mean square errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import sqlflow_edl
from benchmarks.table import Row
from sqlflow_edl.samples import tables

PROGRAM = Path(__file__).parent.parent / "samples" / "flights.sql"
CATEGORIES = ["carrier", "origin", "dest", "weekday", "hour"]


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    url = f"duckdb:///{folder / 'flights.duckdb'}"
    with sqlflow_edl.connect(url, create=True) as session:
        for _ in tables.write(session.source):
            pass
        text = PROGRAM.read_text(encoding="utf-8")
        ours = []
        for seed in range(rounds):
            seeded = text.replace("train.epoch = 5", f"train.epoch = 5, train.seed = {seed}")
            assert seeded != text
            *_, measured = (result.to_arrow() for result in session.run(seeded))
            ours.append(measured.column("rmse")[0].as_py())
        frame = session.run("SELECT * FROM departures")[0].to_pandas()
    ridge = _ridge(frame)
    ratios = [error / ridge for error in ours]
    figure = f"RMSE {np.median(ours):.2f} min, Ridge {ridge:.2f} min"
    return [Row("flights: error on the last two months, against Ridge", figure, ratios, most=0.98)]


def _ridge(frame: Any) -> float:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in frame.columns if name not in (*CATEGORIES, "month", "arr_delay")]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), CATEGORIES),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    model = make_pipeline(columns, Ridge())
    early, late = frame[frame.month <= 10], frame[frame.month > 10]
    model.fit(early, early.arr_delay)
    return float(np.sqrt(np.mean((model.predict(late) - late.arr_delay) ** 2)))
