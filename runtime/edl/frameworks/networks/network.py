"""Network of a built-in model as arrays: what it does to the entries of the transform, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from edl.features import Entry, Features
from edl.spec import JobSpec

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Periodic:
    """Periodic embedding of numbers: frequencies (numbers, f), weight (numbers, 2f, f) and bias (numbers, f).

    The angle of x is (2π x) frequency, or 2π (x frequency) if `frequency_first`, which float32 rounds differently.
    """

    frequencies: Floats
    weight: Floats
    bias: Floats
    frequency_first: bool = False


@dataclass(frozen=True)
class FeatureBlock:
    """Entry of the transform as values that the first layer takes, (rows, entry.width).

    A category has its vectors in `table`, (ids, width), or is one-hot without one.
    """

    entry: Entry
    table: Floats | None = None
    periodic: Periodic | None = None


@dataclass(frozen=True)
class Layer:
    """Dense layer: activation(x weight + bias), with weight (inputs, units) and bias (units,).

    Of an ensemble's last layer they are (members, inputs, units) and (members, units).
    """

    weight: Floats
    bias: Floats
    activation: str = ""


@dataclass(frozen=True)
class Network:
    """Blocks side by side, hidden layers, and the output, perhaps with a linear part added.

    With `scales`, (members, width), each member has the blocks times its own scales, then the same hidden layers.
    `wide` is the linear part: blocks and their weights, (width of the block, outputs). The outputs are multiplied by
    `std`, and `mean` is added to them.
    """

    blocks: tuple[FeatureBlock, ...]
    hidden: tuple[Layer, ...]
    output: Layer
    scales: Floats | None = None
    wide: tuple[tuple[FeatureBlock, Floats], ...] = ()
    std: float = 1.0
    mean: float = 0.0

    @property
    def members(self) -> int:
        return 1 if self.scales is None else len(self.scales)

    @property
    def products(self) -> int:
        """Number of multiplications of a row with the weights of layers."""
        hidden = sum(layer.weight.size for layer in self.hidden)
        output = self.output.weight.size * (self.members if self.output.weight.ndim == 2 else 1)
        return hidden * self.members + output + sum(weight.size for _, weight in self.wide)


@dataclass(frozen=True)
class Shape:
    """Layers that a JobSpec asks for, without their weights."""

    deep: Features
    wide: Features | None
    units: tuple[int, ...]
    activation: str
    batch_norm: bool
    members: int
    outputs: int
    std: float = field(default=1.0)
    mean: float = field(default=0.0)


def shape_of(spec: JobSpec) -> Shape:
    """Return the layers of a JobSpec with a deep part, and perhaps a wide one."""
    params = spec.model.params
    units = params.get("hidden_units") or ()
    inputs = _inputs(spec)
    label = spec.label
    return Shape(
        inputs.get("deep") or inputs["features"],
        inputs.get("wide"),
        tuple(int(number) for number in units if isinstance(number, int))
        if isinstance(units, tuple | list)
        else (),
        str(params.get("activation", "relu")),
        bool(params.get("batch_norm")),
        int(params.get("members") or 1),  # type: ignore[arg-type]
        label.outputs,
        label.std,
        label.mean,
    )


def fold_normalisation(layer: Layer, gamma: Floats, beta: Floats, mean: Floats, variance: Floats) -> Layer:
    """Return the layer with the batch normalisation behind it, before its activation."""
    factor = gamma / np.sqrt(variance + 1e-3)
    return Layer(layer.weight * factor, (layer.bias - mean) * factor + beta, layer.activation)


def split_rows(weight: Floats, entries: Sequence[Entry]) -> list[Floats]:
    """Return the rows of a weight, (widths together, units), that belong to each entry."""
    bounds = np.cumsum([entry.width for entry in entries])[:-1]
    return list(np.split(weight, bounds))


def _inputs(spec: JobSpec) -> Mapping[str, Features]:
    several = len(spec.inputs) > 1
    return {
        name: Features(*features, prefix=f"{name}_" if several else "")
        for name, features in spec.inputs.items()
    }
