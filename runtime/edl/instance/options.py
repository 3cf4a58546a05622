"""The options of `edl.train`: what need not be said."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, TypedDict, cast

from edl.errors import SemanticError, did_you_mean

_INSTEAD = {
    "num_epochs": "epochs",
    "minibatch_size": "batch_size",
    "num_workers": "workers",
    "training_data": "dataset",
    "validation_data": "validation",
    "eval_metrics_fn": "metrics",
    "parameter_servers": "num_ps_pods",
    "strategy": "distribution_strategy",
}
_LEAST = {
    "early_stopping": 0,
    "max_step": 0,
    "num_minibatches_per_task": 0,
    "evaluation_steps": 0,
    "num_ps_pods": 0,
    "local_steps": 1,
    "grads_to_wait": 0,
    "checkpoint_steps": 0,
    "keep_checkpoint_max": 0,
}  # of the options that count something


class Options(TypedDict, total=False):
    """What need not be said, under ElasticDL's names where it had one.

    seed: of everything random. shuffle: rows in memory stand in a random order. early_stopping: end after so many
    epochs without a lower loss on `validation`, 0 never. keep: the weights of the epoch with the lowest one, or the
    last. max_step: optimizer steps, 0 no limit. num_minibatches_per_task: rows that are handed out together.
    evaluation_steps: measure `validation` after so many steps, besides at each epoch's end.
    num_ps_pods, distribution_strategy, local_steps, grads_to_wait: how workers share the work, see docs/servers.md.
    checkpoint_steps, keep_checkpoint_max: of jobs with workers. threads: of each process; None shares the cores out.
    verbose: tell of progress on standard error.
    """

    seed: int
    shuffle: bool
    early_stopping: int
    keep: Literal["best", "last"]
    max_step: int
    num_minibatches_per_task: int
    evaluation_steps: int
    num_ps_pods: int
    distribution_strategy: str
    local_steps: int
    grads_to_wait: int
    checkpoint_steps: int
    keep_checkpoint_max: int
    threads: int | None
    verbose: bool


def checked(options: Mapping[str, Any]) -> Options:
    """The options, whole numbers as int. SemanticError: one is unknown, or cannot be what it is."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in Options.__annotations__:
            known = [*Options.__annotations__, *_INSTEAD.values()]
            instead = f"it is called {_INSTEAD[name]} here" if name in _INSTEAD else did_you_mean(name, known)
            raise SemanticError(f"edl.train has no argument {name}", hint=instead)
        if name in _LEAST:
            value = whole(name, value, _LEAST[name])
        elif name == "seed":
            value = whole(name, value, None)
        elif name == "threads" and value is not None:
            value = whole(name, value, 1)
        elif name == "keep" and value not in ("best", "last"):
            raise SemanticError(f"keep is {told(value)}", hint='known: "best", "last"')
        elif name in ("shuffle", "verbose") and not isinstance(value, bool):
            raise SemanticError(f"{name} is {told(value)}, and must be True or False")
        elif name == "distribution_strategy" and not isinstance(value, str):
            raise SemanticError(f"{name} is {told(value)}", hint="give its name")
        found[name] = value
    return cast(Options, found)


def whole(name: str, value: object, least: int | None) -> int:
    if not isinstance(value, Integral) or (least is not None and value < least):
        kind = "a whole number" if least is None else f"a whole number from {least}"
        raise SemanticError(f"{name} is {told(value)}, and must be {kind}")
    return int(value)


def told(value: object) -> str:
    """What somebody gave, as an error says it."""
    return f"the class {value.__qualname__}" if inspect.isclass(value) else repr(value)
