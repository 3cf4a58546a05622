"""Initial values of parameters that both frameworks must draw alike."""

from __future__ import annotations

from typing import Literal

# Distribution of new rows: uniform in [-scale, scale), normal with the standard deviation scale.
Initial = Literal["zeros", "uniform", "normal"]

# An embedding's vectors start uniform in [-EMBEDDING_SCALE, EMBEDDING_SCALE]: Keras' own start. PyTorch's, a normal
# distribution of deviation 1, drowns the other features of a row until training has shrunk it.
EMBEDDING_SCALE = 0.05

# Deviation of the first frequencies of a periodic embedding of standardised numbers.
FREQUENCY_SCALE = 0.1
