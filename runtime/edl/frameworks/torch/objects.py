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


def loss(value: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss function. Raises SemanticError if there is none of that name, or it takes the labels first."""
    if isinstance(value, str):
        value = _get_named(value, _LOSSES, "loss")()
    first = next(iter(inspect.signature(value.forward if isinstance(value, nn.Module) else value).parameters))
    if first in _LABELS:
        raise SemanticError(
            f"the loss takes {first} first; PyTorch calls a loss with the outputs first",
            hint="write: def my_loss(outputs, labels):",
        )
    if not _is_plain_mean(value):
        return lambda labels, predictions: value(predictions, labels)
    by_row = copy.copy(value)
    by_row.reduction = "none"

    def per_row(labels: Tensor, predictions: Tensor) -> Tensor:
        losses: Tensor = by_row(predictions, labels)
        return losses.flatten(1).mean(1) if losses.ndim > 1 else losses

    return per_row


def takes_logits(value: Any) -> bool:
    """Return True if the loss is known to apply the sigmoid or softmax itself."""
    if isinstance(value, str):
        return issubclass(_get_named(value, _LOSSES, "loss"), _OF_LOGITS[:2])
    return value in _OF_LOGITS or isinstance(value, _OF_LOGITS[:2])


def optimizer(value: Any, rate: float | None) -> Callable[[Sequence[nn.Parameter]], torch.optim.Optimizer]:
    """Return a factory of optimizers. `rate` applies to an optimizer by name.

    Raises SemanticError if there is none of that name, or, when called, if the optimizer has other parameters.
    """
    if isinstance(value, str):
        kind, more = _get_named(value, _OPTIMIZERS, "optimizer"), {} if rate is None else {"lr": rate}
        return lambda parameters: kind(parameters, **more)
    if not isinstance(value, torch.optim.Optimizer):
        if not callable(value):
            hint = "give an object, a function of the parameters, or a name such as adam"
            raise SemanticError(f"the optimizer is {value!r}", hint=hint)
        return lambda parameters: value(parameters)

    def made(parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        moved = {id(parameter) for group in value.param_groups for parameter in group["params"]}
        if moved != {id(parameter) for parameter in parameters}:
            raise SemanticError(
                "the optimizer does not move the parameters of this model",
                hint="make it of model.parameters(), or give a function such as torch.optim.Adam",
            )
        return value

    return made


def _is_plain_mean(loss_module: Any) -> bool:
    """Return True if a loss is the mean over its rows, without class weights or an ignored class."""
    is_of_torch = (
        isinstance(loss_module, nn.Module) and type(loss_module).__module__ == "torch.nn.modules.loss"
    )
    return (
        is_of_torch
        and getattr(loss_module, "reduction", "") == "mean"
        and getattr(loss_module, "weight", None) is None
        and getattr(loss_module, "ignore_index", _IGNORED) == _IGNORED
    )


def _get_named(name: str, candidates: dict[str, Any], what: str) -> Any:
    if name.casefold() not in candidates:
        raise SemanticError(f"PyTorch has no {what} {name}", hint=did_you_mean(name, candidates))
    return candidates[name.casefold()]
