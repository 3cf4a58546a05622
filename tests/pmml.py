"""Evaluator of the part of PMML 4.4 that models of trees need, written from its specification; a row is a dict.

It shares no code with what writes such files, so that both have to mean the same by them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

Row = dict[str, Any]
_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "double": float,
    "integer": int,
    "string": str,
    "boolean": lambda text: text == "true",
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "floor": math.floor,
    "abs": abs,
    "ln": math.log,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "lessThan": operator.lt,
    "lessOrEqual": operator.le,
    "greaterThan": operator.gt,
    "greaterOrEqual": operator.ge,
    "equal": operator.eq,
    "notEqual": operator.ne,
    "and": lambda *conditions: all(conditions),
}
_OF_MISSING = ("+", "-", "*", "/")  # strict evaluators refuse a missing value in others


class Pmml:
    """A document. `outputs` of a row are its prediction under the target's name, and the fields of Output."""

    def __init__(self, file: Path) -> None:
        root = ET.parse(file).getroot()  # noqa: S314 - our own file
        for each in root.iter():
            each.tag = each.tag.partition("}")[2]
        assert root.attrib["version"] == "4.4"
        self.fields = {each.attrib["name"]: each for each in root.iter("DataField")}
        self.derived = [*root.iterfind("TransformationDictionary/DerivedField")]
        self.model = root[-1]
        assert self.model.tag == "MiningModel"
        self.inputs = [
            each.attrib["name"]
            for each in self.model.find("MiningSchema")  # type: ignore[union-attr]
            if each.get("usageType") != "target"
        ]
        [self.target] = {*self.fields} - {*self.inputs}

    def outputs(self, row: Row) -> Row:
        known = {name: row[name] for name in self.inputs}
        for name, value in known.items():
            kind = self.fields[name].attrib["dataType"]
            assert value is None or isinstance(value, {"double": float, "string": str, "boolean": bool}[kind])
        for derived in self.derived:
            value = _value(derived[0], known)
            convert = float if derived.attrib["dataType"] == "double" else int
            known[derived.attrib["name"]] = None if value is None else convert(value)
        return _evaluate(self.model, known, self.fields[self.target])


def _evaluate(model: ET.Element, known: Row, target: ET.Element | None = None) -> Row:
    prediction, probabilities = _predict(model, known, target)
    outputs: Row = {} if target is None else {target.attrib["name"]: prediction}
    if (
        model.tag == "MiningModel" and model.find("Output") is None
    ):  # of a chain, the outputs of its last model
        return {**outputs, **probabilities}
    return {**outputs, **_outputs(model, known, prediction, probabilities)}


def _outputs(model: ET.Element, known: Row, prediction: Any, probabilities: Row) -> Row:
    outputs: Row = {}
    for output in model.iterfind("Output/OutputField"):
        name, feature = output.attrib["name"], output.attrib["feature"]
        if feature == "predictedValue":
            outputs[name] = prediction
        elif feature == "probability":
            outputs[name] = probabilities[output.attrib["value"]]
        else:
            outputs[name] = _value(output[0], {**known, **outputs})
    return outputs


def _predict(model: ET.Element, known: Row, target: ET.Element | None) -> tuple[Any, dict[str, float]]:
    if model.tag == "TreeModel":
        node = model.find("Node")
        assert node is not None
        return _score(node, known), {}
    if model.tag == "RegressionModel":
        return _regress(model, known, target)
    segmentation = model.find("Segmentation")
    assert segmentation is not None
    inner = [segment[-1] for segment in segmentation.iterfind("Segment")]
    if segmentation.attrib["multipleModelMethod"] == "sum":
        return math.fsum(_predict(each, known, None)[0] for each in inner), {}
    assert segmentation.attrib["multipleModelMethod"] == "modelChain"
    for each in inner[:-1]:
        known = {**known, **_evaluate(each, known)}
    prediction, probabilities = _predict(inner[-1], known, target)
    return prediction, _outputs(inner[-1], known, prediction, probabilities)


