"""Rows of all kinds that a model may read: numbers, texts, dates, truths, and NULLs among them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

ROWS = 300
TRAIN = """
SELECT amount, city, day, is_new, kind FROM sales TO TRAIN lightgbm.gbdt
WITH train.num_boost_round = 5 LABEL kind INTO kinds;
SELECT amount, city, is_new, cost FROM sales TO TRAIN BoostedTreesRegressor
WITH train.num_boost_round = 5 VALIDATE 0.3 LABEL cost INTO costs;
"""


def sales() -> pa.Table:
    """The training rows."""
    draw = np.random.default_rng(3)
    amount = draw.normal(10, 3, ROWS)
    city = draw.choice(["Oslo", "Rome", "Kyiv"], ROWS)
    return pa.table(
        {
            "id": range(ROWS),
            "amount": pa.array(amount, mask=draw.random(ROWS) < 0.1),
            "city": pa.array(city, mask=draw.random(ROWS) < 0.1),
            "day": [dt.date(2026, 1, 1) + dt.timedelta(days=int(n)) for n in draw.integers(0, 300, ROWS)],
            "is_new": draw.random(ROWS) < 0.5,
            "kind": np.where(amount > 12, "large", np.where(city == "Oslo", "near", "far")),
            "cost": amount * 2 + draw.normal(size=ROWS),
        }
    )


def new_sales() -> pa.Table:
    """Rows that are not among them: NULLs in each column, an unseen city, numbers and days out of range."""
    day = dt.date(2026, 5, 4)
    rows = [
        (0, 9.5, "Oslo", day, True),
        (1, None, "Rome", day, False),
        (2, 12.25, None, day, True),
        (3, 0.1, "Kyiv", None, False),
        (4, 14.0, "Atlantis", day, None),
        (5, None, None, None, None),
        (6, 1e12, "", dt.date(1901, 2, 3), True),
        (7, -3.0, 'O\'Slo "x" ø', dt.date(2100, 12, 31), False),
    ]
    names = ("id", "amount", "city", "day", "is_new")
    kinds = (pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_())
    columns = [
        pa.array(list(values), kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    return pa.table(dict(zip(names, columns, strict=True)))
