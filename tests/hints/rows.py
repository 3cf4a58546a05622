"""Small tables over which the cases of hints are."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

COUNT, DAYS = 240, 60


def rows() -> dict[str, pa.Table]:
    """t: numbers, texts, times and cells of several values; days: two series."""
    draw = np.random.default_rng(0)
    number = np.arange(COUNT)
    x = draw.normal(size=COUNT)
    start = dt.datetime(2024, 1, 1)
    y = 3 * x + draw.normal(size=COUNT)
    odd = np.where(number % 9 == 0, np.nan, np.where(number % 10 == 0, np.inf, y))
    t = pa.table(
        {
            "id": number,
            "x": x,
            "y": y,
            "n": number % 5,
            "k": [["red", "blue", "green"][i % 3] for i in number],
            "w": number % 3 + 1.0,
            "gap": pa.array(y, mask=number % 7 == 0),
            "nan": np.where(number % 9 == 0, np.nan, y),
            "odd": odd,
            "debt": -1.0 - number,
            "is_new": number % 2 == 0,
            "flag": number % 2,
            "day": [(start + dt.timedelta(days=int(i))).date() for i in number],
            "moment": [start + dt.timedelta(hours=int(i)) for i in number],
            "date_text": [f"{start + dt.timedelta(days=int(i)):%Y-%m-%d}" for i in number],
            "tags": ["red,blue" if i % 2 else "green" for i in number],
            "cells": [f"{i},{i % 4},{i % 7}" for i in number],
            "payload": [f'{{"user": {{"age": {20 + i % 40}, "city": "c{i % 3}"}}}}' for i in number],
            "page": number // 10,
        }
    )
    day = np.tile(np.arange(DAYS), 2)
    days = pa.table(
        {
            "day": [(start + dt.timedelta(days=int(i))).date() for i in day],
            "store": np.repeat([1, 2], DAYS),
            "sold": 10 + day % 7 + draw.normal(size=2 * DAYS),
        }
    )
    return {"t": t, "days": days}
