"""Synchronous training on servers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.edl.worker.on_servers import OneWorker, arranged, close, cluster, create, part, subject


@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_one_worker_and_two_servers_are_local_training(tmp_path: Path, framework: str) -> None:
    model = subject(tmp_path, framework)
    local = create(model)
    expected = local.train(part(0, 200))
    with arranged(2, "sync") as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("sync"))
        found = np.concatenate([worker.train(first, first + 50) for first in range(0, 200, 50)])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        worker.strategy.flush()
        assert worker.strategy.settled(worker.strategy.mark())
        close(worker.weights(), local.get_weights(), 1e-5)
