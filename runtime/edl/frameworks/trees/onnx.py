"""Model of trees as ONNX: the operator TreeEnsemble of ai.onnx.ml, between the matrix and the outputs.

    dense     float64 (rows, columns), NaN for missing values, as the program's `feed` makes it
    outputs   float64 (rows, outputs): numbers, scores of a ranking, or logits of classes
    scores    float64, for classes only: (rows, classes) probabilities

The leaves are added up in float64. XGBoost does so in float32, so the last digits differ.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from edl.errors import JobError
from edl.frameworks.trees.forest import Forest
from edl.frameworks.trees.objectives import Link

DENSE, OUTPUTS, SCORES = "dense", "outputs", "scores"
_LESS_OR_EQUAL, _LESS, _MEMBER = 0, 1, 6  # comparisons of TreeEnsemble
_SUM, _NONE = 1, 0
_IR, _OPSET, _ML_OPSET = 10, 18, 5


def encoded(forest: Forest, width: int, link: Link) -> bytes:
    """Return the file of the model. Raises JobError if the package onnx is missing."""
    if importlib.util.find_spec("onnx") is None:
        raise JobError("ONNX needs the package onnx", hint="pip install onnx")
    from onnx import TensorProto, helper

    steps, matrix = [], DENSE
    if not forest.doubles:
        steps += [_cast(DENSE, "singles", TensorProto.FLOAT), _cast("singles", "matrix", TensorProto.DOUBLE)]
        matrix = "matrix"
    steps.append(
        helper.make_node("TreeEnsemble", [matrix], ["sums"], domain="ai.onnx.ml", **_ensemble(forest))
    )
    margins = "margins" if link == "log" else OUTPUTS
    steps.append(helper.make_node("Add", ["sums", "base"], [margins]))
    if link == "log":
        steps.append(helper.make_node("Exp", [margins], [OUTPUTS]))
    initial = [helper.make_tensor("base", TensorProto.DOUBLE, [len(forest.base)], forest.base.tolist())]
    shapes = {OUTPUTS: len(forest.base)}
    if link == "logit":
        initial.append(helper.make_tensor("one", TensorProto.DOUBLE, [1], [1.0]))
        steps += [
            helper.make_node("Sigmoid", [OUTPUTS], ["second"]),
            helper.make_node("Sub", ["one", "second"], ["first"]),
            helper.make_node("Concat", ["first", "second"], [SCORES], axis=1),
        ]
        shapes[SCORES] = 2
    elif link == "softmax":
        steps.append(helper.make_node("Softmax", [OUTPUTS], [SCORES], axis=1))
        shapes[SCORES] = len(forest.base)
    graph = helper.make_graph(
        steps,
        "trees",
        [helper.make_tensor_value_info(DENSE, TensorProto.DOUBLE, ["rows", width])],
        [helper.make_tensor_value_info(n, TensorProto.DOUBLE, ["rows", size]) for n, size in shapes.items()],
        initial,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="sqlflow-edl")
    return bytes(model.SerializeToString())


def _cast(source: str, target: str, kind: int) -> Any:
    from onnx import helper

    return helper.make_node("Cast", [source], [target], to=kind)


def _ensemble(forest: Forest) -> dict[str, Any]:
    """Return the attributes of TreeEnsemble, which numbers inner nodes and leaves apart.

    A tree of a single leaf has a root whose both children are that leaf.
    """
    nodes, leaf = forest.nodes, forest.nodes.is_leaf
    lone = forest.roots[leaf[forest.roots]]
    inner = np.concatenate([np.flatnonzero(~leaf), lone])
    number = np.where(leaf, np.cumsum(leaf) - 1, np.cumsum(~leaf) - 1)
    first = nodes.first[inner]
    second = np.where(leaf[inner], first, first + 1)
    roots = number[forest.roots]
    roots[leaf[forest.roots]] = np.arange(len(inner) - len(lone), len(inner))
    tree = np.repeat(np.arange(len(forest.roots)), np.diff(np.append(forest.roots, len(leaf))))
    modes = np.full(len(inner), _LESS_OR_EQUAL if forest.inclusive else _LESS, dtype=np.uint8)
    with_set = sorted(nodes.sets)
    modes[number[with_set]] = _MEMBER
    found = {
        "aggregate_function": _SUM,
        "post_transform": _NONE,
        "n_targets": len(forest.base),
        "tree_roots": roots,
        "nodes_featureids": nodes.column[inner],
        "nodes_modes": modes,
        "nodes_splits": np.where((modes == _MEMBER) | leaf[inner], 0.0, nodes.threshold[inner]),
        "nodes_truenodeids": number[first],
        "nodes_trueleafs": leaf[first],
        "nodes_falsenodeids": number[second],
        "nodes_falseleafs": leaf[second],
        "nodes_missing_value_tracks_true": nodes.missing_first[inner],
        "leaf_targetids": forest.outputs[tree[leaf]],
        "leaf_weights": nodes.value[leaf],
    }
    if with_set:
        members = [np.append(nodes.sets[node], np.nan) for node in with_set]
        found["membership_values"] = np.concatenate(members)
    return {name: _attribute(name, value) for name, value in found.items()}


def _attribute(name: str, value: Any) -> Any:
    """Return a value of an operator's attribute: a tensor, integers, or one integer."""
    from onnx import TensorProto, helper

    kinds = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.uint8): TensorProto.UINT8}
    if isinstance(value, int):
        return value
    if value.dtype in kinds:
        return helper.make_tensor(name, kinds[value.dtype], [len(value)], value.tobytes(), raw=True)
    return value.astype(np.int64).tolist()
