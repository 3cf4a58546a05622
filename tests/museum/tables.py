"""Tables from which the models of the museum are trained, and the rows that they predict.

They are drawn when the museum is begun, and are fixtures of it from then on: a new piece reads the stored ones.
"""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pyarrow as pa

from tests.trained import rows

TRAINING, FRESH = 200, 60  # rows
DAYS, AHEAD = 40, 3  # of each of two series
WORDS = np.array(["red", "blue", "green", "grey"], dtype=object)


def sales(count: int, seed: int, *, training: bool) -> pa.Table:
    """Rows of `tests.trained`, with columns of cells that hold several values, JSON texts, groups and weights."""
    table = rows(count, seed, training=training, infinite=not training)
    draw = np.random.default_rng(seed + 100)
    sizes = draw.integers(0 if training else 1, 4, count)
    tags = [list(draw.choice(WORDS, size)) for size in sizes]
    ids = [[int(each) for each in draw.integers(0, 9, size)] for size in sizes]
    missing = draw.random(count) < (0.03 if training else 0.1)
    more = {
        "title": [" ".join(draw.choice(WORDS, 3)) for _ in range(count)],
        "tags": [",".join(each) for each in tags],
        "ids": pa.array(ids, pa.list_(pa.int64())),
        "loads": [" ".join(f"{each}:{weight:.2f}" for each, weight in pairs(each, draw)) for each in ids],
        "spent": [";".join(f"{each:.3f}" for each in draw.normal(size=3)) for _ in range(count)],
        "payload": [
            json.dumps({"user": {"age": int(age), "city": str(city)}})
            for age, city in zip(draw.integers(18, 80, count), draw.choice(WORDS, count), strict=True)
        ],
        "page": pa.array(np.arange(count) // 8, pa.int64()),
        "weight": np.round(draw.random(count) + 0.5, 2),
        "is_held_out": draw.random(count) < 0.2,
    }
    for name, values in more.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        if name in ("title", "tags", "ids", "payload"):
            array = pa.array(array.to_pylist(), array.type, mask=missing)
        table = table.append_column(name, array)
    if training:
        table = table.append_column("relevance", pa.array(draw.integers(0, 4, count), pa.int64()))
    return table


def pairs(ids: list[int], draw: np.random.Generator) -> list[tuple[int, float]]:
    return [(each, float(draw.random())) for each in dict.fromkeys(ids)]


def history() -> pa.Table:
    """Two series with a week, and days after the last value of each."""
    draw = np.random.default_rng(3)
    number = np.tile(np.arange(DAYS + AHEAD), 2)
    store = np.repeat([1, 2], DAYS + AHEAD)
    sold = 10.0**store * (1 + 0.2 * (number % 7)) * draw.normal(1, 0.05, len(number))
    return pa.table(
        {
            "day": [dt.date(2024, 1, 1) + dt.timedelta(int(each)) for each in number],
            "store": store,
            "promo": draw.random(len(number)) < 0.2,
            "sold": pa.array(sold, mask=number >= DAYS),
        }
    )


TABLES = {
    "sales": lambda: sales(TRAINING, 1, training=True),
    "fresh": lambda: sales(FRESH, 2, training=False),
    "history": history,
}
