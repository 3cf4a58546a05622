"""Layers of generated PyTorch programs: features as one tensor, and row tables.

Submodules are called `f0`, `f1`, … by position: a column may be called `type` or `a.b`, which are no module names.
The vectors of an embedding start uniform in [-EMBEDDING_SCALE, EMBEDDING_SCALE], as in `edl.keras`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import nn

from edl.embeddings.combiners import Combiner, divisor, require_combiner
from edl.embeddings.initializers import EMBEDDING_SCALE, FREQUENCY_SCALE, Initial
from edl.embeddings.layer import EmbeddingLayer
from edl.embeddings.lookup import ListPlaces
from edl.embeddings.placement import (
    combiner_of,
    firsts,
    group_entries,
    initial_of,
    is_outside,
    is_table,
    owners,
    refuse_sequence,
)
from edl.features import NUMBERS, Entry, Features, SeveralTarget
from edl.frameworks.base import check_model
from edl.frameworks.heads import in_order

BLOCKS = "edl_row_blocks"  # where an optimizer that clips finds the rows of tables, beside its own parameters


def clipped(
    optimizer: torch.optim.Optimizer,
    *,
    clipnorm: float | None = None,
    global_clipnorm: float | None = None,
    clipvalue: float | None = None,
) -> torch.optim.Optimizer:
    """Return the optimizer, which clips the gradients before each of its steps, as Keras' arguments of these names do.

    clipnorm: the largest norm of a parameter's gradient. global_clipnorm: of all gradients together. clipvalue: the
    largest size of a number in them.
    """

    def clip(*_: object) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        parameters += getattr(optimizer, BLOCKS, [])
        if clipvalue is not None:
            nn.utils.clip_grad_value_(parameters, clipvalue)
        if clipnorm is not None:
            for parameter in parameters:
                nn.utils.clip_grad_norm_(parameter, clipnorm)
        if global_clipnorm is not None:
            nn.utils.clip_grad_norm_(parameters, global_clipnorm)

    optimizer.register_step_pre_hook(clip)
    return optimizer


def checked_model(model: Any) -> nn.Module:
    """Return what a user's class or function made. JobError: it is no torch.nn.Module."""
    check_model(model, nn.Module, "torch.nn.Module")
    module: nn.Module = model
    return module


def by_class(labels: torch.Tensor, weights: Sequence[float]) -> torch.Tensor:
    """Return the weight of each row's class, float32 in the shape of the labels: (n,) classes, or (n, 1) 0 and 1."""
    return torch.tensor(weights, device=labels.device)[labels.long()]


class Embedding(EmbeddingLayer, nn.Module):
    """Embedding layer of PyTorch."""

    def forward(self, *ids: torch.Tensor) -> torch.Tensor:
        looked_up = self.look_up(ids)
        block, places = torch.as_tensor(looked_up.block), as_tensors(looked_up.places)
        if isinstance(places, ListPlaces):
            return summed_lists(block, places, len(ids[0]), require_combiner(self.combiner, self.spec.name))
        return combine_vectors(nn.functional.embedding(places, block), self.combiner)


def as_tensors(places: Any) -> Any:
    """Places as tensors, of arrays or of tensors."""
    return (
        ListPlaces(*map(torch.as_tensor, places))
        if isinstance(places, ListPlaces)
        else torch.as_tensor(places)
    )


def summed_lists(block: torch.Tensor, listed: ListPlaces, rows: int, combiner: Combiner) -> torch.Tensor:
    """Return the rows of each list combined by their weights: (rows, dim), zeros of an empty list."""
    vectors = nn.functional.embedding(listed.places, block) * listed.weights[:, None]
    sums = block.new_zeros(rows, block.shape[1]).index_add(0, listed.rows, vectors)
    if combiner == "sum":
        return sums
    shares = listed.weights if combiner == "mean" else listed.weights.square()
    norm = block.new_zeros(rows).index_add(0, listed.rows, shares)
    norm = norm if combiner == "mean" else norm.sqrt()
    return sums / norm.masked_fill(norm == 0, 1.0)[:, None]


def combine_vectors(vectors: torch.Tensor, combiner: Combiner | None) -> torch.Tensor:
    """Return the rows of each example combined: (n, k, dim) to (n, dim)."""
    if combiner is None or vectors.ndim == 2:
        return vectors
    return vectors.sum(dim=1) * divisor(combiner, vectors.shape[1])


