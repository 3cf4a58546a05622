"""PyTorch losses and optimizers of a script, as a program's functions: loss(labels, predictions),
optimizer(parameters).

PyTorch calls losses with the outputs first. Its own losses that return the overall mean are converted to one value
per row with the same mean, so that rows can be weighted.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from edl.errors import SemanticError, did_you_mean

_LOSSES: dict[str, type[nn.Module]] = {
    "mse": nn.MSELoss,
    "mae": nn.L1Loss,
    "huber": nn.HuberLoss,
    "cross_entropy": nn.CrossEntropyLoss,
    "binary_cross_entropy": nn.BCELoss,
    "binary_cross_entropy_with_logits": nn.BCEWithLogitsLoss,
    "nll": nn.NLLLoss,
}
_OF_LOGITS = (
    nn.CrossEntropyLoss,
    nn.BCEWithLogitsLoss,
    functional.cross_entropy,
    functional.binary_cross_entropy_with_logits,
)
# First parameter of a loss that takes the labels first.
_LABELS = ("labels", "label", "targets", "target", "y_true")
_IGNORED = -100  # class that PyTorch's losses ignore
_OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    name.casefold(): kind
    for name, kind in vars(torch.optim).items()
    if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer)
}


def loss(given: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss function. Raises SemanticError if there is none of that name, or it takes the labels first."""
    if isinstance(given, str):
        given = _get_named(given, _LOSSES, "loss")()
    first = next(iter(inspect.signature(given.forward if isinstance(given, nn.Module) else given).parameters))
    if first in _LABELS:
        raise SemanticError(
            f"the loss takes {first} first; PyTorch calls a loss with the outputs first",
            hint="write: def my_loss(outputs, labels):",
        )
    if not _is_plain_mean(given):
        return lambda labels, predictions: given(predictions, labels)
    each = copy.copy(given)
    each.reduction = "none"

    def per_row(labels: Tensor, predictions: Tensor) -> Tensor:
        losses: Tensor = each(predictions, labels)
        return losses.flatten(1).mean(1) if losses.ndim > 1 else losses

    return per_row


def takes_logits(given: Any) -> bool:
    """Return True if the loss is known to apply the sigmoid or softmax itself."""
    if isinstance(given, str):
        return issubclass(_get_named(given, _LOSSES, "loss"), _OF_LOGITS[:2])
    return given in _OF_LOGITS or isinstance(given, _OF_LOGITS[:2])


def optimizer(given: Any, rate: float | None) -> Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]:
    """Return a factory of optimizers. `rate` applies to an optimizer by name.

    Raises SemanticError if there is none of that name, or, when called, if the optimizer has other parameters.
    """
    if isinstance(given, str):
        kind, more = _get_named(given, _OPTIMIZERS, "optimizer"), {} if rate is None else {"lr": rate}
        return lambda parameters: kind(parameters, **more)
    if not isinstance(given, torch.optim.Optimizer):
        if not callable(given):
            hint = "give an object, a function of the parameters, or a name such as adam"
            raise SemanticError(f"the optimizer is {given!r}", hint=hint)
        return lambda parameters: given(parameters)

    def made(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        moved = {id(parameter) for group in given.param_groups for parameter in group["params"]}
        if moved != {id(parameter) for parameter in parameters}:
            raise SemanticError(
                "the optimizer does not move the parameters of this model",
                hint="make it of model.parameters(), or give a function such as torch.optim.Adam",
            )
        return given

    return made


def _is_plain_mean(given: Any) -> bool:
    """Return True if a loss is the mean over its rows, without class weights or an ignored class."""
    own = isinstance(given, nn.Module) and type(given).__module__ == "torch.nn.modules.loss"
    return (
        own
        and getattr(given, "reduction", "") == "mean"
        and getattr(given, "weight", None) is None
        and getattr(given, "ignore_index", _IGNORED) == _IGNORED
    )


def _get_named(name: str, known: dict[str, Any], what: str) -> Any:
    if name.casefold() not in known:
        raise SemanticError(f"PyTorch has no {what} {name}", hint=did_you_mean(name, known))
    return known[name.casefold()]
