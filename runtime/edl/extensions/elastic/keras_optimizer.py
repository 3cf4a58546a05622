"""Optimizers of Keras: `optimizer.apply` and `apply_gradients` become a step of all workers."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edl.arrays import Array
from edl.collectives.base import Group
from edl.errors import JobError, SemanticError
from edl.extensions.elastic.collective import STEP, sum_over_group
from edl.extensions.elastic.gradients import Gradients, Take

_INSIDE = (
    "optimizer.apply was called inside of a tf.function: return the gradients from it, and apply them outside"
)


def is_keras(model: Any) -> bool:
    return any(base.__module__.partition(".")[0] == "keras" for base in type(model).__mro__)


class KerasGradients(Gradients):
    """Gradients of a keras.Optimizer, and the floating-point weights of a keras.Model that are not trained.

    Raises SemanticError for a model without weights, and for a backend with optimizers that keep no state.
    """

    def __init__(self, model: Any, optimizer: Any) -> None:
        import keras

        if keras.backend.backend() not in ("tensorflow", "torch"):
            raise SemanticError(
                f"edl.elastic does not know loops of Keras with {keras.backend.backend()}",
                hint="set KERAS_BACKEND=tensorflow",
            )
        self._variables = list(model.trainable_weights)
        if not self._variables:
            raise SemanticError(
                "edl.elastic.checkpoint: the model has no weights yet",
                hint="begin it with keras.Input, or call it on some rows before",
            )
        optimizer.build(self._variables)
        self._statistics = [
            variable for variable in model.non_trainable_weights if "float" in str(variable.dtype)
        ]
        self._numbers = {id(variable): number for number, variable in enumerate(self._variables)}
        self.present: list[Any] = [None] * len(self._variables)
        double = any(str(variable.dtype) == "float64" for variable in (*self._variables, *self._statistics))
        sizes = [int(np.prod(variable.shape)) for variable in (*self._variables, *self._statistics)]
        # The flat array begins with the mark of `sum_over_group`, and with 1 for each variable that has a gradient.
        self._has = slice(1, 1 + len(self._variables))
        self._ends = np.cumsum([self._has.stop, *sizes])
        self._flat: Array = np.zeros(self._ends[-1], np.float64 if double else np.float32)
        self.keep()

    def given(self, gradients: Sequence[Any], variables: Sequence[Any] | None) -> None:
        """Take the gradients of a call of `apply`. Raises SemanticError for variables of another model."""
        self.clear()
        for gradient, variable in zip(gradients, variables or self._variables, strict=True):
            number = self._numbers.get(id(variable))
            if number is None:
                raise SemanticError(
                    f"{variable.path} is not a trainable weight of the model that edl.elastic.checkpoint was given"
                )
            self.present[number] = gradient

    def keep(self) -> None:
        self._kept = [np.array(statistic) for statistic in self._present_statistics()]

    def clear(self) -> None:
        self.present = [None] * len(self._variables)

    def _add(self, share: float) -> None:
        for number, (gradient, place) in enumerate(zip(self.present, self._places(), strict=False)):
            if gradient is not None:
                self._flat[1 + number] = 1
                place += share * _flatten(gradient)

    def _sum(self, group: Group | None, share: float) -> None:
        places = self._places()
        gradients, means = places[: len(self._variables)], places[len(self._variables) :]
        for place, values in zip(means, self._present_statistics(), strict=True):
            place[:] = share * values if share else 0
        if group is not None:
            sum_over_group(group, STEP, self._flat)
        self.present = [
            flat.astype(str(variable.dtype)).reshape(variable.shape) if has else None
            for variable, flat, has in zip(self._variables, gradients, self._flat[self._has], strict=True)
        ]
        self._assign(means)

    def _restore(self) -> None:
        self._assign(self._kept)

    def _forget(self) -> None:
        super()._forget()
        self._flat[:] = 0

    def _places(self) -> list[Array]:
        """Return the places of gradients and statistics in the flat array."""
        return np.split(self._flat, self._ends[:-1])[1:]

    def _present_statistics(self) -> list[Array]:
        return [_flatten(statistic.value) for statistic in self._statistics]

    def _assign(self, statistics: Sequence[Array]) -> None:
        for variable, values in zip(self._statistics, statistics, strict=True):
            variable.assign(values.reshape(variable.shape))


class Variables:
    """Values of variables with the methods of what PyTorch keeps, see `edl.extensions.elastic.state`."""

    def __init__(self, variables: Sequence[Any]) -> None:
        self._variables = list(variables)

    def state_dict(self) -> dict[str, Array]:
        """Return the values, by position."""
        return {str(number): _numpy(variable.value) for number, variable in enumerate(self._variables)}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        """Assign the values. Raises JobError if they are of other variables."""
        shapes = [tuple(own_variable.shape) for own_variable in self._variables]
        if shapes != [state[name].shape for name in state]:
            raise JobError("the workers have given edl.elastic.checkpoint models of different shapes")
        for variable, values in zip(self._variables, state.values(), strict=True):
            variable.assign(values)


def hook(optimizer: Any, gradients: KerasGradients, take: Take) -> None:
    """Replace `optimizer.apply`: `take` gets the original one, with the gradients that are then present."""
    original = _compile_update(optimizer.apply, gradients)

    def apply(self: Any, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        if not _is_eager():
            raise SemanticError(_INSIDE)  # TensorFlow makes an error of its own of it, without a hint
        gradients.given(grads, trainable_variables)
        take(original)
        gradients.clear()

    optimizer.apply = types.MethodType(apply, optimizer)


def _compile_update(apply: Callable[..., None], gradients: KerasGradients) -> Callable[[], None]:
    """Return a function that applies the gradients that are present, as one graph with TensorFlow."""
    import keras

    variables = gradients._variables
    if keras.backend.backend() != "tensorflow":
        return lambda: apply([_tensor(gradient) for gradient in gradients.present], variables)
    import tensorflow as tf

    graph = tf.function(lambda tensors: apply(tensors, variables), autograph=False)
    return lambda: graph([_tensor(gradient) for gradient in gradients.present])


def _tensor(gradient: Any) -> Any:
    import keras

    return None if gradient is None else keras.ops.convert_to_tensor(gradient)


def _is_eager() -> bool:
    import keras

    if keras.backend.backend() != "tensorflow":
        return True
    import tensorflow as tf

    return bool(tf.executing_eagerly())


def _numpy(value: Any) -> Array:
    import keras

    array: Array = np.asarray(keras.ops.convert_to_numpy(value))
    return array


def _flatten(value: Any) -> Array:
    array = _numpy(value).reshape(-1)
    return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)
