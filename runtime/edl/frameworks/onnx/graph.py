"""ONNX graphs, written as expressions of float64 numbers by row."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from edl.arrays import Array
from edl.errors import JobError
from edl.installation import install_extras
from edl.spec import Label, label_offset

_IR, _OPSET, _ML_OPSET = 10, 18, 5
ML = "ai.onnx.ml"
OUTPUTS, SCORES = "outputs", "scores"


class Graph:
    """Graph in the making. Names of values between inputs and outputs begin as no given name does."""

    def __init__(self, names: Iterable[str]) -> None:
        self._prefix = "/"
        while any(name.startswith(self._prefix) for name in names):
            self._prefix += "/"
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: dict[str, Any] = {}
        self._outputs: list[Any] = []
        self._made = 0

    def input(self, name: str, kind: str, shape: Sequence[str | int]) -> GraphValue:
        """Return an input of that type, such as DOUBLE; the same one if it is there already."""
        from onnx import TensorProto, helper

        self._inputs[name] = helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)
        return GraphValue(self, name)

    def output(self, name: str, value: GraphValue, columns: int) -> str:
        """Declare a float64 output (rows, columns), and return its name."""
        from onnx import TensorProto, helper

        self._nodes.append(helper.make_node("Identity", [value.name], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["rows", columns]))
        return name

    def cast(self, value: GraphValue, kind: str) -> GraphValue:
        """Return the value in another type, such as FLOAT."""
        from onnx import TensorProto

        return self.add("Cast", value, to=getattr(TensorProto, kind))

    def constant(self, values: Array) -> GraphValue:
        name = self._name()
        self._constants.append(tensor(name, values))
        return GraphValue(self, name)

    def add(self, operator: str, *inputs: GraphValue, domain: str = "", **attributes: Any) -> GraphValue:
        """Return the output of an operator."""
        from onnx import helper

        names = [value.name for value in inputs]
        output = self._name()
        self._nodes.append(helper.make_node(operator, names, [output], domain=domain, **attributes))
        return GraphValue(self, output)

    def columns(self, value: GraphValue, first: int, last: int) -> GraphValue:
        """Return some columns of a value (rows, columns)."""
        return self.add("Gather", value, self.constant(np.arange(first, last)), axis=1)

    def positions(self, value: GraphValue, keys: Array) -> GraphValue:
        """Return the position of the value among the keys, texts or float64, as float64; NaN for another value."""
        return self.add(
            "LabelEncoder",
            value,
            domain=ML,
            keys_tensor=tensor("keys", keys),
            values_tensor=tensor("values", np.arange(len(keys), dtype=np.float64)),
            default_tensor=tensor("default", np.array([np.nan])),
        )

    def encode(self, metadata: Mapping[str, str] = MappingProxyType({})) -> bytes:
        """Return the file of a model with this graph."""
        from onnx import helper

        graph = helper.make_graph(
            self._nodes, "model", list(self._inputs.values()), self._outputs, self._constants
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(ML, _ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="sqlflow-edl")
        helper.set_model_props(model, dict(metadata))
        return bytes(model.SerializeToString())

    def _name(self) -> str:
        self._made += 1
        return f"{self._prefix}{self._made}"


@dataclass(frozen=True, slots=True)
class GraphValue:
    """Value of a graph, with arithmetic; NaN stays NaN."""

    graph: Graph
    name: str

    def __add__(self, other: GraphValue | float) -> GraphValue:
        return self.graph.add("Add", self, self._value(other))

    def __sub__(self, other: GraphValue | float) -> GraphValue:
        return self.graph.add("Sub", self, self._value(other))

    def __mul__(self, other: GraphValue | float) -> GraphValue:
        return self.graph.add("Mul", self, self._value(other))

    def __floordiv__(self, other: GraphValue | float) -> GraphValue:
        return self.graph.add("Floor", self.graph.add("Div", self, self._value(other)))

    def __mod__(self, other: float) -> GraphValue:
        return self - (self // other) * other

    def where(self, condition: GraphValue) -> GraphValue:
        """Return the value where the condition is true, NaN elsewhere."""
        return self.graph.add("Where", condition, self, self._value(np.nan))

    def _value(self, other: GraphValue | float) -> GraphValue:
        return other if isinstance(other, GraphValue) else self.graph.constant(np.array(float(other)))


Results: TypeAlias = (
    "tuple[GraphValue, GraphValue | None]"  # outputs, and scores of classes, float64 (rows, …)
)


def of_columns(
    columns: Sequence[str],
    outputs: int,
    make: Callable[[Graph], Results],
    parts: Mapping[str, tuple[int, int]] | None = None,
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return the file of a model over these columns, with the outputs `outputs` and, for classes, `scores`.

    `parts` are the places of several labels among the scores, each of which is an output too, by its name. `metadata`
    is what the file says of itself. Raises JobError if the package onnx is missing.
    """
    check_installed()
    graph = Graph(columns)
    numbers, scores = make(graph)
    taken = [*columns, graph.output(free_name(OUTPUTS, columns), numbers, outputs)]
    if scores is not None:
        widest = max(last for _, last in parts.values()) if parts else max(2, outputs)
        taken.append(graph.output(free_name(SCORES, taken), scores, widest))
        for name, (first, last) in (parts or {}).items():
            part = graph.columns(scores, first, last)
            taken.append(graph.output(free_name(name, taken), part, last - first))
    return graph.encode(metadata)


def logits_of(graph: Graph, scores: GraphValue, is_binary: bool) -> GraphValue:
    """Return the logits of scores that are probabilities: of the second of two classes, or of each."""
    logits = graph.add("Log", scores)
    if not is_binary:
        return logits
    first, second = (
        graph.add("Gather", logits, graph.constant(np.array([place], dtype=np.int64)), axis=1)
        for place in (0, 1)
    )
    return second - first


def apply_temperature(graph: Graph, scores: GraphValue, temperature: float) -> GraphValue:
    """Return the probabilities after a division of their logits by the temperature, as in `edl.metrics.calibration`."""
    if temperature == 1:
        return scores
    return graph.add("Softmax", graph.add("Log", scores) * (1 / temperature), axis=-1)


def add_centre(graph: Graph, numbers: GraphValue, label: Label) -> GraphValue:
    """Return predicted numbers with the centre of their label, float64; other outputs as they are."""
    offset = label_offset(label)
    return numbers + offset if offset else numbers


def check_installed() -> None:
    """Raise JobError if the package onnx is missing."""
    if importlib.util.find_spec("onnx") is None:
        raise JobError("ONNX needs the package onnx", hint=install_extras("onnx"))


def free_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, with underscores appended until it is not taken; names differ by case."""
    return free_name(f"{name}_", taken) if name in taken else name


def tensor(name: str, values: Array) -> Any:
    """Return a constant of float32, float64, uint8, int64 or text."""
    from onnx import TensorProto, helper

    if values.dtype == object:
        encoded = [value.encode() for value in values.tolist()]
        return helper.make_tensor(name, TensorProto.STRING, values.shape, encoded)
    kinds = {
        "float32": TensorProto.FLOAT,
        "float64": TensorProto.DOUBLE,
        "uint8": TensorProto.UINT8,
        "int64": TensorProto.INT64,
    }
    return helper.make_tensor(name, kinds[values.dtype.name], values.shape, values.tobytes(), raw=True)
