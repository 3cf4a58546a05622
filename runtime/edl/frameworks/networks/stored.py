"""Network of the weights in an archive. PyTorch names them by modules; Keras numbers them along the layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edl.arrays import Array
from edl.embeddings.placement import firsts, group_entries, owners
from edl.errors import JobError
from edl.features import NUMBERS, Entry, SeveralTarget
from edl.frameworks.networks import real_mlp
from edl.frameworks.networks.network import (
    FeatureBlock,
    Floats,
    Layer,
    Network,
    Periodic,
    Shape,
    fold_normalisation,
    shape_of,
    split_rows,
)
from edl.spec import JobSpec, Label, SeveralLabels, source_columns

REAL_MLP = "RealMLP"
MODELS = ("DNN", "DNNLinearCombined", "Linear", REAL_MLP)  # before Classifier or Regressor
Weights = Mapping[str, Array]
_NORM = ("gamma", "beta", "moving_mean", "moving_variance")


def find_unsupported_part(spec: JobSpec) -> str:
    """Return the reason why the model is no such network, empty if it is one."""
    if spec.own is not None or spec.zoo is not None or _stem(spec) not in MODELS:
        return f"{spec.model.name} is not a built-in dense network or linear model"
    if spec.edited:
        return "its program was edited"
    return ""


def _stem(spec: JobSpec) -> str:
    return spec.model.name.removesuffix("Classifier").removesuffix("Regressor")


def large_tables(weights: Weights) -> str:
    """Return the name of a row table, empty if there is none."""
    return next((name for name in weights if ":" in name), "")


def network(spec: JobSpec, weights: Weights) -> Network:
    """Return the network. Raises JobError if it is none, or the weights belong to another program."""
    reason = find_unsupported_part(spec)
    if not reason and large_tables(weights):
        reason = (
            f"the embedding table {large_tables(weights).partition(':')[0]} is kept outside of the network"
        )
    if reason:
        raise JobError(f"the layers of the model are not known: {reason}")
    shape = shape_of(spec)
    exact = {name: np.asarray(values, dtype=np.float64) for name, values in weights.items()}
    if _stem(spec) == REAL_MLP:
        made_of = _real_mlp_of_torch if spec.framework == "torch" else _real_mlp_of_keras
    else:
        made_of = _of_torch if spec.framework == "torch" else _of_keras
    try:
        plain = made_of(shape, exact)
        _check(plain, shape)
        plain = _in_units(plain, spec.label)
    except (KeyError, IndexError, ValueError, StopIteration) as error:
        raise JobError(f"the weights do not fit the model {spec.model.name}: {error}") from error
    return plain


def _in_units(plain: Network, label: Label) -> Network:
    """Return the network with last layers for several labels in their own units; with one label it is unchanged."""
    if not label.labels:
        return plain
    target = SeveralTarget(SeveralLabels(label.labels))
    std, mean, last = np.array(target.std), np.array(target.mean), plain.output
    output = Layer(last.weight * std, last.bias * std + mean, last.activation)
    return replace(plain, output=output, wide=tuple((block, weight * std) for block, weight in plain.wide))


def _check(plain: Network, shape: Shape) -> None:
    """Raise ValueError if the weights of a layer have another shape than the JobSpec says."""
    widths = [shape.deep.width, *shape.units, shape.outputs]
    for layer, inputs, units in zip((*plain.hidden, plain.output), widths, widths[1:], strict=False):
        if layer.weight.shape[-2:] != (inputs, units) or layer.bias.shape[-1] != units:
            raise ValueError(f"a layer has the shape {layer.weight.shape}, not {(inputs, units)}")
    for block in plain.blocks:
        if block.table is not None and block.table.shape != (block.entry.num_ids, block.entry.width):
            raise ValueError(f"the vectors of {block.entry.name} have the shape {block.table.shape}")


def _is_embedding(entry: Entry) -> bool:
    return entry.kind == "category" and entry.feature.dim > 0


def _refuse_lists(entries: Sequence[Entry]) -> None:
    for entry in entries:
        if entry.kind == "list":
            names = " and ".join(source_columns(entry.feature))
            raise JobError(f"the lists of ids of column {names} have no such form")


# PyTorch ---------------------------------------------------------------------------------------------------


def _of_torch(shape: Shape, weights: Mapping[str, Floats]) -> Network:
    blocks = _torch_blocks("deep" if shape.wide is not None else "features", shape.deep.entries, weights)
    last = weights["output.weight"]
    return Network(
        blocks,
        tuple(_torch_layers(shape, weights)),
        Layer(last if last.ndim == 3 else last.T, weights["output.bias"]),
        weights["members.scales"] if shape.members > 1 else None,
        tuple(_torch_wide(shape, weights)),
        shape.std,
        shape.mean,
    )


def _torch_blocks(
    prefix: str, entries: Sequence[Entry], weights: Mapping[str, Floats]
) -> tuple[FeatureBlock, ...]:
    """Return the blocks of the module `prefix`. It puts the entries side by side."""
    _refuse_lists(entries)
    blocks, owner = [], owners(entries)
    for entry in entries:
        name = f"{prefix}.{entry.name}"
        if entry.kind == "periodic":
            frequencies, weight, bias = (
                weights[f"{name}.{part}"] for part in ("frequencies", "weight", "bias")
            )
            blocks.append(FeatureBlock(entry, periodic=Periodic(frequencies, weight, bias)))
        else:
            table = weights[f"{prefix}.{owner[entry.name]}.weight"] if _is_embedding(entry) else None
            blocks.append(FeatureBlock(entry, table))
    return tuple(blocks)


def _torch_layers(shape: Shape, weights: Mapping[str, Floats]) -> Iterator[Layer]:
    """Yield the hidden layers: the modules of `hidden` that have a weight of two dimensions, or scale them."""
    numbers = sorted({int(name.split(".")[1]) for name in weights if name.startswith("hidden.")})
    linear = [number for number in numbers if weights[f"hidden.{number}.weight"].ndim == 2]
    for number in linear:
        of = f"hidden.{number}"
        layer = Layer(weights[f"{of}.weight"].T, weights[f"{of}.bias"], shape.activation)
        if shape.batch_norm:
            norm = f"hidden.{number + 1}"
            parts = (weights[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
            layer = fold_normalisation(layer, *parts)
        yield layer


def _torch_wide(shape: Shape, weights: Mapping[str, Floats]) -> Iterator[tuple[FeatureBlock, Floats]]:
    if shape.wide is None:
        return
    _refuse_lists(shape.wide.entries)
    yield from _wide_parts(
        shape.wide.entries, lambda: weights["wide.numbers.weight"].T, lambda: weights["wide.ids.weight"]
    )


def _wide_parts(
    entries: Sequence[Entry], of_numbers: Callable[[], Floats], of_ids: Callable[[], Floats]
) -> Iterator[tuple[FeatureBlock, Floats]]:
    """Yield the blocks of a linear part with their weights: of numbers by value, of categories by id."""
    if any(entry.kind == "periodic" for entry in entries):
        raise ValueError("its linear part has learnt encodings")
    numbers = [entry for entry in entries if entry.kind in NUMBERS]
    ids = [entry for entry in entries if entry.kind == "category"]
    if numbers:
        for entry, weight in zip(numbers, split_rows(of_numbers(), numbers), strict=True):
            yield FeatureBlock(entry), weight
    if ids:
        weights = of_ids()
        for entry, first in zip(ids, firsts(ids)[0], strict=True):
            yield FeatureBlock(entry), weights[first : first + entry.num_ids]


def _real_mlp_of_torch(shape: Shape, weights: Mapping[str, Floats]) -> Network:
    blocks = _torch_blocks("layers.0", shape.deep.entries, weights)
    numbers = sorted(int(name.split(".")[1]) for name in weights if name.endswith(".bias"))
    layers = (
        (weights[f"layers.{number}.weight"].T, weights[f"layers.{number}.bias"])
        for number in numbers
        if number > 1
    )
    return real_mlp.network(shape, blocks, weights["layers.1.scale"], layers)


# Keras -----------------------------------------------------------------------------------------------------


class _Numbered:
    """Weights in the order of the layers, taken one layer after another."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        ordered = sorted(weights.items(), key=lambda item: int(item[0].partition(".")[0]))
        self._left = [(name.partition(".")[2], values) for name, values in ordered]

    def take(self, kind: str, *shape: int | None) -> Floats:
        """Remove and return the first array of this kind and shape; None is any size. Raises ValueError if none is."""
        for place, (name, values) in enumerate(self._left):
            sizes = zip(shape, values.shape, strict=False)
            if name == kind and len(shape) == values.ndim and all(a in (None, b) for a, b in sizes):
                del self._left[place]
                return values
        raise ValueError(f"there is no {kind} of the shape {shape}")

    def take_last(self, kind: str, *shape: int) -> Floats:
        """Remove and return the last array of this kind and shape in a layer without bias.

        Raises ValueError if there is none.
        """
        following = [name for name, _ in self._left[1:]] + [""]
        for place in reversed(range(len(self._left))):
            name, values = self._left[place]
            if name == kind and values.shape == shape and following[place] != "bias":
                del self._left[place]
                return values
        raise ValueError(f"there is no {kind} of the shape {shape} without bias")

    def end(self) -> None:
        """Raise ValueError if arrays are left."""
        if self._left:
            raise ValueError(f"a {self._left[0][0]} of the shape {self._left[0][1].shape} is left")