def _regress(model: ET.Element, known: Row, target: ET.Element | None) -> tuple[Any, dict[str, float]]:
    sums, classes = [], []
    for table in model.iterfind("RegressionTable"):
        terms = (
            float(each.attrib["coefficient"]) * known[each.attrib["name"]]
            for each in table.iterfind("NumericPredictor")
        )
        sums.append(float(table.attrib["intercept"]) + sum(terms))
        classes.append(table.get("targetCategory", ""))
    method = model.attrib["normalizationMethod"]
    if method == "exp":
        return math.exp(sums[0]), {}
    if method == "logit":
        first = 1 / (1 + math.exp(-sums[0])) if sums[0] > -700 else 0.0
        shares = [first, 1 - first]
    else:
        powers = [math.exp(each - max(sums)) for each in sums]
        shares = [each / sum(powers) for each in powers]
    assert target is not None
    declared = [each.attrib["value"] for each in target.iterfind("Value")]
    assert sorted(declared) == sorted(classes)
    probabilities = dict(zip(classes, shares, strict=True))
    best = max(declared, key=lambda name: probabilities[name])
    return _CONVERT[target.attrib["dataType"]](best), probabilities


def _score(node: ET.Element, known: Row) -> float:
    while True:
        children = node.findall("Node")
        if not children:
            return float(node.attrib["score"])
        for child in children:
            holds = _holds(child[0], known)
            if holds is None:
                [node] = [each for each in children if each.attrib["id"] == node.attrib["defaultChild"]]
                break
            if holds:
                node = child
                break
        else:
            raise AssertionError("no child of the node is true")


def _holds(predicate: ET.Element, known: Row) -> bool | None:
    if predicate.tag == "True":
        return True
    value = known[predicate.attrib["field"]]
    if value is None:
        return None
    if predicate.tag == "SimplePredicate":
        holds: bool = _FUNCTIONS[predicate.attrib["operator"]](value, float(predicate.attrib["value"]))
        return holds
    [array] = predicate
    members = [int(text) for text in (array.text or "").split()]
    assert len(members) == int(array.attrib["n"])
    return {"isIn": value in members, "isNotIn": value not in members}[predicate.attrib["booleanOperator"]]


def _value(expression: ET.Element, known: Row) -> Any:
    if expression.tag == "FieldRef":
        return known[expression.attrib["field"]]
    if expression.tag == "Constant":
        return _CONVERT[expression.attrib["dataType"]](expression.text or "")
    if expression.tag == "MapValues":
        return _look_up(expression, known)
    if expression.tag == "Discretize":
        value = known[expression.attrib["field"]]
        return None if value is None else _bin(expression, value)
    assert expression.tag == "Apply"
    function = expression.attrib["function"]
    first = _value(expression[0], known)
    if function == "isMissing":
        return first is None
    if function == "isNotMissing":
        return first is not None
    if function == "if":
        assert first is not None
        chosen = expression[1:2] if first else expression[2:3]
        return _value(chosen[0], known) if chosen else None
    arguments = [first, *(_value(each, known) for each in expression[1:])]
    assert None not in arguments or function in _OF_MISSING, f"{function} of a missing value"
    return None if None in arguments else _FUNCTIONS[function](*arguments)


def _look_up(expression: ET.Element, known: Row) -> int | None:
    [pair] = expression.iterfind("FieldColumnPair")
    value = known[pair.attrib["field"]]
    if value is None:
        return None
    convert = _CONVERT[{str: "string", bool: "boolean", float: "double"}[type(value)]]
    for row in expression.iterfind("InlineTable/row"):
        cells = {cell.tag: cell.text or "" for cell in row}
        if convert(cells[pair.attrib["column"]]) == value:
            return int(cells[expression.attrib["outputColumn"]])
    default = expression.get("defaultValue")
    return None if default is None else int(default)


def _bin(expression: ET.Element, value: float) -> int | None:
    for each in expression.iterfind("DiscretizeBin"):
        [interval] = each
        low, high = (
            float(interval.get(margin, default))
            for margin, default in (("leftMargin", -math.inf), ("rightMargin", math.inf))
        )
        above = value >= low if interval.attrib["closure"].startswith("closed") else value > low
        if above and value < high:
            return int(each.attrib["binValue"])
    return None
