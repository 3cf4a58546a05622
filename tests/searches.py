"""Searches that take moments: a portfolio of small models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sqlflow_edl.analysis.search import local, portfolio
from sqlflow_edl.analysis.search.portfolio import Variant

ROUNDS = 25


def small() -> tuple[Variant, ...]:
    """The portfolio with fewer rounds and epochs, and its trees of LightGBM before the others."""
    found = []
    for each in portfolio.PORTFOLIO:
        length = (
            {"train.num_boost_round": ROUNDS, "train.early_stopping": 5, "optimizer.learning_rate": 0.2}
            if each.kinds[0] == "trees"
            else {"train.epochs": 2}
        )
        found.append(replace(each, attributes={**each.attributes, **length}))
    return tuple(sorted(found, key=lambda each: each.framework != "lightgbm"))


@contextmanager
def short(trials: int | None = None) -> Iterator[None]:
    """Search among small models: all of the portfolio, or the first `trials`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "further_candidates", lambda variants, most: [])
        patch.setattr(portfolio, "PORTFOLIO", small()[:trials])
        yield
