"""Row tables in PyTorch: rows in a graph, row versions of its optimizers, and models with the rows inside."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from edl.arrays import Array
from edl.embeddings.combiners import require_combiner
from edl.embeddings.lookup import ListPlaces
from edl.embeddings.model_tables import Fetched, RowGradients, Tables
from edl.embeddings.optimizers import Optimizer, name_of, refuse_dtype, refuse_option
from edl.errors import JobError
from edl.frameworks.base import dtype_of
from edl.frameworks.torch.device import array_of, own_tensor
from edl.frameworks.torch.layers import Embedding, combine_vectors

_CALLED = {"alpha": "rho", "eps": "epsilon"}  # PyTorch's name -> ours
_UNFIT = ("maximize", "dampening")


class RowBlock:
    """Rows of a minibatch as leaves of its graph. `tensor` makes a tensor of an array."""

    def __init__(
        self, fetched: Fetched, train: bool, tensor: Callable[[Array], torch.Tensor] = own_tensor
    ) -> None:
        self.places = [
            ListPlaces(*map(tensor, places)) if isinstance(places, ListPlaces) else tensor(places)
            for places in fetched.places
        ]
        self.rows = {name: tensor(block).requires_grad_(train) for name, block in fetched.blocks.items()}
        self._ids = fetched.ids

    def gradients(self) -> dict[str, RowGradients]:
        return {
            name: RowGradients(self._ids[name], torch.zeros_like(block) if block.grad is None else block.grad)
            for name, block in self.rows.items()
        }


def with_gradient(gradient: Any) -> torch.Tensor:
    """Return a tensor that has the gradient, without values of its own."""
    values = torch.as_tensor(gradient)
    tensor = torch.empty_like(values)
    tensor.grad = values
    return tensor


def gradient_of(gradient: torch.Tensor | None) -> Array:
    assert gradient is not None  # noqa: S101 - `with_gradient` has set it
    return array_of(gradient)


def row_optimizer(optimizer: torch.optim.Optimizer) -> Optimizer:
    """Return the same optimizer for rows, with the settings of its first group. Raises JobError if it has no row
    version.
    """
    name = name_of("torch", optimizer, "torch.optim.")
    group = optimizer.param_groups[0]
    unfit = [option for option in _UNFIT if group.get(option)]
    if group.get("decoupled_weight_decay") and name not in ("adamw",):
        unfit.append("decoupled_weight_decay")
    if unfit:
        raise refuse_option(unfit[0])
    return Optimizer("torch", name, {"amsgrad": 0.0, **_number_settings(group)})


def check_elsewhere(optimizer: torch.optim.Optimizer, model: nn.Module) -> None:
    """Raise JobError if parameter servers don't support the update of the model's own parameters."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.dtype != torch.float32:
            raise refuse_dtype(name, dtype_of(parameter))
    if len(optimizer.param_groups) > 1:
        raise JobError(
            f"the optimizer has {len(optimizer.param_groups)} groups of parameters; parameter servers move all alike",
            hint="give the optimizer one group, or train with workers alone",
        )
    held = {id(parameter) for parameter in optimizer.param_groups[0]["params"]}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and id(parameter) not in held:
            raise JobError(
                f"the optimizer does not move the parameter {name}; parameter servers move all",
                hint="let it not require a gradient",
            )


def _number_settings(group: Mapping[str, Any]) -> dict[str, float]:
    """Return the hyper-parameters that are numbers or booleans."""
    numbers = {
        _CALLED.get(key, key): float(value)
        for key, value in group.items()
        if key != "lr" and isinstance(value, int | float)
    }
    if "betas" in group:
        numbers["beta_1"], numbers["beta_2"] = map(float, group["betas"])
    return numbers


def with_rows_inside(model: nn.Module, tables: Tables) -> nn.Module:
    """Return a copy of the model that holds the rows of its tables. Raises JobError if the number of ids is unknown."""
    if not tables:
        return model
    copied = copy.deepcopy(model)
    vectors: dict[str, nn.Embedding] = {}  # by table
    for parent in list(copied.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, Embedding):
                table = child.spec.name
                if table not in vectors:
                    rows = torch.from_numpy(tables.whole(table))
                    vectors[table] = nn.Embedding.from_pretrained(rows)
                weighted, table_vectors = tables.listed.get(table), vectors[table]
                inside = (
                    _Inside(child, table_vectors)
                    if weighted is None
                    else _InsideLists(child, table_vectors, weighted)
                )
                setattr(parent, name, inside)
    return copied


class _Inside(nn.Module):
    """Embedding layer with the whole row table inside."""

    first: torch.Tensor

    def __init__(self, layer: Embedding, rows: nn.Embedding) -> None:
        super().__init__()
        self.rows = rows
        self.combiner = layer.combiner
        self.register_buffer("first", torch.tensor(layer.first or (0,)), persistent=False)

    def forward(self, *ids: torch.Tensor) -> torch.Tensor:
        stacked = torch.stack(ids, dim=1) if len(ids) > 1 else ids[0]
        return combine_vectors(self.rows(stacked + self.first), self.combiner)


class _InsideLists(nn.Module):
    """Embedding layer for lists of ids, as `Ragged.padded` returns them, with the whole row table inside."""

    def __init__(self, layer: Embedding, rows: nn.Embedding, weighted: bool) -> None:
        super().__init__()
        self.rows = rows
        self.combiner = require_combiner(layer.combiner, layer.spec.name)
        self.first = layer.first[0] if layer.first else 0
        self.weighted = weighted

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        ids = pairs[:, :, 0].long() if self.weighted else pairs
        held = ids >= 0
        weights = held.float() * pairs[:, :, 1].float() if self.weighted else held.float()
        vectors = self.rows(torch.where(held, ids + self.first, 0))
        sums = (vectors * weights[:, :, None]).sum(dim=1)
        if self.combiner == "sum":
            return sums
        norm = weights.sum(dim=1) if self.combiner == "mean" else weights.square().sum(dim=1).sqrt()
        return sums / torch.where(norm == 0, 1.0, norm)[:, None]
