"""Learning rates by step, for the function `learning_rate(steps)` of a program.

    def learning_rate(steps):
        return schedules.cosine(steps, 0.001, over=2000, warmup=100)

`steps` holds numbers of optimizer steps, counted from 0, an array of any shape; the result has a rate for each. Every
schedule starts with `warmup` steps over which the rate rises linearly to `rate`; the rest counts from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Rates = npt.NDArray[np.float64]
Steps = npt.NDArray[np.integer[Any]]

# Schedules of a JobSpec: parameter -> keyword, and its default.
PARAMETERS: Mapping[str, Mapping[str, tuple[str, float | None]]] = {
    "constant": {"warmup_steps": ("warmup", 0)},
    "linear": {"decay_steps": ("over", None), "end": ("end", 0.0), "warmup_steps": ("warmup", 0)},
    "cosine": {"decay_steps": ("over", None), "end": ("end", 0.0), "warmup_steps": ("warmup", 0)},
    "coslog": {"decay_steps": ("over", None), "cycles": ("cycles", 4), "warmup_steps": ("warmup", 0)},
    "exponential": {
        "decay_rate": ("factor", None),
        "decay_steps": ("every", None),
        "warmup_steps": ("warmup", 0),
    },
    "step": {"decay_rate": ("factor", None), "decay_steps": ("every", None), "warmup_steps": ("warmup", 0)},
}


def constant(steps: Steps, rate: float, *, warmup: int = 0) -> Rates:
    """Keep the rate constant."""
    return _warm_up(steps, warmup, lambda after: np.full(after.shape, rate))


def linear(steps: Steps, rate: float, *, over: int, end: float = 0.0, warmup: int = 0) -> Rates:
    """Decrease linearly over `over` steps to `end` times the rate, then stay there."""
    return _warm_up(steps, warmup, lambda after: rate * (1 - (1 - end) * _share(after, over)))


def cosine(steps: Steps, rate: float, *, over: int, end: float = 0.0, warmup: int = 0) -> Rates:
    """Decrease along half a cosine over `over` steps to `end` times the rate (Loshchilov and Hutter, 2017)."""

    def fall(after: Rates) -> Rates:
        wave: Rates = (1 + np.cos(np.pi * _share(after, over))) / 2
        return rate * (end + (1 - end) * wave)

    return _warm_up(steps, warmup, fall)


def coslog(steps: Steps, rate: float, *, over: int, cycles: int = 4, warmup: int = 0) -> Rates:
    """Rise from 0 and fall to 0 in cosine waves over `over` steps, each twice as long as the one before.

    Source: Holzmüller, Grinsztajn and Steinwart, 2024.
    """

    def wave(after: Rates) -> Rates:
        # The first step has a rate, too.
        phase: Rates = np.log2(1 + (2**cycles - 1) * _share(after + 1, over + 1))
        return rate * (1 - np.cos(2 * np.pi * phase)) / 2

    return _warm_up(steps, warmup, wave)


def exponential(steps: Steps, rate: float, *, factor: float, every: int, warmup: int = 0) -> Rates:
    """Decrease continuously, by `factor` over `every` steps."""
    return _warm_up(steps, warmup, lambda after: rate * factor ** (after / every))


def step(steps: Steps, rate: float, *, factor: float, every: int, warmup: int = 0) -> Rates:
    """Multiply by `factor` after every `every` steps."""
    return _warm_up(steps, warmup, lambda after: rate * factor ** (after // every))


def get_schedule(name: str, params: Mapping[str, Any], rate: float) -> Callable[[Steps], Rates]:
    """Return the schedule that a JobSpec names, with its parameters."""
    keywords = {keyword: params[parameter] for parameter, (keyword, _) in PARAMETERS[name].items()}
    return lambda steps: _SCHEDULES[name](steps, rate, **keywords)


_SCHEDULES: Mapping[str, Callable[..., Rates]] = {
    "constant": constant,
    "linear": linear,
    "cosine": cosine,
    "coslog": coslog,
    "exponential": exponential,
    "step": step,
}


def _share(after: Rates, over: int) -> Rates:
    """Return the completed fraction of `over` steps, at most 1."""
    return np.minimum(after / over, 1.0)


def _warm_up(steps: Steps, warmup: int, rates: Callable[[Rates], Rates]) -> Rates:
    counted = np.asarray(steps, dtype=np.float64)
    warm = np.minimum((counted + 1) / (warmup + 1), 1.0)
    return rates(np.maximum(counted - warmup, 0.0)) * warm
