"""Optional arguments of `edl.train`."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Literal, TypedDict, cast, get_args

from edl.errors import SemanticError, did_you_mean
from edl.spec.job import MOST_COUNT, Device, DurableUpdates, Precision
from edl.spec.priorities import HIGHEST, LOWEST, PRIORITIES
from edl.spec.priorities import priority as priority_of

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


class Options(TypedDict, total=False):
    """Optional arguments, under ElasticDL's names where it had one.

    `seed`: of all random numbers. `shuffle`: put rows in memory in a random order. `early_stopping`: end after so
    many epochs without a lower loss on `validation`, 0 never. `keep`: the weights of the epoch with the lowest one,
    or the last. `max_step`: limit of optimizer steps, 0 for none. `num_minibatches_per_task`: minibatches that are
    assigned together. `evaluation_steps`: measure `validation` every so many steps, in addition to each epoch's end.
    `num_ps_pods`, `distribution_strategy`, `local_steps`, `grads_to_wait`, `max_staleness`, `durable_updates`: the
    strategy, see docs/servers.md. `max_workers`: the number of workers is automatic, at most this, see docs/jobs.md.
    `embedding_min_count`, `embedding_max_rows`, `embedding_ttl_steps`: see docs/embeddings.md.
    `checkpoint_steps`, `keep_checkpoint_max`: for jobs with workers. `quota`: the folder of a shared quota of slots,
    None for that named by `EDL_QUOTA`; `priority`: the priority there, low, normal, high or a number. `task_timeout`:
    seconds without progress after which a worker is replaced, 0 derives them. `threads`: of each process; None divides
    the cores. `device`, `precision`: see docs/gpu.md. `verbose`: print progress to standard error.
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
    max_staleness: int
    max_workers: int
    durable_updates: DurableUpdates
    embedding_min_count: int
    embedding_max_rows: int
    embedding_ttl_steps: int
    checkpoint_steps: int
    keep_checkpoint_max: int
    quota: str | os.PathLike[str] | None
    priority: str | int
    task_timeout: float
    threads: int | None
    device: Device
    precision: Precision
    verbose: bool


def check_options(options: Mapping[str, Any]) -> Options:
    """Check the options and convert integers and the priority. Raises SemanticError for an unknown or invalid one."""
    checked: dict[str, Any] = {}
    for name, value in options.items():
        if name not in Options.__annotations__:
            names = [*Options.__annotations__, *_INSTEAD.values()]
            instead = f"it is called {_INSTEAD[name]} here" if name in _INSTEAD else did_you_mean(name, names)
            raise SemanticError(f"edl.train has no argument {name}", hint=instead)
        checked[name] = _CHECKS[name](name, value)
    return cast(Options, checked)


def whole(name: str, value: object, least: int | None) -> int:
    if not isinstance(value, Integral) or (least is not None and value < least):
        kind = "a whole number" if least is None else f"a whole number from {least}"
        raise SemanticError(f"{name} is {describe_value(value)}, and must be {kind}")
    return int(value)


def describe_value(value: object) -> str:
    """Return the text of a given value for an error message."""
    return f"the class {value.__qualname__}" if inspect.isclass(value) else repr(value)


def _answer(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SemanticError(f"{name} is {describe_value(value)}, and must be True or False")
    return value


def _one_of(name: str, value: object, choices: Sequence[str]) -> object:
    if value not in choices:
        raise SemanticError(
            f"{name} is {describe_value(value)}",
            hint="known: " + ", ".join(f'"{choice}"' for choice in choices),
        )
    return value


def _strategy(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SemanticError(f"{name} is {describe_value(value)}", hint="give its name")
    return value


def _threads(name: str, value: object) -> int | None:
    return None if value is None else whole(name, value, 1)


def _folder(name: str, value: object) -> object:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise SemanticError(
            f"{name} is {describe_value(value)}", hint="give the folder that edl quota has made"
        )
    return value


def _priority(name: str, value: object) -> int:
    level = int(value) if isinstance(value, Integral) else value
    number = priority_of(level) if isinstance(level, str | int) else None
    if number is None:
        hint = f"known: {', '.join(PRIORITIES)}, or a number from {LOWEST} to {HIGHEST}"
        raise SemanticError(f"{name} is {describe_value(value)}", hint=hint)
    return number


def _timeout(name: str, value: object) -> float:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or not (value == 0 or 1 <= value < math.inf)
    ):
        raise SemanticError(f"{name} is {describe_value(value)}", hint="give a number of seconds, at least 1")
    return float(value)


def _waiting_steps(name: str, value: object) -> int:
    steps = whole(name, value, 0)
    if steps > MOST_COUNT:
        raise SemanticError(f"{name} is {steps}, and steps are counted up to {MOST_COUNT}")
    return steps


_count, _positive = partial(whole, least=0), partial(whole, least=1)
_CHECKS: Mapping[str, Callable[[str, object], object]] = {
    "seed": partial(whole, least=None),
    "shuffle": _answer,
    "early_stopping": _count,
    "keep": partial(_one_of, choices=("best", "last")),
    "max_step": _count,
    "num_minibatches_per_task": _count,
    "evaluation_steps": _count,
    "num_ps_pods": _count,
    "distribution_strategy": _strategy,
    "local_steps": _positive,
    "grads_to_wait": _count,
    "max_staleness": _count,
    "max_workers": _count,
    "durable_updates": partial(_one_of, choices=get_args(DurableUpdates)),
    "embedding_min_count": _waiting_steps,
    "embedding_max_rows": _count,
    "embedding_ttl_steps": _count,
    "checkpoint_steps": _count,
    "keep_checkpoint_max": _count,
    "quota": _folder,
    "priority": _priority,
    "task_timeout": _timeout,
    "threads": _threads,
    "device": partial(_one_of, choices=get_args(Device)),
    "precision": partial(_one_of, choices=get_args(Precision)),
    "verbose": _answer,
}
