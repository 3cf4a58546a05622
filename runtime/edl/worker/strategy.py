"""What is done with gradients: applied here, pushed to parameter servers, reduced over a ring.

A strategy is composed with an adapter; the worker loop knows neither framework nor strategy.
"""

from __future__ import annotations

from typing import Protocol

from edl.nn.adapter import Adapter, Floats, Minibatches


class Strategy(Protocol):
    def train(self, rows: Minibatches) -> Floats:
        """A step for each minibatch, in order; their mean losses."""
        ...


class Local:
    """All steps here, many of them in one compiled call."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def train(self, rows: Minibatches) -> Floats:
        return self._adapter.train(rows)
