"""Network of a built-in model as ONNX, with the transform of its features, so that the inputs are the raw columns.

    inputs    the columns of the table by their names, see `edl.frameworks.onnx.columns`
    outputs   float64 (rows, outputs): numbers, or logits of classes; of an ensemble the mean of its members' numbers,
              or the logits of the mean of their probabilities
    scores    float64, for classes only: (rows, classes) probabilities

Features are computed in float64 and narrowed to float32, in which the network computes, as in PREDICT.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edl.arrays import Array
from edl.features.column_types import columns_of_large_ids
from edl.frameworks.networks import stored
from edl.frameworks.networks.features import NUMBERS, compute_values
from edl.frameworks.networks.network import FeatureBlock, Floats, Layer, Network, Periodic
from edl.frameworks.onnx.columns import find_unsupported_column, ids, own_metadata
from edl.frameworks.onnx.graph import (
    Graph,
    GraphValue,
    Results,
    add_centre,
    apply_temperature,
    logits_of,
    of_columns,
)
from edl.spec import JobSpec, Label, label_offset


def reason_against(spec: JobSpec, weights: Mapping[str, Array]) -> str:
    """Return the reason why the model has no such graph, empty if it has one."""
    if reason := stored.find_unsupported_part(spec):
        return reason
    if large := stored.large_tables(weights):
        return f"its table {large.partition(':')[0]} is kept outside of the network"
    column = find_unsupported_column(spec.features, NUMBERS)
    if columns_of_large_ids(spec.features, [column]):
        return f"the ids of column {column} are above 2^53, where float64 cannot tell them apart"
    return f"a feature of column {column} has no operator" if column else ""


@dataclass(frozen=True)
class NetworkFile:
    """Model for export as ONNX, with a JobSpec and weights that permit it."""

    spec: JobSpec
    weights: Mapping[str, Array]

    def of_onnx(self) -> bytes:
        """Return the file. Raises JobError if the package onnx is missing."""
        label, scores_of_labels = self.spec.label, {}
        if label.labels:
            columns = (one_label.column for one_label in label.labels)
            scores_of_labels = dict(zip(columns, label.score_places, strict=True))
        return of_columns(
            self.spec.columns, label.outputs, self.results, scores_of_labels, own_metadata(self.spec)
        )

    def results(self, graph: Graph) -> Results:
        """Return the outputs and the scores of the model, float64; numbers have no scores."""
        network = stored.network(self.spec, self.weights)
        outputs = _Graph(graph).outputs(network)
        if self.spec.label.labels:
            return _of_each(graph, graph.cast(outputs, "DOUBLE"), self.spec.label)
        outputs_value, scores = _results(graph, outputs, network, self.spec.label.has_classes)
        if scores is None:
            return add_centre(graph, outputs_value, self.spec.label), None
        return outputs_value, apply_temperature(graph, scores, self.spec.temperature)

    @property
    def onnx_inputs(self) -> str:
        return f"the columns {', '.join(self.spec.columns)}"


class _Graph:
    """Layers in a graph, in float32."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tables: dict[int, GraphValue] = {}  # of vectors, which several blocks may share

    def outputs(self, network: Network) -> GraphValue:
        """Return the outputs, float32 (rows, outputs), or (rows, members, outputs) of an ensemble."""
        graph = self._graph
        rows = self._join([self._block(block) for block in network.blocks])
        if network.scales is not None:
            rows = graph.add("Mul", self._unsqueeze(rows, 1), self._constant(network.scales))
        for layer in network.hidden:
            rows = self._layer(rows, layer)
        rows = self._layer(rows, network.output)
        for block, weight in network.wide:
            rows = graph.add("Add", rows, self._wide(block, weight))
        if (network.std, network.mean) == (1.0, 0.0):
            return rows
        scaled = graph.add("Mul", rows, self._constant(np.array(network.std)))
        return graph.add("Add", scaled, self._constant(np.array(network.mean)))

    def _layer(self, inputs: GraphValue, layer: Layer) -> GraphValue:
        graph, weight = self._graph, self._constant(layer.weight)
        if layer.weight.ndim == 3:
            product = graph.add("Einsum", inputs, weight, equation="rmw,mwo->rmo")
        else:
            product = graph.add("MatMul", inputs, weight)
        return self._activate(graph.add("Add", product, self._constant(layer.bias)), layer.activation)

    def _activate(self, value: GraphValue, activation: str) -> GraphValue:
        graph = self._graph
        if activation in _OPERATORS:
            return graph.add(_OPERATORS[activation], value)
        if activation == "silu":
            return graph.add("Mul", value, graph.add("Sigmoid", value))
        if activation == "gelu":
            error = graph.add("Erf", graph.add("Mul", value, self._constant(np.array(math.sqrt(0.5)))))
            above = graph.add("Add", error, self._constant(np.array(1.0)))
            return graph.add("Mul", graph.add("Mul", value, self._constant(np.array(0.5))), above)
        if activation == "mish":
            return graph.add("Mul", value, graph.add("Tanh", graph.add("Softplus", value)))
        if activation:
            raise ValueError(f"the activation {activation} has no operator")
        return value

    # Blocks --------------------------------------------------------------------------------------------------

    def _block(self, block: FeatureBlock) -> GraphValue:
        graph, entry = self._graph, block.entry
        if entry.kind in ("dense", "positions", "periodic"):
            values = self._join([compute_values(graph, feature) for feature in entry.features])
            if entry.kind == "positions":
                return self._encode(block, values)
            return values if block.periodic is None else self._periodic(values, block.periodic, entry.width)
        positions = ids(graph, entry.category)
        if block.table is not None:
            if (shared := id(block.table)) not in self._tables:
                self._tables[shared] = self._constant(block.table)
            return graph.add("Gather", self._tables[shared], positions, axis=0)
        ends = graph.constant(np.array([0, 1], dtype=np.float32))
        return graph.add("OneHot", positions, graph.constant(np.array(entry.num_ids)), ends)

    def _encode(self, block: FeatureBlock, positions: GraphValue) -> GraphValue:
        graph = self._graph
        columns, first = block.entry.encodings
        of_bins = graph.add("Gather", positions, graph.constant(np.array(columns)), axis=1)
        shifted = graph.add("Sub", of_bins, self._constant(np.array(first)))
        return graph.add("Clip", shifted, self._constant(np.array(0.0)), self._constant(np.array(1.0)))

    def _periodic(self, numbers: GraphValue, periodic: Periodic, width: int) -> GraphValue:
        graph, turn = self._graph, self._constant(np.array(2 * math.pi))
        values = self._unsqueeze(numbers, 2)
        frequencies = self._constant(periodic.frequencies)
        if periodic.frequency_first:
            angles = graph.add("Mul", turn, graph.add("Mul", values, frequencies))
        else:
            angles = graph.add("Mul", graph.add("Mul", turn, values), frequencies)
        waves = graph.add("Concat", graph.add("Sin", angles), graph.add("Cos", angles), axis=2)
        product = graph.add("Einsum", waves, self._constant(periodic.weight), equation="rnw,nwo->rno")
        active = graph.add("Relu", graph.add("Add", product, self._constant(periodic.bias)))
        return graph.add("Reshape", active, graph.constant(np.array([-1, width], dtype=np.int64)))

    def _wide(self, block: FeatureBlock, weight: Floats) -> GraphValue:
        if block.entry.kind == "category":
            return self._graph.add(
                "Gather", self._constant(weight), ids(self._graph, block.entry.category), axis=0
            )
        return self._graph.add("MatMul", self._block(block), self._constant(weight))

    # Arrays --------------------------------------------------------------------------------------------------

    def _constant(self, values: Array) -> GraphValue:
        return self._graph.constant(np.asarray(values).astype(np.float32))

    def _join(self, blocks: Sequence[GraphValue]) -> GraphValue:
        return blocks[0] if len(blocks) == 1 else self._graph.add("Concat", *blocks, axis=1)

    def _unsqueeze(self, value: GraphValue, axis: int) -> GraphValue:
        return self._graph.add("Unsqueeze", value, self._graph.constant(np.array([axis], dtype=np.int64)))


