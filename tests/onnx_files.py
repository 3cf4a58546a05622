"""ONNX files for tests of imports, made with the package onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, external_data_helper, helper, load_from_string, numpy_helper

KINDS = {
    "float": TensorProto.FLOAT,
    "double": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
    "string": TensorProto.STRING,
}


def make_file(
    nodes: Sequence[Any],
    inputs: dict[str, tuple[str, Sequence[Any]]],
    outputs: dict[str, tuple[str, Sequence[Any]]],
    *,
    constants: dict[str, Any] | None = None,
    metadata: dict[str, str] | None = None,
    domains: Sequence[str] = (),
) -> bytes:
    """Return a file. inputs, outputs: name -> element and shape, in which None is a free size."""
    values = [
        [helper.make_tensor_value_info(name, KINDS[kind], shape) for name, (kind, shape) in some.items()]
        for some in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", *values, weights)
    opsets = [("", 18), ("ai.onnx.ml", 3), *((domain, 1) for domain in domains)]
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(*each) for each in opsets],
        producer_name="test",
        ir_version=9,
    )
    helper.set_model_props(model, metadata or {})
    return bytes(model.SerializeToString())


def identity(kind: str = "float", shape: Sequence[Any] = (None, 1), **more: Any) -> bytes:
    """Return a file with the input x, which is its output y."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return make_file([node], {"x": (kind, shape)}, {"y": (kind, shape)}, **more)


def linear(weights: Sequence[float], **more: Any) -> bytes:
    """Return a file that multiplies its input x, float (rows, n), with weights."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    column = np.array(weights, dtype=np.float32)[:, None]
    shapes = {"x": ("float", [None, len(weights)])}, {"y": ("float", [None, 1])}
    return make_file([node], *shapes, constants={"w": column}, **more)


def softmax(width: int, operator: str = "Softmax", **more: Any) -> bytes:
    """Return a file with an input x (rows, width) and its softmax y."""
    node = helper.make_node(operator, ["x"], ["y"])
    return make_file([node], {"x": ("float", [None, width])}, {"y": ("float", [None, width])}, **more)


def with_external_data(location: str) -> bytes:
    """Return a file that multiplies x with a weight in another file."""
    tensor = numpy_helper.from_array(np.ones((1, 1), dtype=np.float32), "w")
    external_data_helper.set_external_data(tensor, location=location)
    tensor.ClearField("raw_data")
    shapes = {"x": ("float", [None, 1])}, {"y": ("float", [None, 1])}
    model = load_from_string(make_file([helper.make_node("MatMul", ["x", "w"], ["y"])], *shapes))
    model.graph.initializer.append(tensor)
    return bytes(model.SerializeToString())
