"""Layers of a network as stages of a query, one column for each unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sqlglot import exp

from edl.errors import SemanticError
from edl.frameworks.networks.network import Floats, Layer, Network
from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import (
    Expression,
    add,
    case,
    clamp_exponent,
    divide,
    function,
    negative,
    number,
    own_column,
    parenthesize,
    power_of_e,
    subtract,
    sum_terms,
    times,
)
from sqlflow_edl.extensions.model_sql.features import FeatureColumns, Id, Item, Value, looked_up
from sqlflow_edl.extensions.model_sql.stages import Stages

MOST_PRODUCTS = 20_000
Outputs = list[list[exp.Column]]  # by member and output


def network_outputs(target: Target, network: Network, features: FeatureColumns, stages: Stages) -> Outputs:
    """Add the stages of the network and return its outputs. Raises SemanticError if it is too large."""
    if network.products > MOST_PRODUCTS:
        raise SemanticError(
            f"the network is too large for SQL: it multiplies {network.products:,} times for each row, and "
            f"{MOST_PRODUCTS:,} are the most",
            hint="train a smaller one, WITH model.members = 1, model.hidden_units = [16]; or export it as ONNX "
            "(-o m.onnx)",
        )
    layers = _Layers(target, stages)
    items = [item for block in network.blocks for item in features.items(block)]
    wide_items = [(features.items(block), weight * network.std) for block, weight in network.wide]
    members: list[list[Item]] = [items] * network.members
    for number_, layer in enumerate(network.hidden, start=1):
        members = layers.add_hidden_layer(number_, layer, members, network.scales if number_ == 1 else None)
    outputs = stages.stage("outputs")
    result: Outputs = []
    for member, inputs in enumerate(members):
        weight, bias = _of_member(network, member)
        rows = []
        for output in range(weight.shape[1]):
            terms = layers.products(inputs, weight[:, output])
            for wide_item, wide_weight in wide_items:
                terms += layers.products(wide_item, wide_weight[:, output])
            made_sum = target.real(sum_terms([number(bias[output]), *terms]))
            name = f"o{output}" if network.members == 1 else f"o{output}_m{member}"
            rows.append(outputs.add(name, made_sum))
        result.append(rows)
    return result


def _of_member(network: Network, member: int) -> tuple[Floats, Floats]:
    """Return weight and bias of a member's outputs, in the unit of the label."""
    output = network.output
    of_all = output.weight.ndim == 2
    weight = output.weight if of_all else output.weight[member]
    bias = output.bias if of_all else output.bias[member]
    if network.scales is not None and not network.hidden:
        weight = weight * network.scales[member][:, np.newaxis]
    return weight * network.std, bias * network.std + network.mean


class _Layers:
    def __init__(self, target: Target, stages: Stages) -> None:
        self._target = target
        self._stages = stages

    def add_hidden_layer(
        self, number_: int, layer: Layer, members: Sequence[Sequence[Item]], scales: Floats | None
    ) -> list[list[Item]]:
        """Add a hidden layer of all members, and return its units by member."""
        sums = self._stages.stage(f"sums{number_}")
        units = self._stages.stage(f"layer{number_}")
        several = len(members) > 1
        hidden_units: list[list[Item]] = []
        for member, items in enumerate(members):
            weight = layer.weight if scales is None else layer.weight * scales[member][:, np.newaxis]
            row: list[Item] = []
            for unit in range(weight.shape[1]):
                suffix = f"{unit}_m{member}" if several else f"{unit}"
                terms = self.products(items, weight[:, unit])
                summed = self._target.real(sum_terms([number(layer.bias[unit]), *terms]))
                made_sum = sums.add(f"s{number_}_{suffix}", summed)
                row.append(
                    Value(units.add(f"h{number_}_{suffix}", self._activate(made_sum, layer.activation)))
                )
            hidden_units.append(row)
        return hidden_units

    def products(self, items: Sequence[Item], weights: Floats) -> list[Expression]:
        """Return the products of the items with their weights; products with 0 are left out."""
        terms: list[Expression] = []
        first = 0
        for item in items:
            if isinstance(item, Id):
                of = weights[first : first + item.count].tolist()
                terms.append(self._target.real(looked_up(item.column, of)))
                first += item.count
                continue
            weight = float(weights[first])
            first += 1
            if weight:
                terms.append(times(number(weight), item.column.copy()))
        return terms

    def _activate(self, made_sum: exp.Column, activation: str) -> Expression:
        if activation == "relu":
            return function(self._target.greatest, made_sum, number(0))
        make = _ACTIVATIONS.get(activation)
        if make is None:
            raise SemanticError(
                f"the activation {activation} has no function in SQL",
                hint=f"train WITH model.activation = relu, or {', '.join(_ACTIVATIONS)}; or export it as ONNX",
            )
        return make(made_sum.name)


def sigmoid(name: str) -> Expression:
    """Return 1 / (1 + e^-x) of a column of ours."""
    power = power_of_e(negative(parenthesize(clamp_exponent(lambda: own_column(name)))))
    return divide(number(1), parenthesize(add(number(1), power)))


def _tanh(name: str) -> Expression:
    power = power_of_e(times(number(2), parenthesize(_half_clamped(name))))
    return subtract(number(1), divide(number(2), parenthesize(add(power, number(1)))))


def _half_clamped(name: str) -> Expression:
    far = number(300)
    return case(
        [
            (exp.GT(this=own_column(name), expression=far.copy()), far),
            (exp.LT(this=own_column(name), expression=number(-300)), number(-300)),
        ],
        own_column(name),
    )


def _elu(name: str, scale: float = 1.0, alpha: float = 1.0) -> Expression:
    below = times(
        number(scale * alpha),
        parenthesize(subtract(power_of_e(clamp_exponent(lambda: own_column(name))), number(1))),
    )
    above = times(number(scale), own_column(name)) if scale != 1 else own_column(name)
    return case([(exp.GT(this=own_column(name), expression=number(0)), above)], below)


def _mish(name: str) -> Expression:
    """Return x tanh(ln(1 + e^x)), where the tangent is s / (s + 2) of s = e^x (e^x + 2)."""

    def power() -> Expression:
        return power_of_e(_half_clamped(name))

    def product() -> Expression:
        return times(power(), parenthesize(add(power(), number(2))))

    return times(
        own_column(name),
        parenthesize(divide(parenthesize(product()), parenthesize(add(product(), number(2))))),
    )


_ACTIVATIONS: Mapping[str, Callable[[str], Expression]] = {
    "tanh": _tanh,
    "sigmoid": sigmoid,
    "silu": lambda name: times(own_column(name), parenthesize(sigmoid(name))),
    "mish": _mish,
    "elu": _elu,
    "selu": lambda name: _elu(name, 1.0507009873554805, 1.6732632423543772),
}