def _of_keras(shape: Shape, weights: Mapping[str, Floats]) -> Network:
    left = _Numbered(weights)
    _refuse_lists(shape.deep.entries)
    wide = tuple(_keras_wide(shape, left))
    blocks = tuple(_keras_blocks(shape.deep.entries, left))
    width, hidden = shape.deep.width, []
    scales = left.take("kernel", shape.members, width) if shape.members > 1 else None
    for units in shape.units:
        layer = Layer(left.take("kernel", width, units), left.take("bias", units), shape.activation)
        if shape.batch_norm:
            layer = fold_normalisation(layer, *(left.take(part, units) for part in _NORM))
        hidden.append(layer)
        width = units
    if shape.members > 1:
        last = left.take("kernel", shape.members, width, shape.outputs)
        output = Layer(last, left.take("bias", shape.members, shape.outputs))
    else:
        output = Layer(left.take("kernel", width, shape.outputs), left.take("bias", shape.outputs))
    left.end()
    return Network(blocks, tuple(hidden), output, scales, wide, shape.std, shape.mean)


def _real_mlp_of_keras(shape: Shape, weights: Mapping[str, Floats]) -> Network:
    left = _Numbered(weights)
    _refuse_lists(shape.deep.entries)
    blocks = tuple(_keras_blocks(shape.deep.entries, left))
    widths = [shape.deep.width, *shape.units, shape.outputs]
    scale = left.take("scale", widths[0])
    layers = [
        (left.take("kernel", inputs, units), left.take("bias", units))
        for inputs, units in itertools.pairwise(widths)
    ]
    left.end()
    return real_mlp.network(shape, blocks, scale, layers)


