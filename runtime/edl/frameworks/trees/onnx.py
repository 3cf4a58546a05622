"""Model of trees as ONNX: raw columns or the matrix, the operator TreeEnsemble of ai.onnx.ml, the outputs.

    inputs    the columns of the table by their names (`edl.frameworks.onnx.columns`), or, if a feature has no
              operator, `dense`, float64 (rows, columns), NaN for missing values, as the program's `feed` makes it
    outputs   float64 (rows, outputs): numbers, scores of a ranking, or logits of classes
    scores    float64, for classes only: (rows, classes) probabilities

The leaves are added up in float64. XGBoost does so in float32, so the last digits differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edl.frameworks.onnx.columns import find_unsupported_column, matrix, own_metadata
from edl.frameworks.onnx.graph import (
    ML,
    Graph,
    GraphValue,
    Results,
    add_centre,
    apply_temperature,
    of_columns,
    tensor,
)
from edl.frameworks.trees.forest import Forest
from edl.frameworks.trees.objectives import Link
from edl.spec import Feature, JobSpec, source_columns

DENSE = "dense"
_LESS_OR_EQUAL, _LESS, _MEMBER = 0, 1, 6  # comparisons of TreeEnsemble
_SUM, _NONE = 1, 0


def by_column(features: Sequence[Feature]) -> Sequence[Feature]:
    """Return the features if operators make all of them from the columns of the table, else none."""
    return () if find_unsupported_column(features) else features


def encode_model(forest: Forest, link: Link, width: int, features: Sequence[Feature], spec: JobSpec) -> bytes:
    """Return the file of the model. Raises JobError if the package onnx is missing.

    `features` make the matrix from columns, see `by_column`; without them the matrix is the input.
    """
    columns = [name for feature in features for name in source_columns(feature)] or [DENSE]

    def make(graph: Graph) -> Results:
        return results(graph, forest, link, width, features, spec)

    metadata = own_metadata(spec) if features else {}
    return of_columns(columns, len(forest.base), make, metadata=metadata)


def results(
    graph: Graph, forest: Forest, link: Link, width: int, features: Sequence[Feature], spec: JobSpec
) -> Results:
    """Return the outputs and the scores of the model, float64; numbers have no scores."""
    dense = matrix(graph, features) if features else graph.input(DENSE, "DOUBLE", ["rows", width])
    margins = _margins(graph, forest, dense)
    if link == "logit":
        second = graph.add("Sigmoid", margins)
        both = graph.add("Concat", graph.constant(np.array(1.0)) - second, second, axis=1)
        return margins, apply_temperature(graph, both, spec.temperature)
    if link == "softmax":
        return margins, apply_temperature(graph, graph.add("Softmax", margins, axis=1), spec.temperature)
    return (graph.add("Exp", margins) if link == "log" else add_centre(graph, margins, spec.label)), None


def _margins(graph: Graph, forest: Forest, dense: GraphValue) -> GraphValue:
    from onnx import TensorProto

    if not forest.doubles:
        single = graph.add("Cast", dense, to=TensorProto.FLOAT)
        dense = graph.add("Cast", single, to=TensorProto.DOUBLE)
    sums = graph.add("TreeEnsemble", dense, domain=ML, **_ensemble(forest))
    return sums + graph.constant(forest.base.astype(np.float64))


def _ensemble(forest: Forest) -> dict[str, Any]:
    """Return the attributes of TreeEnsemble, which numbers inner nodes and leaves apart.

    A tree of a single leaf has a root with that leaf as both children.
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
    attributes = {
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
        attributes["membership_values"] = np.concatenate(members)
    return {name: _attribute(name, value) for name, value in attributes.items()}


def _attribute(name: str, value: Any) -> Any:
    """Return a value of an operator's attribute: a tensor, integers, or one integer."""
    if isinstance(value, int):
        return value
    is_tensor = value.dtype in (np.float64, np.uint8)
    return tensor(name, value) if is_tensor else value.astype(np.int64).tolist()