class Concatenated(nn.Module):
    """The arrays of `features.transform(batch)` as one tensor, float32 (rows, features.width), entry after entry."""

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.width = features.width
        for kind, group in groupby(features.entries, key=_kind):
            entries = list(group)
            if kind is _OneHot:
                self.add_module(f"{entries[0].name}_one_hot", _OneHot(entries))
                continue
            for entries_of_table in group_entries(entries):
                if is_table(entries_of_table) or kind is _Vectors:
                    self.add_module(
                        entries_of_table[0].name,
                        _Rows(entries_of_table) if is_table(entries_of_table) else _Vectors(entries_of_table),
                    )
                    continue
                for entry in entries_of_table:
                    block = _ListRows(entry, entries_of_table[0].name) if kind is _ListRows else kind(entry)
                    self.add_module(entry.name, block)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        blocks = [block(features) for block in self.children()]
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=1)


class Members(nn.Module):
    """The features for each member of an ensemble, by scales of its own: (rows, width) to (rows, members, width).

    With shared layers behind it, and `MemberOutputs` at the end, one network is an ensemble of as many (TabM, Gorishniy
    et al., 2024).
    """

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.scales = nn.Parameter(torch.randn(members, width))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden[:, None] * self.scales


class MemberOutputs(nn.Module):
    """A linear layer for each member: (rows, members, width) to (rows, members, outputs)."""

    def __init__(self, members: int, width: int, outputs: int) -> None:
        super().__init__()
        limit = width**-0.5
        self.weight = nn.Parameter(torch.empty(members, width, outputs).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.empty(members, outputs).uniform_(-limit, limit))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.einsum("rmw,mwo->rmo", hidden, self.weight) + self.bias


