"""Update rules of table rows: the job's optimizer in a lazy (sparse) version.

Rows that a minibatch does not use are not updated, and their slots don't decay: with Adam or momentum this differs
from the same optimizer over a whole parameter, as `torch.optim.SparseAdam` differs from `torch.optim.Adam`. Bias
corrections count the steps of the table. Weight decay applies to the used rows. A parameter server updates whole
parameters with the same kernels, as the framework's own optimizer does.

The frameworks differ in formulas and defaults, so a rule belongs to one of them. To add an optimizer, add a kernel
in `edl.embeddings.optimizer_kernels` and a function here. Light to import: a parameter server gets an `Optimizer`
by message.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import msgspec

from edl.errors import JobError, did_you_mean

Framework = Literal["keras", "torch"]


class Optimizer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Optimizer by name, with every hyper-parameter that its rule reads; the learning rate comes with each step."""

    framework: Framework
    name: str
    params: dict[str, float] = {}


class UpdateRule(NamedTuple):
    """Update rule of rows.

    `kernel` is its name in `edl.embeddings.optimizer_kernels`. `slots` has the initial value of each slot. `constants`
    is a function of (rate, step), steps counted from 1. A used row first shrinks by the fraction `decay` times the
    rate. `penalty` is the strength of L2 regularization.
    """

    kernel: str
    slots: tuple[float, ...]
    constants: Callable[[float, int], tuple[float, ...]]
    decay: float = 0.0
    penalty: float = 0.0


def rule(optimizer: Optimizer, *, whole: bool = False) -> UpdateRule:
    """Return the optimizer's rule for rows or whole parameters. Raises JobError if it has none, or lacks a
    hyper-parameter.
    """
    makers = _MAKERS[optimizer.framework]
    if whole:
        makers = {**makers, **_WHOLE[optimizer.framework]}
    if optimizer.name not in makers:
        raise JobError(
            f"rows of a table cannot follow the optimizer {optimizer.name}",
            hint=did_you_mean(optimizer.name, makers),
        )
    params = optimizer.params
    try:
        plain = makers[optimizer.name](params)
    except KeyError as error:
        raise JobError(f"the optimizer {optimizer.name} lacks {error.args[0]}") from None
    # Keras decays by its rate for every optimizer; PyTorch only in AdamW, elsewhere weight decay is L2.
    decoupled = optimizer.framework == "keras" or optimizer.name == "adamw"
    strength = params.get("weight_decay", 0.0)
    return plain._replace(decay=strength) if decoupled else plain._replace(penalty=strength)


def names(framework: Framework) -> tuple[str, ...]:
    """Return the optimizers that have a rule."""
    return tuple(_MAKERS[framework])


def name_of(framework: Framework, optimizer: object, package: str) -> str:
    """Return the name of an optimizer of the framework's `package`. Raises JobError if it has no rule."""
    kind = type(optimizer)
    name = kind.__name__.lower()
    if not kind.__module__.startswith(package) or name not in names(framework):
        raise JobError(
            f"rows of a table cannot follow the optimizer {kind.__name__}",
            hint=f"there are {', '.join(names(framework))}",
        )
    return name


def refuse_option(option: str) -> JobError:
    return JobError(f"rows of a table cannot follow an optimizer with {option}", hint="leave it out")


def refuse_dtype(name: str, dtype: str) -> JobError:
    return JobError(
        f"the parameter {name} is {dtype}; parameter servers hold float32",
        hint="build the model in float32, or train with workers alone",
    )


Params = Mapping[str, float]


def _sgd_keras(p: Params) -> UpdateRule:
    share = p["momentum"]
    if not share:
        return _plain_sgd()
    if p["nesterov"]:
        return UpdateRule("momentum", (0.0,), lambda rate, step: (-rate, share, share, -rate))
    return UpdateRule("momentum", (0.0,), lambda rate, step: (-rate, share, 1.0, 0.0))


def _sgd_torch(p: Params) -> UpdateRule:
    share = p["momentum"]
    if not share:
        return _plain_sgd()
    if p["nesterov"]:
        return UpdateRule("momentum", (0.0,), lambda rate, step: (1.0, share, -rate * share, -rate))
    return UpdateRule("momentum", (0.0,), lambda rate, step: (1.0, share, -rate, 0.0))


def _plain_sgd() -> UpdateRule:
    return UpdateRule("sgd", (), lambda rate, step: (rate,))


def _adam(p: Params, *, late: bool = False) -> UpdateRule:
    """Return Adam (Kingma and Ba 2015). With `late`, epsilon is added after the second moment's correction, not
    before it.
    """
    one, two, epsilon = p["beta_1"], p["beta_2"], p["epsilon"]

    def constants(rate: float, step: int) -> tuple[float, ...]:
        root = (1 - two**step) ** 0.5
        added = epsilon * root if late else epsilon
        return rate * root / (1 - one**step), 1 - one, 1 - two, added

    return (
        UpdateRule("amsgrad", (0.0,) * 3, constants)
        if p["amsgrad"]
        else UpdateRule("adam", (0.0,) * 2, constants)
    )


