"""Forward passes over pieces of a block."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from edl.frameworks.torch.pieces import PIECE, ScoredPieces

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


def test_an_error_of_a_piece_is_raised() -> None:
    def fail(features: Any) -> np.ndarray:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ScoredPieces(2).map(FEATURES, ROWS, fail)
