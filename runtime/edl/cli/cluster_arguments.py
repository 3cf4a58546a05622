"""Arguments of the `edl` command for the number of instances and their strategy."""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from edl.cli.arguments import positive
from edl.errors import SemanticError, did_you_mean
from edl.jobs.cores import available_cores
from edl.spec import Cluster
from edl.spec.job import DurableUpdates, Strategy
from edl.spec.priorities import HIGHEST, LOWEST, PRIORITIES
from edl.spec.priorities import priority as priority_of
from edl.spec.strategy import complete_settings, problems

_STRATEGIES: dict[str, Strategy] = {
    "auto": "auto", "local": "local", "allreduce": "allreduce", "async": "async", "sync": "sync",
    "allreducestrategy": "allreduce",
}  # fmt: skip
_ON_SERVERS = "parameterserverstrategy"  # async, or sync with grads_to_wait
_ANSWERS = {"true": True, "false": False}
_FLAGS = {
    "workers": "--num_workers",
    "parameter_servers": "--num_ps_pods",
    "strategy": "--distribution_strategy",
    "local_steps": "--local_steps",
    "grads_to_wait": "--grads_to_wait",
    "durable_updates": "--durable_updates",
    "max_staleness": "--max_staleness",
    "max_workers": "--num_workers",
}  # field of Cluster -> option


def add_workers(parser: argparse.ArgumentParser, kind: str) -> None:
    shared = "continue when some of them fail" if kind == "train" else "share the rows"
    text = f"run with a master and N worker processes, which {shared}"
    if kind == "train":
        text += "; auto: as many as add to the measured throughput, at most MAX (default: the cores of this machine)"
    metavar = "N|auto[:MAX]" if kind == "train" else "N"
    workers = partial(_workers, kind)
    parser.add_argument("--num_workers", type=workers, metavar=metavar, help=text)
    text = "with workers: folder of a quota whose slots jobs share, see edl quota (default: the variable EDL_QUOTA)"
    parser.add_argument("--quota", type=Path, metavar="DIR", help=text)
    text = "priority on the quota: low, normal, high, or a number, higher for more urgent (default: normal)"
    parser.add_argument("--priority", type=priority, metavar="P", help=text)
    text = "what SIGTERM does to a job: keep (default) a training, to be resumed; or cancel it"
    parser.add_argument("--on-term", "--on_term", choices=("keep", "cancel"), default="keep", help=text)
    text = "with workers: seconds without progress after which a worker is replaced (default: derived, at least 600)"
    parser.add_argument("--task_timeout", type=_timeout, metavar="SECS", help=text)


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that only `edl train` has."""
    group = parser.add_argument_group("distribution of a training")
    group.add_argument(
        "--distribution_strategy",
        metavar="NAME",
        help="local, allreduce, async, sync or auto (the default): allreduce for several workers, async with "
        "parameter servers",
    )
    group.add_argument(
        "--num_ps_pods",
        "--num_ps",
        type=positive,
        metavar="N",
        help="number of parameter servers (default: one for two workers)",
    )
    group.add_argument("--use_async", type=_answer, metavar="BOOL", help="true for async, false for sync")
    group.add_argument(
        "--local_steps",
        "--get_model_steps",
        type=positive,
        metavar="K",
        help="async: minibatches between two pushes",
    )
    group.add_argument(
        "--grads_to_wait",
        type=positive,
        metavar="N",
        help="sync: gradients per step (default: one of each worker)",
    )
    group.add_argument(
        "--max_staleness",
        type=positive,
        metavar="K",
        help="async: multiply the learning rate of a gradient that is S updates behind by K/S if S is greater than K "
        "(default: never)",
    )
    text = "true for --max_staleness 1, as in ElasticDL"
    group.add_argument("--lr_staleness_modulation", type=_answer, metavar="BOOL", help=text)
    group.add_argument(
        "--durable_updates",
        choices=get_args(DurableUpdates),
        help="async: what acknowledged updates survive: none (the default), the end of a server's process, or of its "
        "machine",
    )


def cluster(options: argparse.Namespace, in_tables: int = 0) -> Cluster:
    """Return the cluster settings of the command. Raises SemanticError if they are inconsistent.

    `in_tables`: see `edl.spec.strategy.complete_settings`.
    """
    if isinstance(options.num_workers, Automatic):
        workers, most = 0, options.num_workers.most
        if not most and getattr(options, "on", None):
            raise SemanticError(
                "--num_workers auto does not know how many workers the cluster may run",
                hint="name the most: --num_workers auto:8",
            )
        max_workers: int | msgspec.UnsetType = most or available_cores()
    else:
        workers = options.num_workers or (1 if getattr(options, "on", None) else 0)
        max_workers = msgspec.UNSET
    if options.kind != "train":
        return Cluster(
            workers=workers, priority=options.priority or 0, task_timeout=options.task_timeout or 0.0
        )
    settings = Cluster(
        workers=workers,
        parameter_servers=options.num_ps_pods or 0,
        strategy=_strategy(options),
        local_steps=options.local_steps or 1,
        grads_to_wait=options.grads_to_wait or 0,
        durable_updates=options.durable_updates or "none",
        max_staleness=options.max_staleness or int(options.lr_staleness_modulation or 0),
        priority=options.priority or 0,
        task_timeout=options.task_timeout or 0.0,
        max_workers=max_workers,
    )
    for problem in problems(settings):
        raise SemanticError(f"{_FLAGS[problem.field]}: {problem.message}", hint=problem.hint)
    return complete_settings(settings, in_tables)


def strategy_named(name: str, grads_to_wait: int) -> Strategy:
    """Return the strategy with this name of ours or ElasticDL's. Raises SemanticError if there is none."""
    if name.casefold() == _ON_SERVERS:
        return "sync" if grads_to_wait else "async"
    if name.casefold() not in _STRATEGIES:
        raise SemanticError(f"there is no strategy {name}", hint=did_you_mean(name, [*_STRATEGIES][:5]))
    return _STRATEGIES[name.casefold()]


def _strategy(options: argparse.Namespace) -> Strategy:
    name = options.distribution_strategy or "auto"
    strategy = strategy_named(name, options.grads_to_wait or 0)
    if options.use_async is None:
        return strategy
    by_flag: Strategy = "async" if options.use_async else "sync"
    if strategy not in ("auto", by_flag) and name.casefold() != _ON_SERVERS:
        raise SemanticError(
            f"--use_async selects {by_flag}, but --distribution_strategy {name}", hint="give only one of them"
        )
    return by_flag


class Automatic(NamedTuple):
    """Automatic number of workers, at most `most`; 0 is the number of cores."""

    most: int


def _workers(kind: str, text: str) -> int | Automatic:
    word, colon, most = text.partition(":")
    if word != "auto":
        return positive(text)
    if kind != "train":
        raise argparse.ArgumentTypeError(f"edl {kind} takes a number; edl train takes auto")
    return Automatic(positive(most) if colon else 0)


def priority(text: str) -> int:
    number = priority_of(text)
    if number is None:
        names = ", ".join(PRIORITIES)
        raise argparse.ArgumentTypeError(
            f"{text} is neither one of {names} nor a number from {LOWEST} to {HIGHEST}"
        )
    return number


def _timeout(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 1 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, at least 1")
    return number


def _answer(text: str) -> bool:
    if text.casefold() not in _ANSWERS:
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return _ANSWERS[text.casefold()]
