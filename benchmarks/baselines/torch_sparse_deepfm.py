"""Variant of `torch_deepfm` with sparse gradients of the embeddings and SparseAdam for them."""

from __future__ import annotations

import functools

from benchmarks.baselines.clicks import main_clicks
from benchmarks.baselines.torch_deepfm import train

if __name__ == "__main__":
    main_clicks(functools.partial(train, sparse=True))
