"""Device and precision of a Keras model.

TensorFlow decides which GPUs a process sees before it computes first. A worker sees one, and takes its memory as it is
needed rather than all of it at once: others may share the GPU. A user's process sees what it saw.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from edl.errors import JobError
from edl.frameworks import device as devices
from edl.spec.job import Device, Precision
from edl.spec.precision import FLOAT16_IN_KERAS

CPU, GPU = "/CPU:0", "/GPU:0"


def choose_device(device: Device) -> str:
    """Return TensorFlow's name of this process's device, or an empty text if it sees no GPU and so has no choice.

    Raises JobError if it has to be a GPU and there is none.
    """
    gpus = tf.config.list_physical_devices("GPU")
    number = devices.choose(device, len(gpus), "TensorFlow", with_cuda=tf.test.is_built_with_cuda())
    if not gpus:
        return ""
    if not devices.is_own_process():
        return CPU if number is None else f"/GPU:{number}"
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        tf.config.set_visible_devices([] if number is None else gpus[number], "GPU")
        if number is not None:
            tf.config.experimental.set_memory_growth(gpus[number], True)
    except RuntimeError:  # TensorFlow is running, and sees what it saw for an earlier job
        return CPU if number is None else GPU
    return "" if number is None else GPU


def place_on_device(device: str) -> contextlib.AbstractContextManager[object]:
    """Return the context in which operations and variables are made for the device."""
    return tf.device(device) if device else contextlib.nullcontext()


def run_on_device(device: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with its operations made for the device."""
    if not device:
        return function

    def made(*arguments: Any) -> Any:
        with tf.device(device):
            return function(*arguments)

    return made


@contextlib.contextmanager
def precision(dtype: Precision) -> Iterator[None]:
    """Provide a context in which layers are made for this precision. Raises JobError for float16."""
    if dtype == "float16":
        raise JobError(FLOAT16_IN_KERAS[0], hint=FLOAT16_IN_KERAS[1])
    before = keras.config.dtype_policy()
    if dtype != "float32":
        keras.config.set_dtype_policy(f"mixed_{dtype}")
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