class WeightedSum(nn.Module):
    """A weight for each number and for each id of each category, added up: float32 (rows, units).

    What a Linear layer without bias gives on one-hot rows, without making them. Weights start at 0.
    """

    first: torch.Tensor

    def __init__(self, features: Features, units: int = 1) -> None:
        super().__init__()
        categories = [entry for entry in features.entries if entry.kind == "category"]
        self.categories = [entry.name for entry in categories]
        numbers = [entry for entry in features.entries if entry.kind in NUMBERS]
        self.blocks = nn.ModuleList(_kind(entry_of_sum)(entry_of_sum) for entry_of_sum in numbers)
        if numbers:
            self.numbers = nn.Linear(sum(entry_of_sum.width for entry_of_sum in numbers), units, bias=False)
            nn.init.zeros_(self.numbers.weight)
        if categories:
            first, total = firsts(categories)
            self.outside = is_outside(total, units)
            if self.outside:
                name = f"{self.categories[0]}_weights"
                self.ids = Embedding(name, units, "sum", initial="zeros", num_ids=total, first=first)
            else:
                self.register_buffer("first", torch.tensor(first), persistent=False)
                self.ids = nn.Embedding(total, units)
                nn.init.zeros_(self.ids.weight)
        lists = [entry for entry in features.entries if entry.kind == "list"]
        owner = owners(lists)
        self.lists = nn.ModuleList(
            _ListRows(entry_of_list, owner[entry_of_list.name], units, "weights", "zeros")
            for entry_of_list in lists
        )

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        blocks = [block(features) for block in self.blocks]
        parts = [self.numbers(torch.cat(blocks, dim=1) if len(blocks) > 1 else blocks[0])] if blocks else []
        if self.categories:
            ids = [features[name] for name in self.categories]
            parts.append(self.ids(*ids) if self.outside else self._sum_rows(torch.stack(ids, dim=1)))
        parts += [rows(features) for rows in self.lists]
        return parts[0] if len(parts) == 1 else sum(parts[1:], start=parts[0])

    def _sum_rows(self, ids: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = self.ids(ids + self.first)
        return weights.sum(dim=1)


class _Dense(nn.Module):
    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry.name

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return features[self.entry]


class _Encoded(nn.Module):
    """The piecewise-linear encodings of positions in bins."""

    columns: torch.Tensor
    first: torch.Tensor

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry.name
        columns, first = entry.encodings
        self.register_buffer("columns", torch.tensor(columns), persistent=False)
        self.register_buffer("first", torch.tensor(first), persistent=False)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return (features[self.entry].index_select(1, self.columns) - self.first).clamp(0, 1)


class _Periodic(nn.Module):
    """The periodic embeddings of numbers: (rows, entry.width)."""

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry, numbers = entry.name, len(entry.features)
        frequencies = entry.width // numbers
        limit = (2 * frequencies) ** -0.5
        self.frequencies = nn.Parameter(torch.randn(numbers, frequencies) * FREQUENCY_SCALE)
        self.weight = nn.Parameter(torch.empty(numbers, 2 * frequencies, frequencies).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.empty(numbers, frequencies).uniform_(-limit, limit))

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        angles = (2 * math.pi) * features[self.entry][:, :, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
        return (torch.einsum("rnw,nwo->rno", waves, self.weight) + self.bias).relu().flatten(1)


class _Rows(nn.Module):
    """The vectors of neighbouring categories, from one row table: (rows, their widths together)."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.entries = [entry.name for entry in entries]
        first, total = firsts(entries)
        name = f"{self.entries[0]}_embedding"
        start = initial_of(entries[0])
        self.rows = Embedding(name, entries[0].width, initial=start, num_ids=total, first=first)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        vectors: torch.Tensor = self.rows(*[features[name] for name in self.entries])
        return vectors.flatten(1)


class _ListRows(nn.Module):
    """The vectors of lists of ids, combined, from the table of the entry `owner`."""

    def __init__(
        self, entry: Entry, owner: str, width: int = 0, what: str = "embedding", initial: Initial = "uniform"
    ) -> None:
        super().__init__()
        self.entry = entry.name
        name, combiner = f"{owner}_{what}", combiner_of(entry)
        self.rows = Embedding(name, width or entry.width, combiner, initial=initial, num_ids=entry.num_ids)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        vectors: torch.Tensor = self.rows(features[self.entry])
        return vectors


class _Vectors(nn.Embedding):
    """The vectors of a category, or of several that share them: (rows, their widths together)."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._initial = initial_of(entries[0])
        super().__init__(entries[0].num_ids, entries[0].width)
        self.entries = [entry.name for entry in entries]

    def reset_parameters(self) -> None:
        if self._initial == "uniform":
            nn.init.uniform_(self.weight, -EMBEDDING_SCALE, EMBEDDING_SCALE)
        elif self._initial == "normal":
            nn.init.normal_(self.weight, 0.0, EMBEDDING_SCALE)
        else:
            nn.init.zeros_(self.weight)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        vectors = [super(_Vectors, self).forward(features[name]) for name in self.entries]
        return vectors[0] if len(vectors) == 1 else torch.cat(vectors, dim=1)


class _OneHot(nn.Module):
    """Neighbouring one-hot blocks are one scatter, which costs what one of them costs."""

    first: torch.Tensor

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.entries = [entry.name for entry in entries]
        sizes = torch.tensor([entry.num_ids for entry in entries])
        self.width = int(sizes.sum())
        self.register_buffer("first", torch.cumsum(sizes, 0) - sizes, persistent=False)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        ids = torch.stack([features[name] for name in self.entries], dim=1) + self.first
        hot = torch.zeros(ids.shape[0], self.width, device=ids.device)
        return hot.scatter_(1, ids, 1.0)


def _kind(entry: Entry) -> type[nn.Module]:
    refuse_sequence(entry)
    if entry.kind == "dense":
        return _Dense
    if entry.kind == "positions":
        return _Encoded
    if entry.kind == "periodic":
        return _Periodic
    if entry.kind == "list":
        return _ListRows
    return _Vectors if entry.feature.dim else _OneHot


def joined(outputs: Any, label: SeveralTarget) -> torch.Tensor:
    """Return the outputs of a user's model as one tensor, (rows, outputs).

    It gives that tensor, one per label in their order, or a dict of one per label by the name of its column. Raises
    JobError for another form.
    """
    if isinstance(outputs, torch.Tensor):
        return outputs
    return torch.cat([tensor.reshape(len(tensor), -1) for tensor in in_order(outputs, label.spec)], dim=1)


def rescaled(outputs: torch.Tensor, label: SeveralTarget) -> torch.Tensor:
    """Return the outputs in the units of the labels: times the deviation of each number, plus its mean."""
    std, mean = (torch.tensor(values, device=outputs.device) for values in (label.std, label.mean))
    return outputs * std + mean
