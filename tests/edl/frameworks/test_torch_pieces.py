"""Forward passes over pieces of a block."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edl.frameworks.torch.pieces import PIECE, ScoredPieces
from edl.spec.extra_outputs import EMBEDDING
from tests.edl.frameworks.adapter_cases import create, program

ROWS = 3 * PIECE + 5
FEATURES = {"x": np.arange(ROWS, dtype=np.float32)[:, None], "ids": np.arange(ROWS)}


@pytest.mark.parametrize("threads", [1, 3])
def test_outputs_are_in_the_order_of_their_rows(threads: int) -> None:
    sizes = []

    def compute(features: Any) -> np.ndarray:
        sizes.append(len(features["x"]))
        assert len(features["ids"]) == sizes[-1]
        assert not torch.is_grad_enabled()
        return features["x"] + 1

    outputs = ScoredPieces(threads).map(FEATURES, ROWS, compute)
    np.testing.assert_array_equal(outputs, FEATURES["x"] + 1)
    assert sorted(sizes) == [5, PIECE, PIECE, PIECE]


def test_pieces_are_computed_at_the_same_time() -> None:
    together = threading.Barrier(2)

    def compute(features: Any) -> np.ndarray:
        together.wait(20)
        return np.array(features["x"])

    some = {"x": np.array(FEATURES["x"][: 2 * PIECE])}
    assert len(ScoredPieces(2).map(some, 2 * PIECE, compute)) == 2 * PIECE


def test_the_embedding_is_of_all_rows(tmp_path: Path) -> None:
    generated = dataclasses.replace(program(tmp_path, "torch"), edited=False)
    adapter: Any = create(generated)
    features = {"dense": np.linspace(-1, 1, ROWS, dtype=np.float32)[:, None]}
    outputs, extra = adapter.predict_with(features, [EMBEDDING])
    np.testing.assert_allclose(outputs, adapter.predict(features), rtol=1e-6)
    *_, kernel, bias = adapter.get_weights().values()
    np.testing.assert_allclose(extra[EMBEDDING] @ kernel.T + bias, outputs, atol=1e-5)


def test_an_error_of_a_piece_is_raised() -> None:
    def fail(features: Any) -> np.ndarray:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ScoredPieces(2).map(FEATURES, ROWS, fail)
