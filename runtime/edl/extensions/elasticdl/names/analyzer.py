"""Statistics of columns from the environment (`_age_min`, `_age_vocab`), or the module's defaults."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


def get_min(feature_name: str, default_value: float) -> float:
    return float(os.environ.get(f"_{feature_name}_min", default_value))


def get_max(feature_name: str, default_value: float) -> float:
    return float(os.environ.get(f"_{feature_name}_max", default_value))


def get_avg(feature_name: str, default_value: float) -> float:
    return float(os.environ.get(f"_{feature_name}_avg", default_value))


def get_stddev(feature_name: str, default_value: float) -> float:
    return float(os.environ.get(f"_{feature_name}_stddev", default_value))


def get_distinct_count(feature_name: str, default_value: int) -> int:
    return int(os.environ.get(f"_{feature_name}_distinct_count", default_value))


def get_bucket_boundaries(feature_name: str, default_value: list[float]) -> list[float]:
    """Return the distinct boundaries in ascending order."""
    text = os.environ.get(f"_{feature_name}_boundaries")
    return default_value if text is None else sorted({float(part) for part in text.split(",")})


def get_vocabulary(feature_name: str, default_value: Any) -> Any:
    """Return the file of the vocabulary, or the default, a list."""
    return os.environ.get(f"_{feature_name}_vocab", default_value)


def declare_model_inputs(*names: str) -> Callable[[type], type]:
    """Return a decorator that writes the names of a model's inputs into its class."""

    def declare(model: type) -> type:
        model._model_inputs = list(names)  # type: ignore[attr-defined]
        return model

    return declare