def _keras_blocks(entries: Sequence[Entry], left: _Numbered) -> Iterator[FeatureBlock]:
    for group in group_entries(entries):
        block = _keras_block(group[0], left)
        yield from (replace(block, entry=entry) for entry in group)


def _keras_block(entry: Entry, left: _Numbered) -> FeatureBlock:
    if entry.kind == "periodic":
        numbers = len(entry.features)
        f = entry.width // numbers
        kernel = left.take("kernel", numbers, f)
        return FeatureBlock(
            entry,
            periodic=Periodic(
                kernel, left.take("kernel", numbers, 2 * f, f), left.take("bias", numbers, f), True
            ),
        )
    is_embedding = _is_embedding(entry)
    return FeatureBlock(entry, left.take("embeddings", entry.num_ids, entry.width) if is_embedding else None)


def _keras_wide(shape: Shape, left: _Numbered) -> Iterator[tuple[FeatureBlock, Floats]]:
    """Yield the linear part. Its layers are nearer to the output than a deep part's layers, and so come last."""
    if shape.wide is None:
        return
    entries = shape.wide.entries
    _refuse_lists(entries)
    numbers = sum(entry.width for entry in entries if entry.kind in NUMBERS)
    ids = firsts([entry for entry in entries if entry.kind == "category"])[1]
    yield from _wide_parts(
        entries,
        lambda: left.take_last("kernel", numbers, shape.outputs),
        lambda: left.take_last("embeddings", ids, shape.outputs),
    )
