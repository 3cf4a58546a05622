"""Compiled functions that are traced once, for any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from edl.arrays import Array
from edl.frameworks.adapter import Floats

KEEP = -1.0  # in place of a learning rate: the present one


class Variants:
    """Compiled function for each combination of optional arguments, traced on first use.

    The function receives the arguments that are not None as its last parameter, name -> float32 (n,).
    """

    def __init__(self, function: Callable[..., Any], *signature: Any) -> None:
        self._function = function
        self._signature = signature
        self._compiled: dict[tuple[str, ...], Any] = {}

    def __call__(self, *arguments: Any, **optional: Floats | None) -> Any:
        present = {name: array for name, array in optional.items() if array is not None}
        return self._variant(tuple(present))(*arguments, present)

    def trace(self, **optional: Floats | None) -> Callable[..., Any]:
        """Trace the function for these optional arguments, in this thread; return it for the other ones."""
        present = {name: array for name, array in optional.items() if array is not None}
        compiled = self._variant(tuple(present))
        compiled.get_concrete_function()
        return lambda *arguments: compiled(*arguments, present)

    def _variant(self, names: tuple[str, ...]) -> Any:
        if names not in self._compiled:
            last = {name: tf.TensorSpec((None,), tf.float32) for name in names}
            self._compiled[names] = compile_function(self._function, *self._signature, last)
        return self._compiled[names]


def run_interruptibly(
    variants: Variants, arguments: Sequence[Any], user_code: AbstractContextManager[None], **optional: Any
) -> None:
    """Call the function in a thread, within the context `user_code`: the main thread can handle signals meanwhile.

    It is traced in this thread, since layers may look at the state of the thread that calls them.
    """
    with user_code, ThreadPoolExecutor(1, "edl-steps") as thread:
        function = variants.trace(**optional)
        thread.submit(function, *arguments).result()


def compile_function(function: Callable[..., Any], *signature: Any) -> Any:
    return tf.function(function, input_signature=signature, autograph=False)


def any_rows(array: Array) -> tf.TensorSpec:
    return tf.TensorSpec((None, *array.shape[1:]), array.dtype)


def spec_of(variable: Any) -> tf.TensorSpec:
    return tf.TensorSpec(tuple(variable.shape), variable.dtype)
