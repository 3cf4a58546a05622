"""Variant of `torch_embeddings` with sparse gradients of the embeddings and SparseAdam for them."""

from __future__ import annotations

import functools

from benchmarks.baselines import main_embedded
from benchmarks.baselines.torch_embeddings import train

if __name__ == "__main__":
    main_embedded(functools.partial(train, sparse=True))
