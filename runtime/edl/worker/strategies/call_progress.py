"""Minibatches of one call of a strategy that takes its steps together with other processes."""

from __future__ import annotations

import numpy as np

from edl.embeddings.model_tables import Fetched, Need, Tables
from edl.embeddings.table import Ids
from edl.frameworks.adapter import Floats, Minibatches
from edl.tasks.task import Report
from edl.worker.learning_rate import Rates
from edl.worker.strategies.base import add_minibatch


class CallProgress:
    """Minibatches of one call of `train`: the table rows that they read, their losses, and the progress of the task."""

    def __init__(self, tables: Tables, rows: Minibatches, done: Report, rates: Rates | None) -> None:
        self.rows, self.done, self.rates = rows, done, rates
        self._tables = tables
        self._keys = tables.keys(rows.features)
        self._losses: list[float] = []

    @property
    def number(self) -> int:
        """Number of minibatches that are done, and of the present one."""
        return len(self._losses)

    @property
    def is_complete(self) -> bool:
        return self.number == self.rows.steps

    @property
    def losses(self) -> Floats:
        return np.array(self._losses, np.float32)

    def need(self, number: int) -> Need | None:
        """Return what a minibatch reads, or None behind the last one."""
        start = number * self.rows.size
        return (
            self._tables.need(self._keys, start, start + self.rows.size) if number < self.rows.steps else None
        )

    def need_together(self, number: int, count: int) -> tuple[dict[str, Ids], list[Need]]:
        """Return what so many minibatches read from this one on; see `Tables.need_together`."""
        size = self.rows.size
        end = min((number + count) * size, len(self.rows.labels))
        if number >= self.rows.steps:
            return {}, []
        return self._tables.need_together(self._keys, number * size, end, size)

    def slice(self, rank: int, size: int) -> tuple[int, int]:
        """Return the rows of the present minibatch that one of `size` members takes: its first and its end."""
        start, rows = self.number * self.rows.size, self.count_rows()
        return start + rows * rank // size, start + rows * (rank + 1) // size

    def fetch(self, first: int, last: int) -> Fetched:
        """Return the table rows of the present minibatch, with the positions of its rows [first, last)."""
        start = self.number * self.rows.size
        need = self._tables.need(self._keys, start, start + self.count_rows(), slice(first, last))
        return self._tables.fetch(need, train=True)

    def count_rows(self) -> int:
        """Return the number of rows of the present minibatch."""
        return min(self.rows.size, len(self.rows.labels) - self.number * self.rows.size)

    def add(self, loss: float) -> Report:
        """Count the present minibatch as done; return the progress of the task with it."""
        self.done = self.with_present(loss)
        self._losses.append(loss)
        return self.done

    def with_present(self, loss: float) -> Report:
        """Return the progress of the task with the present minibatch."""
        return add_minibatch(self.done, self.rows.minibatch(self.number), loss)
