"""Weights of a model on servers, piece by piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl.checkpoints import GoneError
from edl.models.weights import WeightStream
from tests.edl.worker.strategies.on_servers import OneWorker, arranged, close, cluster, create, subject


@pytest.mark.variants(1)
@pytest.mark.parametrize("servers", [1, 3])
def test_rows_are_merged_by_their_ids_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: int
) -> None:
    """From the servers themselves, and from a cut of theirs."""
    monkeypatch.setattr("edl.worker.strategies.ps_export.CHUNK", 7)
    monkeypatch.setattr("edl.ps.checkpoint.manifests.CHUNK", 5)
    monkeypatch.setattr("edl.ps.checkpoint.merging.CHUNK", 5)
    model = subject(tmp_path, "torch")
    weights = create(model).get_weights()
    rng = np.random.default_rng(3)
    for name, dim in (("both", 4), ("one", 2)):
        weights[f"{name}:ids"] = np.sort(rng.choice(10_000, 100, replace=False)) - 5_000
        weights[f"{name}:rows"] = rng.normal(size=(100, dim)).astype(np.float32)
    with arranged(servers) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("async"), seed=9, start=lambda: weights)
        close(worker.weights(), weights, 0)
        worker.strategy.keep(1)
        close(worker.weights_of(1), weights, 0)
        pieces = worker.strategy.weights(0)
        assert isinstance(pieces, WeightStream)
        assert max(len(piece) for name, piece in pieces.pieces if name.endswith(":ids")) <= 7 * servers


def test_tables_without_rows_are_written(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    with arranged(2) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("async"))
        close(worker.weights(), create(model).get_weights(), 0)


def test_the_weights_of_an_epoch_that_are_gone_are_named(tmp_path: Path) -> None:
    model = subject(tmp_path, "torch")
    with arranged(2) as (_, place):
        worker = OneWorker(model, place, tmp_path, cluster("async"))
        with pytest.raises(GoneError, match="the weights of epoch 7 are gone"):
            worker.weights_of(7)
