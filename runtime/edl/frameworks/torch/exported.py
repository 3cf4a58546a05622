"""Program of torch.export of a network over the raw columns: the graph of its ONNX model in PyTorch's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from edl.arrays import Array
from edl.frameworks.networks.onnx import NetworkFile
from edl.frameworks.onnx.graph import OUTPUTS, SCORES, GraphValue
from edl.frameworks.onnx.tensors import Tensors

_TYPES = {"FLOAT": torch.float32, "DOUBLE": torch.float64, "INT64": torch.int64}


def save(file: NetworkFile, path: Path) -> None:
    """Write the program of a model that reads no texts.

    It takes a dict of the columns by their names, float64 (rows,) each, and returns a dict with `outputs` and, for
    classes, `scores`, as the ONNX model does.
    """
    columns = {name: torch.full((3,), math.nan, dtype=torch.float64) for name in file.spec.columns}
    rows = torch.export.Dim("rows", min=1)
    shapes = {name: {0: rows} for name in columns}
    program = torch.export.export(_Module(file, columns), (columns,), dynamic_shapes=(shapes,))
    torch.export.save(program, path)


class _Module(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """Model with its constants as buffers, in the order in which the graph asks for them."""

    def __init__(self, file: NetworkFile, columns: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._file = file
        constants: list[torch.Tensor] = []
        file.results(_TorchTensors(columns, constants))
        for place, constant in enumerate(constants):
            self.register_buffer(f"constant_{place}", constant)

    def forward(self, columns: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        graph = _TorchTensors(columns, list(self.buffers()), traced=True)
        outputs, scores = self._file.results(graph)
        answer = {OUTPUTS: graph.tensor(outputs)}
        return answer if scores is None else {**answer, SCORES: graph.tensor(scores)}


class _TorchTensors(Tensors):
    """Graph in the module. Its axes and shapes must be known numbers.

    constants: filled in their order; if the module is traced, taken from there.
    """

    def __init__(
        self, columns: Mapping[str, torch.Tensor], constants: list[torch.Tensor], *, traced: bool = False
    ) -> None:
        super().__init__(columns, _OPERATORS)
        self._constants_made, self._traced = constants, traced
        self._arrays: dict[str, Array] = {}

    def constant(self, values: Array) -> GraphValue:
        value = self.value(self._constant(values))
        self._arrays[value.name] = values
        return value

    def _constant(self, values: Array) -> torch.Tensor:
        if self._traced:
            return self._constants_made.pop(0)
        self._constants_made.append(torch.tensor(np.array(values, order="C")))
        return self._constants_made[-1]

    def add(self, operator: str, *inputs: GraphValue, domain: str = "", **attributes: Any) -> GraphValue:
        if operator not in _STATIC:
            return super().add(operator, *inputs, domain=domain, **attributes)
        of, static, *others = inputs
        rest = [self.tensor(value) for value in others]
        return self.value(
            _STATIC[operator](self.tensor(of), self._arrays[static.name].tolist(), *rest, **attributes)
        )

    def convert(self, tensor: torch.Tensor, kind: str) -> torch.Tensor:
        return tensor.to(_TYPES[kind])

    def positions(self, value: GraphValue, keys: Array) -> GraphValue:
        if keys.dtype == object:
            raise TypeError("a tensor holds no texts")
        same = self.tensor(value)[:, None] == self._constant(keys)[None, :]
        first_match = same.to(torch.float64).argmax(dim=1).to(torch.float64)
        return self.value(torch.where(same.any(dim=1), first_match, math.nan))


def _gather(values: torch.Tensor, places: torch.Tensor, axis: int = 0) -> torch.Tensor:
    if axis:
        return values.index_select(axis, places)
    return values[places]


_OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Abs": torch.abs,
    "Add": torch.add,
    "And": torch.logical_and,
    "Clip": torch.clamp,
    "Concat": lambda *values, axis: torch.cat(values, axis),
    "Cos": torch.cos,
    "Div": torch.div,
    "Einsum": lambda a, b, equation: torch.einsum(equation, a, b),
    "Elu": functional.elu,
    "Equal": torch.eq,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Gather": _gather,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "IsInf": torch.isinf,
    "IsNaN": torch.isnan,
    "Less": torch.lt,
    "Log": torch.log,
    "MatMul": torch.matmul,
    "Mul": torch.mul,
    "Not": torch.logical_not,
    "Relu": functional.relu,
    "Selu": functional.selu,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Softmax": lambda values, axis: functional.softmax(values, dim=axis),
    "Softplus": functional.softplus,
    "Sqrt": torch.sqrt,
    "Sub": torch.sub,
    "Tanh": torch.tanh,
    "Where": torch.where,
}
_STATIC: Mapping[str, Callable[..., Any]] = {
    "OneHot": lambda ids, depth, ends: functional.one_hot(ids, depth).to(ends.dtype),
    "ReduceMean": lambda values, axes, keepdims: values.mean(dim=axes, keepdim=bool(keepdims)),
    "ReduceSum": lambda values, axes, keepdims: values.sum(dim=axes, keepdim=bool(keepdims)),
    "Reshape": lambda values, shape: values.reshape(shape),
    "Unsqueeze": lambda values, axes: values.unsqueeze(axes[0]),
}
