"""Graphs that are computed at once in another library, with the library's tensors in the place of nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edl.frameworks.onnx.graph import Graph, GraphValue


class Tensors(Graph):
    """Graph with tensors as its values. given: the columns' tensors, by name. operators: by their names in ONNX."""

    def __init__(self, columns: Mapping[str, Any], operators: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(columns)
        self._given = columns
        self._operators = operators
        self._tensors: dict[str, Any] = {}

    def tensor(self, value: GraphValue) -> Any:
        """Return the tensor of a value."""
        return self._tensors[value.name]

    def value(self, tensor: Any) -> GraphValue:
        """Return the value of a tensor."""
        value = GraphValue(self, self._name())
        self._tensors[value.name] = tensor
        return value

    def input(self, name: str, kind: str, shape: Sequence[str | int]) -> GraphValue:
        return self.value(self._given[name])

    def cast(self, value: GraphValue, kind: str) -> GraphValue:
        return self.value(self.convert(self.tensor(value), kind))

    @abstractmethod
    def convert(self, tensor: Any, kind: str) -> Any:
        """Return the tensor in another type, such as FLOAT."""

    def add(self, operator: str, *inputs: GraphValue, domain: str = "", **attributes: Any) -> GraphValue:
        tensors = [self.tensor(value) for value in inputs]
        return self.value(self._operators[operator](*tensors, **attributes))
