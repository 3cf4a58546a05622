"""Synthetic click log: clicks depend on single ids, on pairs of ids, and on chance.

Every row has an id of each of several fields (the user, the page, the advertisement, …). Ids are drawn by Zipf's law,
0 the most frequent, like the ids of real logs. An id has a weight and a short vector; the log-odds of a click are a
constant, the row's weights, and the products of its vectors, pair by pair. A linear model learns the weights alone,
one with products (DeepFM) the pairs too. The same seed gives the same log for any number of rows taken at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ZIPF = 1.05  # an id's frequency falls with this power of its rank
FACTORS = 2  # length of an id's vector
PAIRED = 6  # fields with vectors for their ids, the first ones
WEIGHTS, PAIRS = 1.0, 1.6  # standard deviations of the two contributions to the log-odds
BIAS = -1.0  # log-odds of an average row
BLOCK = 65_536  # rows drawn at a time


class ClickLog:
    """Generator of a click log.

    fields: columns c0, c1, …. ids: of each field. weights: of each id, (fields, ids).
    """

    def __init__(self, fields: int = 26, ids: int = 100_000, seed: int = 0) -> None:
        self._names = [f"c{field}" for field in range(fields)]
        self._seed = seed
        random = np.random.default_rng([seed, 0])
        frequency = 1 / np.arange(1, ids + 1) ** ZIPF
        self._below = np.cumsum(frequency / frequency.sum())[:-1]
        self.weights = random.standard_normal((fields, ids), np.float32) * (WEIGHTS / fields**0.5)
        paired = min(fields, PAIRED)
        pairs = paired * (paired - 1) / 2
        scale = (PAIRS / (pairs * FACTORS) ** 0.5) ** 0.5
        self._vectors = random.standard_normal((paired, ids, FACTORS), np.float32) * np.float32(scale)

    @property
    def schema(self) -> pa.Schema:
        """Columns c0, c1, … and label, all int64."""
        return pa.schema([(name, pa.int64()) for name in (*self._names, "label")])

    def batches(self, rows: int, part: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield that many rows; a label is 0 or 1. part: each part has other rows of the same log."""
        for number, start in enumerate(range(0, rows, BLOCK)):
            random = np.random.default_rng([self._seed, 1, part, number])
            ids = [np.searchsorted(self._below, random.random(BLOCK)) for _ in self._names]
            clicked = random.random(BLOCK) < 1 / (1 + np.exp(-self.log_odds(ids)))
            batch = pa.record_batch([*ids, clicked.astype(np.int64)], schema=self.schema)
            yield batch.slice(0, min(BLOCK, rows - start))

    def log_odds(self, ids: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.float32]:
        """Return the log-odds of a click, shape (n,), for the ids of each field."""
        single = sum(weights[column_ids] for weights, column_ids in zip(self.weights, ids, strict=True))
        vectors = [table[column_ids] for table, column_ids in zip(self._vectors, ids, strict=False)]
        total = np.sum(vectors, axis=0)
        squares = np.sum([vector**2 for vector in vectors], axis=0)
        odds: npt.NDArray[np.float32] = BIAS + single + (total**2 - squares).sum(axis=1) / 2
        return odds
