"""Trees of either library as arrays, read from the library's own file.

Nodes of all trees are numbered one after the other. The two children of a node follow each other; a leaf is its own
first child. A row goes to the first child if its number passes the comparison, if it is missing where
`missing_first` is true, or if its category is in the node's set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from edl.errors import JobError
from edl.frameworks.trees.objectives import Link

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_CATEGORY, _MISSING_KIND, _MISSING_ZERO, _MISSING_NAN = 1, 3, 1, 2  # bits of LightGBM's decision_type
_DEFAULT_LEFT = 2


@dataclass(frozen=True)
class Nodes:
    """Nodes of one tree or of several. Arrays are by node.

    `sets` has the categories of the nodes that compare with a set, in place of a threshold.
    """

    column: Ints
    threshold: Floats
    first: Ints
    missing_first: Bools
    value: Floats
    sets: Mapping[int, Ints]

    @property
    def is_leaf(self) -> Bools:
        flags: Bools = self.first == np.arange(len(self.first))
        return flags


@dataclass(frozen=True)
class Forest:
    """Trees of a model; their leaves, with `base` (outputs,), add up to the margins of its outputs.

    `roots` and `outputs` are by tree. A number passes if it is at most the threshold where `inclusive`, else if it is
    below; numbers are rounded to float32 before that unless they are `doubles`.
    """

    nodes: Nodes
    roots: Ints
    outputs: Ints
    base: Floats
    inclusive: bool
    doubles: bool

    def find_bound(self, threshold: float) -> float:
        """Return the largest double that passes the comparison with a threshold.

        Numbers that are rounded to float32 first pass up to the middle between the threshold and the float32 below, or
        just below that middle if it is rounded up, to the even one.
        """
        if self.doubles or not np.isfinite(threshold):
            return threshold if self.inclusive else float(np.nextafter(threshold, -np.inf))
        above = np.float32(threshold)
        if self.inclusive:
            above = np.nextafter(above, np.float32(np.inf))
        below = np.nextafter(above, np.float32(-np.inf))
        middle = (float(above) + float(below)) / 2
        return middle if np.float32(middle) == below else float(np.nextafter(middle, -np.inf))


def of_lightgbm(text: str) -> Forest:
    """Return the trees of a file of LightGBM. Raises JobError for kinds of trees that other code cannot evaluate."""
    header, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    shared = _fields(header)
    trees = [_lightgbm_tree(_fields(block)) for block in blocks]
    outputs = int(shared["num_tree_per_iteration"])
    if "average_output" in header:
        raise JobError("LightGBM's random forests are only evaluated by LightGBM itself")
    of = np.arange(len(trees)) % outputs
    return _forest(trees, of, np.zeros(outputs), inclusive=True, doubles=True)


def of_xgboost(data: bytes, link: Link, outputs: int) -> Forest:
    """Return the trees of a JSON file of XGBoost. Raises JobError for a linear model."""
    learner = json.loads(data)["learner"]
    booster, weights = learner["gradient_booster"], None
    if booster["name"] == "dart":
        booster, weights = booster["gbtree"], booster["weight_drop"]
    if "model" not in booster or "trees" not in booster["model"]:
        raise JobError("a model of gblinear has no trees")
    model = booster["model"]
    shares = np.ones(len(model["trees"])) if weights is None else np.asarray(weights)
    trees = [_xgboost_tree(tree, share) for tree, share in zip(model["trees"], shares, strict=True)]
    base = np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64)
    start = np.broadcast_to(_margin(np.atleast_1d(base), link), outputs)
    of = np.asarray(model["tree_info"], dtype=np.int64)
    return _forest(trees, of, start, inclusive=False, doubles=False)


def _forest(trees: Sequence[Nodes], outputs: Ints, base: Floats, *, inclusive: bool, doubles: bool) -> Forest:
    sizes = np.array([len(tree.first) for tree in trees], dtype=np.int64)
    roots = np.cumsum(sizes) - sizes
    nodes = Nodes(
        np.concatenate([tree.column for tree in trees]),
        np.concatenate([tree.threshold for tree in trees]),
        np.concatenate([tree.first + root for tree, root in zip(trees, roots, strict=True)]),
        np.concatenate([tree.missing_first for tree in trees]),
        np.concatenate([tree.value for tree in trees]),
        {
            int(root) + node: ids_of_split
            for tree, root in zip(trees, roots, strict=True)
            for node, ids_of_split in tree.sets.items()
        },
    )
    return Forest(nodes, roots, outputs, base, inclusive, doubles)


def _margin(scores: Floats, link: Link) -> Floats:
    """Return the margins of these predictions."""
    if link == "log":
        logarithms: Floats = np.log(scores)
        return logarithms
    margins: Floats = np.log(scores) - np.log1p(-scores) if link == "logit" else scores
    return margins


def _pair_children(left: Ints, right: Ints, leaves: int) -> tuple[Ints, Ints, Ints]:
    """Return the number of each inner node and of each leaf, and the first child of each inner node.

    A child from 0 is an inner node; ~child is a leaf. Node 0 is the root.
    """
    inner, outer = np.zeros(len(left), dtype=np.int64), np.zeros(leaves, dtype=np.int64)
    firsts = 1 + 2 * np.arange(len(left))
    for children, place in ((left, firsts), (right, firsts + 1)):
        is_inner = children >= 0
        inner[children[is_inner]] = place[is_inner]
        outer[~children[~is_inner]] = place[~is_inner]
    return inner, outer, firsts


def _tree(
    left: Ints,
    right: Ints,
    column: Ints,
    threshold: Floats,
    missing_left: Bools,
    values: Floats,
    sets: Mapping[int, Ints],
) -> Nodes:
    """Return the nodes of a tree; all but `values`, of the leaves, are by inner node."""
    inner, outer, firsts = _pair_children(left, right, len(values))
    size = len(left) + len(values)
    nodes = Nodes(
        np.zeros(size, dtype=np.int64),
        np.full(size, np.inf),
        np.arange(size),
        np.ones(size, dtype=bool),
        np.zeros(size),
        {int(inner[node]): ids_of_split for node, ids_of_split in sets.items()},
    )
    nodes.column[inner], nodes.threshold[inner], nodes.first[inner] = column, threshold, firsts
    nodes.missing_first[inner] = missing_left
    nodes.value[outer] = values
    return nodes


# LightGBM ----------------------------------------------------------------------------------------------------


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in block.splitlines())
    return {name: value for name, _, value in pairs}


def _lightgbm_tree(fields: Mapping[str, str]) -> Nodes:
    values = np.array(fields["leaf_value"].split(), dtype=np.float64)
    if fields.get("is_linear", "0") != "0":
        raise JobError("LightGBM's linear trees are only evaluated by LightGBM itself")
    if int(fields["num_leaves"]) < 2:
        none = np.zeros(0, dtype=np.int64)
        return _tree(none, none, none, none.astype(np.float64), none.astype(bool), values[:1], {})
    left, right, column, kind = (
        np.array(fields[name].split(), dtype=np.int64)
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    threshold = np.array(fields["threshold"].split(), dtype=np.float64)
    missing, is_set = kind >> 2 & _MISSING_KIND, (kind & _CATEGORY).astype(bool)
    if (missing[~is_set] == _MISSING_ZERO).any():
        raise JobError("trees that take zero as missing are only evaluated by LightGBM itself")
    # Where training had no missing value, LightGBM takes one for 0; a missing category is in no set.
    missing_left = np.where(missing == _MISSING_NAN, (kind & _DEFAULT_LEFT).astype(bool), threshold >= 0)
    sets = dict(_lightgbm_sets(fields, np.flatnonzero(is_set), threshold))
    return _tree(left, right, column, threshold, missing_left & ~is_set, values, sets)


def _lightgbm_sets(fields: Mapping[str, str], nodes: Ints, threshold: Floats) -> Iterator[tuple[int, Ints]]:
    """Yield the nodes with a set of categories. The set is stored as bits in words of 32."""
    if not len(nodes):
        return
    bounds = np.array(fields["cat_boundaries"].split(), dtype=np.int64)
    words = np.array(fields["cat_threshold"].split(), dtype="<u4")
    for node in nodes.tolist():
        number = int(threshold[node])
        bits = words[bounds[number] : bounds[number + 1]]
        yield node, np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))


# XGBoost -----------------------------------------------------------------------------------------------------


def _xgboost_tree(tree: Mapping[str, Any], share: float) -> Nodes:
    left, right, column = (
        np.asarray(tree[name], dtype=np.int64)
        for name in ("left_children", "right_children", "split_indices")
    )
    numbers = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    default_left = np.asarray(tree["default_left"], dtype=bool)
    is_leaf = left < 0
    place = np.where(is_leaf, ~(np.cumsum(is_leaf) - 1), np.cumsum(~is_leaf) - 1)
    inner = np.flatnonzero(~is_leaf)
    first, second = place[left[inner]], place[right[inner]]
    sets = dict(_xgboost_sets(tree, place))
    in_set = np.zeros(len(inner), dtype=bool)
    in_set[list(sets)] = True  # its categories go to the right, so that its children are exchanged
    return _tree(
        np.where(in_set, second, first),
        np.where(in_set, first, second),
        column[inner],
        numbers[inner],
        default_left[inner] ^ in_set,
        numbers[is_leaf] * share,
        sets,
    )


def _xgboost_sets(tree: Mapping[str, Any], place: Ints) -> Iterator[tuple[int, Ints]]:
    categories = np.asarray(tree["categories"], dtype=np.int64)
    lists = (tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"])
    for node, start, size in zip(*lists, strict=True):
        yield int(place[node]), categories[start : start + size]
