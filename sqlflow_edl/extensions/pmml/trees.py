"""Trees as models of PMML: a sum of trees for each output, and what makes numbers or probabilities of the sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from edl.frameworks.trees.forest import Floats, Forest
from edl.frameworks.trees.objectives import Link
from edl.spec import JobSpec, label_offset
from sqlflow_edl.extensions.pmml.columns import PmmlFields
from sqlflow_edl.extensions.pmml.xml import Xml

_LARGEST = (
    1.7976931348623157e308  # in place of an endless threshold, which only tells missing values from others
)
_MARGIN = "margin"


class _Step(NamedTuple):
    """Node to write: the first or the second child of its parent, or the root."""

    node: int
    parent: int | None = None
    is_first: bool = True


class TreeModel:
    """Model of trees that is written to `xml`. fields: names of the used columns of the table."""

    def __init__(self, xml: Xml, spec: JobSpec, forest: Forest, link: Link, columns: PmmlFields) -> None:
        self._xml = xml
        self._spec = spec
        self._forest = forest
        self._link = link
        nodes = forest.nodes
        places = np.unique(nodes.column[~nodes.is_leaf]).tolist()
        self._fields = {place: columns.of_feature(place).name for place in places}
        self._of_ids = {place: columns.is_id(place) for place in places}
        self._columns = columns

    def write(self) -> None:
        """Write the whole model."""
        if self._link == "identity":
            offset = float(self._forest.base[0]) + label_offset(self._spec.label)
            with self._xml.element("MiningModel", functionName="regression"):
                self._schema(target=True)
                self._segments(0, offset)
            return
        function = "regression" if self._link == "log" else "classification"
        with self._xml.element("MiningModel", functionName=function):
            self._schema(target=True)
            with self._xml.element(
                "Segmentation", multipleModelMethod="modelChain", missingPredictionTreatment="returnMissing"
            ):
                for output in range(len(self._forest.base)):
                    self._margin(output)
                self._link_model(function)

    def _schema(self, *, target: bool = False) -> None:
        with self._xml.element("MiningSchema"):
            if target:
                self._xml.leaf("MiningField", name=self._spec.label.column, usageType="target")
            for name in self._columns.used:
                self._xml.leaf("MiningField", name=name, invalidValueTreatment="asIs")

    def _outputs(self) -> None:
        """Declare the outputs: the prediction, and of classes the probability of each.

        With a threshold the prediction is the second class where its probability reaches it.
        """
        label = self._spec.label
        if not label.has_classes:
            return
        names = [f"probability({_spell(value)})" for value in label.classes]
        with self._xml.element("Output"):
            for name, value in zip(names, label.classes, strict=True):
                self._xml.leaf(
                    "OutputField",
                    name=name,
                    optype="continuous",
                    dataType="double",
                    feature="probability",
                    value=_spell(value),
                )
            if self._spec.threshold is None or not label.is_binary:
                return
            kind = {
                "name": f"predicted_{label.column}",
                "optype": "categorical",
                "dataType": data_type(label.classes),
            }
            with self._xml.element("OutputField", **kind, feature="transformedValue"):
                self._decide_by_threshold(names[1], float(self._spec.threshold))

    def _decide_by_threshold(self, probability: str, threshold: float) -> None:
        classes = self._spec.label.classes
        with self._xml.element("Apply", function="if"):
            with self._xml.element("Apply", function="greaterOrEqual"):
                self._xml.leaf("FieldRef", field=probability)
                self._xml.leaf("Constant", repr(threshold), dataType="double")
            for value in reversed(classes):
                self._xml.leaf("Constant", _spell(value), dataType=data_type(classes))

    # Sums of trees -------------------------------------------------------------------------------------------

    def _margin(self, output: int) -> None:
        """Write the sum of the trees of an output, without its base, under a name for the model of the link."""
        with self._xml.element("Segment", id=f"{_MARGIN} {output}"):
            self._xml.leaf("True")
            with self._xml.element("MiningModel", functionName="regression"):
                self._schema()
                with self._xml.element("Output"):
                    self._xml.leaf(
                        "OutputField",
                        name=f"{_MARGIN} {output}",
                        optype="continuous",
                        dataType="double",
                        feature="predictedValue",
                    )
                self._segments(output)

    def _segments(self, output: int, offset: float = 0.0) -> None:
        """Write the trees of an output; an offset is a tree of a single leaf, which all evaluators add."""
        with self._xml.element(
            "Segmentation", multipleModelMethod="sum", missingPredictionTreatment="returnMissing"
        ):
            if offset:
                with self._xml.element("Segment", id="offset"):
                    self._xml.leaf("True")
                    with self._xml.element("TreeModel", functionName="regression"):
                        self._schema()
                        with self._xml.element("Node", id="offset", score=repr(offset)):
                            self._xml.leaf("True")
            for number in np.flatnonzero(self._forest.outputs == output).tolist():
                with self._xml.element("Segment", id=number):
                    self._xml.leaf("True")
                    self._tree(int(self._forest.roots[number]))

    def _tree(self, root: int) -> None:
        attributes = {"splitCharacteristic": "binarySplit", "missingValueStrategy": "defaultChild"}
        with self._xml.element("TreeModel", functionName="regression", **attributes):
            self._schema()
            waiting: list[_Step | None] = [_Step(root)]  # None ends a node
            while waiting:
                step = waiting.pop()
                if step is None:
                    self._xml.end()
                    continue
                node, first = step.node, int(self._forest.nodes.first[step.node])
                self._start_node(step, first)
                waiting.append(None)
                if first != node:
                    waiting += [_Step(first + 1, node, is_first=False), _Step(first, node)]

    def _start_node(self, step: _Step, first: int) -> None:
        nodes = self._forest.nodes
        if first == step.node:
            self._xml.start("Node", id=first, score=repr(float(nodes.value[first])))
        else:
            default = first if nodes.missing_first[step.node] else first + 1
            self._xml.start("Node", id=step.node, defaultChild=default)
        if step.parent is None:
            self._xml.leaf("True")
        else:
            self._condition(step.parent, is_first=step.is_first)

    def _condition(self, node: int, *, is_first: bool) -> None:
        """Write the condition of a child of a node. A missing value leaves the condition of either child unknown."""
        nodes = self._forest.nodes
        place = int(nodes.column[node])
        field = self._fields[place]
        if node not in nodes.sets:
            bound = self._forest.find_bound(float(nodes.threshold[node]))
            value: object = repr(min(max(bound, -_LARGEST), _LARGEST))
            if self._of_ids[place]:
                value = int(np.floor(min(max(bound, -1.0), 2.0**31 - 1)))
            comparison = "lessOrEqual" if is_first else "greaterThan"
            self._xml.leaf("SimplePredicate", field=field, operator=comparison, value=value)
            return
        ids = nodes.sets[node].tolist()
        if not ids:
            comparison = "lessThan" if is_first else "greaterOrEqual"
            self._xml.leaf("SimplePredicate", field=field, operator=comparison, value=0)
            return
        membership = "isIn" if is_first else "isNotIn"
        with self._xml.element("SimpleSetPredicate", field=field, booleanOperator=membership):
            self._xml.leaf("Array", " ".join(map(str, ids)), n=len(ids), type="int")

    # Links ---------------------------------------------------------------------------------------------------

    def _link_model(self, function: str) -> None:
        methods = {"log": "exp", "logit": "logit", "softmax": "softmax"}
        label, base = self._spec.label, self._forest.base / self._spec.temperature
        with self._xml.element("Segment", id="link"):
            self._xml.leaf("True")
            with self._xml.element(
                "RegressionModel", functionName=function, normalizationMethod=methods[self._link]
            ):
                with self._xml.element("MiningSchema"):
                    self._xml.leaf("MiningField", name=label.column, usageType="target")
                    for output in range(len(base)):
                        self._xml.leaf("MiningField", name=f"{_MARGIN} {output}")
                self._outputs()
                if self._link == "log":
                    self._table(0, base, {})
                elif self._link == "logit":
                    self._table(0, base, {"targetCategory": _spell(label.classes[1])})
                    self._xml.leaf(
                        "RegressionTable", intercept="0.0", targetCategory=_spell(label.classes[0])
                    )
                else:
                    for output, value in enumerate(label.classes):
                        self._table(output, base, {"targetCategory": _spell(value)})

    def _table(self, output: int, base: Floats, attributes: dict[str, Any]) -> None:
        with self._xml.element("RegressionTable", intercept=repr(float(base[output])), **attributes):
            coefficient = repr(1 / float(self._spec.temperature))
            self._xml.leaf("NumericPredictor", name=f"{_MARGIN} {output}", coefficient=coefficient)


def data_type(classes: Sequence[object]) -> str:
    """Return the type of the values of a label's classes."""
    return (
        "boolean" if isinstance(classes[0], bool) else "integer" if isinstance(classes[0], int) else "string"
    )


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
