"""Base of the adapters of neural networks: variables by name, and the row tables beside them."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from edl.arrays import Array, Features, count_rows
from edl.embeddings.model_tables import Cut, Fetched, Tables
from edl.errors import JobError
from edl.frameworks.adapter import Floats, check_fit, is_buffer, stored_as
from edl.program import Program, user_code

Variable = Any  # keras.Variable or torch.Tensor


class NetworkAdapter(ABC):
    """Model with its row tables. A framework adds how variables are named, read and assigned, and the arithmetic."""

    def __init__(self, program: Program, model: Any, seed: int) -> None:
        self.model = model
        self.tables = Tables(seed, program.spec.training.row_limits)
        self._program = program

    @abstractmethod
    def _variables(self) -> Mapping[str, Variable]:
        """Return all parameters and non-trainable state by name."""

    @abstractmethod
    def _trainable(self) -> Mapping[str, Variable]:
        """Return the trainable parameters by name."""

    @abstractmethod
    def _array(self, variable: Variable) -> Array:
        """Return the values of a variable, or a view of them."""

    @abstractmethod
    def _assign(self, variable: Variable, values: Array) -> None:
        """Set the values of a variable of the same shape."""

    def get_weights(self) -> dict[str, Array]:
        return self._copies(self._variables()) | self.tables.get_weights()

    @abstractmethod
    def _optimizer_state(self) -> dict[str, Array]:
        """Return copies of the training state, without the state of tables."""

    def get_state(self) -> dict[str, Array]:
        return self._optimizer_state() | self.tables.get_state()

    def cut(self) -> Cut:
        weights, state, tables = self._copies(self._variables()), self._optimizer_state(), self.tables.cut()

        def read() -> tuple[dict[str, Array], dict[str, Array]]:
            rows, slots = tables()
            return weights | rows, state | slots

        return read

    def keep(self) -> dict[str, Array]:
        return self.get_weights()

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        variables = self._variables()
        check_fit(_shapes(variables) | self.tables.own_shapes(weights), weights)
        self.tables.set_weights(weights)
        for name, variable in variables.items():
            self._assign(variable, weights[name])

    def get_trainable(self) -> dict[str, Floats]:
        return self._copies(self._trainable())

    def set_trainable(self, values: Mapping[str, Array]) -> None:
        for name, variable in self._trainable().items():
            self._assign(variable, values[name])

    def get_buffers(self) -> dict[str, Floats]:
        return {name: self._array(variable).astype(np.float32) for name, variable in self._buffers().items()}

    def set_buffers(self, values: Mapping[str, Array]) -> None:
        for name, variable in self._buffers().items():
            self._assign(variable, stored_as(dtype_of(variable), values[name]))

    def _buffers(self) -> dict[str, Variable]:
        moving = {id(variable) for variable in self._trainable().values()}
        return {
            name: variable
            for name, variable in self._variables().items()
            if id(variable) not in moving and is_buffer(dtype_of(variable), variable.shape)
        }

    def _copies(self, variables: Mapping[str, Variable]) -> dict[str, Array]:
        return {name: self._array(variable).copy() for name, variable in variables.items()}

    def _fetch_rows(self, features: Features, *, train: bool) -> Fetched:
        """Return the table rows that all rows of the features read."""
        need = self.tables.need(self.tables.keys(features), 0, count_rows(features))
        return self.tables.fetch(need, train=train)

    def _user_code(self, doing: str) -> contextlib.AbstractContextManager[None]:
        return user_code(self._program.file, doing)


def dtype_of(variable: Variable) -> str:
    """Return the NumPy name of a variable's type."""
    return str(variable.dtype).removeprefix("torch.")


def checked_shapes(variables: Mapping[str, Variable], weights: Mapping[str, Array]) -> None:
    """Raise JobError if names or shapes of arrays differ from the variables'."""
    check_fit(_shapes(variables), weights)


def call_function(
    program: Program, function: str, kind: type | tuple[type, ...], title: str, *arguments: Any
) -> Any:
    """Return the result of a program's function. Raises JobError if it is no `kind`; errors call that `title`."""
    result = program.call(function, *arguments)
    if not isinstance(result, kind):
        raise JobError(f"{function} in {program.file} returns a {type(result).__name__}, not a {title}")
    return result


def check_model(model: object, kind: type, title: str) -> None:
    """Raise JobError if a user's class or function made something other than a model."""
    if not isinstance(model, kind):
        raise JobError(
            f"the function that makes the model returned a {type(model).__name__}, not a {title}",
            hint="end it with return model",
        )


def flatten_inputs(inputs: Array | None, rows: int) -> Array:
    """Return the inputs of the last layer as (rows, width). Raises JobError if they were not found, or are shared."""
    if inputs is None or len(inputs) != rows:
        raise JobError(
            "the model has no last linear layer, whose inputs are its embedding",
            hint="end it with a layer of the class Linear in PyTorch, Dense in Keras",
        )
    return inputs.reshape(rows, -1)


def _shapes(variables: Mapping[str, Variable]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(variable.shape) for name, variable in variables.items()}
