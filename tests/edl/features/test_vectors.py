"""Features of a few rows as vectors: the same numbers as the first layer of a model."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import torch

from edl import features as fc
from edl.errors import SemanticError
from edl.features.vectors import compute_vectors
from edl.frameworks.torch.layers import Concatenated

ROWS = pa.RecordBatch.from_pydict({"a": [1.0, None, 7.5], "b": ["x", "z", None], "c": ["p q", "q", ""]})
LETTERS = fc.vocabulary("b", ["x", "y"])
NUMBER = fc.standardize("a", mean=2.0, std=4.0)


def test_vectors_are_what_a_model_concatenates() -> None:
    features = fc.Features(NUMBER, fc.one_hot(LETTERS), fc.piecewise_linear("a", [0.0, 2.0, 8.0]))
    arrays = {name: torch.as_tensor(array) for name, array in features.transform(ROWS).items()}
    expected = Concatenated(features)(arrays).numpy()
    np.testing.assert_array_equal(compute_vectors(features, ROWS), expected)


def test_a_vector_that_a_model_learns_is_refused() -> None:
    with pytest.raises(SemanticError, match="that a model learns"):
        compute_vectors(fc.Features(NUMBER, fc.embedding(LETTERS, dim=2)), ROWS)