def _adam_torch(p: Params) -> UpdateRule:
    """Return SparseAdam for rows; with AMSGrad, which that lacks, Adam."""
    return _adam(p, late=bool(p.get("amsgrad")))


def _adagrad_keras(p: Params) -> UpdateRule:
    return UpdateRule(
        "adagrad", (p["initial_accumulator_value"],), lambda rate, step: (rate, p["epsilon"], 0.0)
    )


def _adagrad_torch(p: Params) -> UpdateRule:
    def constants(rate: float, step: int) -> tuple[float, ...]:
        return rate / (1 + (step - 1) * p["lr_decay"]), 0.0, p["epsilon"]

    return UpdateRule("adagrad", (p["initial_accumulator_value"],), constants)


def _rmsprop(p: Params, *, under: bool) -> UpdateRule:
    rho, share, centered, epsilon = p["rho"], p["momentum"], p["centered"], p["epsilon"]
    epsilons = (epsilon, 0.0) if under else (0.0, epsilon)
    if not share and not centered:
        return UpdateRule("rmsprop", (0.0,), lambda rate, step: (rate, rho, 1 - rho, *epsilons))
    flag = float(bool(centered))

    def constants(rate: float, step: int) -> tuple[float, ...]:
        rates = (rate, 1.0) if under else (1.0, rate)
        return (*rates, rho, 1 - rho, share, flag, *epsilons)

    return UpdateRule("rmsprop_moving", (0.0,) * 3, constants)


def _adadelta(p: Params) -> UpdateRule:
    rho, epsilon = p["rho"], p["epsilon"]
    return UpdateRule("adadelta", (0.0, 0.0), lambda rate, step: (rate, rho, 1 - rho, epsilon))


def _adamax(p: Params, *, beside: bool) -> UpdateRule:
    one, two = p["beta_1"], p["beta_2"]
    epsilons = (p["epsilon"], 0.0) if beside else (0.0, p["epsilon"])
    return UpdateRule(
        "adamax", (0.0, 0.0), lambda rate, step: (rate / (1 - one**step), 1 - one, two, *epsilons)
    )


def _nadam(p: Params) -> UpdateRule:
    """Return Nadam (Dozat 2016); momentum_decay is the exponent's factor, 0.004 in PyTorch, 1 in Keras."""
    one, two, fade = p["beta_1"], p["beta_2"], p["momentum_decay"]

    def constants(rate: float, step: int) -> tuple[float, ...]:
        now, following = (_nadam_momentum(one, fade, number) for number in (step, step + 1))
        product = _nadam_product(one, fade, step)
        ahead = rate * following / (1 - product * following)
        return ahead, rate * (1 - now) / (1 - product), 1 - one, 1 - two, 1 - two**step, p["epsilon"]

    return UpdateRule("nadam", (0.0, 0.0), constants)


def _nadam_momentum(beta: float, fade: float, step: int) -> float:
    return beta * (1 - 0.5 * math.pow(0.96, step * fade))


@functools.lru_cache(maxsize=256)
def _nadam_product(beta: float, fade: float, step: int) -> float:
    """Return the product of the momenta of all steps so far; it is 0 after a few thousand."""
    product = 1.0
    for number in range(1, step + 1):
        product *= _nadam_momentum(beta, fade, number)
        if not product:
            break
    return product


def _ftrl(p: Params) -> UpdateRule:
    """Return FTRL (McMahan et al. 2013) as in Keras."""

    def constants(rate: float, step: int) -> tuple[float, ...]:
        l2 = p["l2_regularization_strength"] + p["beta"] / (2 * rate) if rate else 0.0
        shrinkage = p["l2_shrinkage_regularization_strength"]
        return rate, p["learning_rate_power"], p["l1_regularization_strength"], l2, shrinkage

    return UpdateRule("ftrl", (p["initial_accumulator_value"], 0.0), constants)


_MAKERS: Mapping[Framework, Mapping[str, Callable[[Params], UpdateRule]]] = {
    "keras": {
        "sgd": _sgd_keras,
        "adam": _adam,
        "adamw": _adam,
        "adagrad": _adagrad_keras,
        "rmsprop": functools.partial(_rmsprop, under=True),
        "adadelta": _adadelta,
        "adamax": functools.partial(_adamax, beside=True),
        "nadam": _nadam,
        "ftrl": _ftrl,
    },
    "torch": {
        "sgd": _sgd_torch,
        "adam": _adam_torch,
        "adamw": _adam_torch,
        "sparseadam": _adam,
        "adagrad": _adagrad_torch,
        "rmsprop": functools.partial(_rmsprop, under=False),
        "adadelta": _adadelta,
        "adamax": functools.partial(_adamax, beside=False),
        "nadam": _nadam,
    },
}
# Optimizers that update whole parameters differently from rows.
_WHOLE: Mapping[Framework, Mapping[str, Callable[[Params], UpdateRule]]] = {
    "keras": {},
    "torch": {"adam": functools.partial(_adam, late=True), "adamw": functools.partial(_adam, late=True)},
}
