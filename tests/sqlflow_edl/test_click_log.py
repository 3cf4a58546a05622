"""The made-up click log."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from edl.metrics import AUC
from sqlflow_edl.samples.click_log import BLOCK, ClickLog


def rows(log: ClickLog, number: int, part: int = 0) -> pa.Table:
    return pa.Table.from_batches(log.batches(number, part), log.schema)


@pytest.mark.soak
def test_the_same_seed_gives_the_same_log_and_more_rows_continue_it() -> None:
    longer, shorter = rows(ClickLog(3, 100), BLOCK + 10), rows(ClickLog(3, 100), 50)
    assert longer.num_rows == BLOCK + 10
    assert longer.slice(0, 50).equals(shorter)
    assert not rows(ClickLog(3, 100, seed=1), 50).equals(shorter)
    assert not rows(ClickLog(3, 100), 50, part=1).equals(shorter)


def test_ids_are_as_frequent_as_zipf_says() -> None:
    found = rows(ClickLog(2, 1000), 50_000)
    assert found.schema.names == ["c0", "c1", "label"]
    for name in ("c0", "c1"):
        counts = np.bincount(found.column(name).to_numpy(), minlength=1000)
        assert len(counts) == 1000
        assert 1.9 < counts[0] / counts[1] < 2.3
        assert 9 < counts[0] / counts[9] < 14


def test_pairs_of_ids_say_more_of_the_clicks_than_single_ones() -> None:
    log = ClickLog(8, 50)
    found = rows(log, 50_000)
    ids = [found.column(name).to_numpy() for name in found.schema.names[:-1]]
    single = sum(log.weights[field][each] for field, each in enumerate(ids))
    clicked = found.column("label").to_numpy()
    assert 0.2 < clicked.mean() < 0.5
    assert auc(clicked, log.log_odds(ids)) > auc(clicked, single) + 0.1


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    metric = AUC(exact=True)
    probabilities = 1 / (1 + np.exp(-scores.astype(np.float64).reshape(-1, 1)))
    state = metric.update(metric.zero(), labels.reshape(-1, 1).astype(np.float32), probabilities)
    found = metric.result(state)
    assert found is not None
    return found
