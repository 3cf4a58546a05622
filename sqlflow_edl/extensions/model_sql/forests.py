"""Boosted trees as stages of a query: a nested CASE for each tree, and the sum of their leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from edl.errors import SemanticError
from edl.frameworks.trees.forest import Forest, Nodes
from edl.spec import Feature, category_of, is_category, source_columns, sources
from sqlflow_edl.extensions.model_sql.columns import Columns, unsupported_column_error
from sqlflow_edl.extensions.model_sql.dialects import Target
from sqlflow_edl.extensions.model_sql.expressions import Expression, case, is_null, number, sum_terms, whole
from sqlflow_edl.extensions.model_sql.networks import Outputs
from sqlflow_edl.extensions.model_sql.stages import Stages

MOST_NODES = 40_000
_ENDLESS = 1e308  # thresholds of the libraries that only tell missing values from others
_MOST_COLUMNS = 400  # of the stage of trees; of more trees, several share a column


def tree_outputs(
    target: Target, forest: Forest, features: Sequence[Feature], columns: Columns, stages: Stages
) -> Outputs:
    """Add the stages of the trees and return their margins. Raises SemanticError if there are too many."""
    nodes = len(forest.nodes.first)
    if nodes > MOST_NODES:
        raise SemanticError(
            f"the {len(forest.roots):,} trees are too large for SQL: they have {nodes:,} nodes, and {MOST_NODES:,} are "
            "the most",
            hint="train fewer or smaller ones, WITH train.num_boost_round = 100, model.num_leaves = 31; or export them "
            "as ONNX (-o m.onnx)",
        )
    used = set(forest.nodes.column[~forest.nodes.is_leaf].tolist())
    inputs = {place: _input(columns, features[place]) for place in used}
    trees = _Trees(target, forest, inputs, features)
    stage, outputs = stages.stage("trees"), stages.stage("outputs")
    share = -(-len(forest.roots) // _MOST_COLUMNS)
    output_columns: list[exp.Column] = []
    for output, base in enumerate(forest.base.tolist()):
        own_trees = np.flatnonzero(forest.outputs == output).tolist()
        parts = [own_trees[at : at + share] for at in range(0, len(own_trees), share)]
        terms: list[Expression] = [
            stage.add(f"t{part[0]}", sum_terms(trees.make_expression(tree) for tree in part))
            for part in parts
        ]
        output_columns.append(outputs.add(f"o{output}", target.real(sum_terms([number(base), *terms]))))
    return [output_columns]


def _input(columns: Columns, feature: Feature) -> exp.Column:
    """Return the number that trees compare, NULL if it is missing, or the id of a category."""
    if not feature.is_for_trees:
        raise unsupported_column_error(feature, tuple(source_columns(feature)))
    category = category_of(feature)
    if is_category(category):
        return columns.id(category)
    [source] = sources(feature)
    return columns.part(str(source), feature.part) if feature.part else columns.number(source)


@dataclass(frozen=True)
class _Trees:
    target: Target
    forest: Forest
    inputs: dict[int, exp.Column]
    features: Sequence[Feature]

    def make_expression(self, tree: int) -> Expression:
        root = int(self.forest.roots[tree])
        expression = self._node(root)
        return self.target.real(expression) if isinstance(expression, exp.Case) else expression

    def _node(self, node: int) -> Expression:
        nodes = self.forest.nodes
        first = int(nodes.first[node])
        if first == node:
            return number(nodes.value[node])
        return case([(self._condition(nodes, node), self._node(first))], self._node(first + 1))

    def _condition(self, nodes: Nodes, node: int) -> Expression:
        """Return the condition of the first child. A category that is NULL has the id `size`."""
        place = int(nodes.column[node])
        column, feature = self.inputs[place], self.features[place]
        category = category_of(feature)
        size = category.size if is_category(category) else None
        if node in nodes.sets:
            condition: Expression = exp.In(
                this=column.copy(),
                expressions=[whole(value) for value in nodes.sets[node].tolist() if value != size],
            )
        else:
            is_whole = size is not None or bool(feature.part)
            condition = _at_most(column, self.forest.find_bound(float(nodes.threshold[node])), is_whole)
        missing = (
            is_null(column.copy()) if size is None else exp.EQ(this=column.copy(), expression=whole(size))
        )
        if nodes.missing_first[node]:
            return exp.Or(this=condition, expression=missing)
        if size is None or node in nodes.sets:
            return condition
        return exp.And(this=condition, expression=exp.NEQ(this=column.copy(), expression=whole(size)))


def _at_most(column: exp.Column, bound: float, is_whole: bool) -> Expression:
    if abs(bound) >= _ENDLESS:
        return exp.Not(this=is_null(column.copy())) if bound > 0 else exp.false()
    literal = whole(math.floor(bound)) if is_whole else number(bound)
    return exp.LTE(this=column.copy(), expression=literal)