_OPERATORS = {"relu": "Relu", "elu": "Elu", "selu": "Selu", "tanh": "Tanh", "sigmoid": "Sigmoid"}


def _of_each(graph: Graph, outputs: GraphValue, label: Label) -> Results:
    """Return the outputs of several labels, and their numbers and probabilities side by side."""
    parts, scores = [], []
    for one_label, (first, last) in zip(label.labels, label.places, strict=True):
        part = add_centre(graph, graph.columns(outputs, first, last), one_label)
        parts.append(part)
        if one_label.has_classes:
            part = _two(graph, part) if one_label.is_binary else graph.add("Softmax", part, axis=-1)
        scores.append(part)
    if any(map(label_offset, label.labels)):
        outputs = graph.add("Concat", *parts, axis=-1)
    return outputs, graph.add("Concat", *scores, axis=-1)


def _results(graph: Graph, outputs: GraphValue, network: Network, classifies: bool) -> Results:
    """Return the outputs and the scores of the model, float64; numbers have no scores."""
    exact = graph.cast(outputs, "DOUBLE")
    several = network.scales is not None
    if not classifies:
        return (_mean(graph, exact) if several else exact), None
    is_binary = network.output.weight.shape[-1] == 1
    shares = _two(graph, exact) if is_binary else graph.add("Softmax", exact, axis=-1)
    if not several:
        return exact, shares
    scores = _mean(graph, shares)
    return logits_of(graph, scores, is_binary), scores


def _two(graph: Graph, logits: GraphValue) -> GraphValue:
    """Return the probabilities of both classes, (…, 2), of the logit of the second, (…, 1)."""
    second = graph.add("Sigmoid", logits)
    return graph.add("Concat", graph.constant(np.array(1.0)) - second, second, axis=-1)


def _mean(graph: Graph, values: GraphValue) -> GraphValue:
    """Return the mean over the members: (rows, members, k) to (rows, k)."""
    return graph.add("ReduceMean", values, graph.constant(np.array([1], dtype=np.int64)), keepdims=0)
