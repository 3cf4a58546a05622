"""Functions of a module of ElasticDL as the functions of `edl.program.contract`.

feed(dataset, mode, metadata)         or dataset_fn: `edl.extensions.elasticdl.feeding`
custom_model()                        with outputs side by side: `edl.extensions.elasticdl.outputs`
loss(labels, predictions)             gets labels and outputs as the module gave them
eval_metrics_fn()                     functions and metrics of Keras, by name or by output and name
callbacks()                           LearningRateScheduler(schedule(step)) becomes learning_rate(steps)
PredictionOutputsProcessor            gets the outputs of a prediction, beside what is written
custom_data_reader(data_origin, …)    a reader with create_shards and read_records
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from edl.arrays import Array
from edl.errors import JobError
from edl.extensions.elasticdl.feeding import Feed
from edl.extensions.elasticdl.keras2 import install
from edl.extensions.elasticdl.metrics import adapt_metrics
from edl.extensions.elasticdl.names.callbacks import LearningRateScheduler, SavedModelExporter
from edl.extensions.elasticdl.names.embedding import Embedding
from edl.extensions.elasticdl.outputs import OutputLayout, OutputsTarget, PackedModel
from edl.extensions.elasticdl.shard_reader import open_shards
from edl.frameworks.device import worker_number

Function = Callable[..., Any]
PREDICTION = "prediction"
_PROCESSOR = "PredictionOutputsProcessor"


def adapt_functions(
    module: ModuleType, functions: Mapping[str, Function], kind: str, file: str
) -> dict[str, Function]:
    """Return functions of the contract for a module's functions, by name in the contract.

    `functions` are the module's, or others that the job names. `kind` is the job's.
    """
    install()
    layout = OutputLayout()
    feed = Feed(functions["feed"], file)
    adapted: dict[str, Function] = {
        "feed": feed,
        "custom_model": lambda: _pack(functions["custom_model"](), layout),
        "loss": _adapt_loss(functions["loss"], layout, feed),
        "eval_metrics_fn": lambda: adapt_metrics(
            functions["eval_metrics_fn"](), layout, lambda: feed.label_type, file
        ),
    }
    if "callbacks" in functions:
        adapted |= _adapt_callbacks(functions["callbacks"])
    if "custom_data_reader" in functions:
        adapted["custom_data_reader"] = lambda pinned, folder: open_shards(
            functions["custom_data_reader"], pinned, folder, file
        )
    if not hasattr(module, "LABEL"):
        module.LABEL = OutputsTarget(layout, PREDICTION)  # type: ignore[attr-defined]  # a name of the contract
    processor = getattr(module, _PROCESSOR, None)
    if kind == "predict" and processor is not None:
        adapted["scores"] = _Processing(processor(), layout)
    return adapted


def _pack(model: Any, layout: OutputLayout) -> PackedModel:
    if not isinstance(model, keras.Model):
        raise JobError(f"custom_model returns a {type(model).__name__}, not a tf.keras.Model")
    number = 0
    for layer in model._flatten_layers():
        if isinstance(layer, Embedding):  # names that do not depend on the models made before
            layer.name_table(f"embedding_{number}")
            number += 1
    return PackedModel(model, layout)


def _adapt_loss(loss: Function, layout: OutputLayout, feed: Feed) -> Function:
    def adapted(labels: Any, packed: Any) -> Any:
        return loss(tf.cast(labels, feed.label_type or labels.dtype), layout.unpack(packed))

    return adapted


def _adapt_callbacks(callbacks: Function) -> dict[str, Function]:
    """Return `callbacks` without the callbacks of ElasticDL, and `learning_rate` of its schedule, if there is one."""

    def others() -> list[Any]:
        return [one for one in callbacks() if not isinstance(one, LearningRateScheduler | SavedModelExporter)]

    schedules = [one.schedule for one in callbacks() if isinstance(one, LearningRateScheduler)]
    if not schedules:
        return {"callbacks": others}

    def learning_rate(steps: Array) -> Array:
        return np.array([float(schedules[-1](int(step))) for step in steps], dtype=np.float32)

    return {"callbacks": others, "learning_rate": learning_rate}


class _Processing:
    """Function `scores` that gives the outputs to a module's PredictionOutputsProcessor, and returns them unchanged."""

    def __init__(self, processor: Any, layout: OutputLayout) -> None:
        self._process = processor.process
        self._layout = layout

    def __call__(self, packed: Array) -> Array:
        outputs = tf.nest.map_structure(tf.convert_to_tensor, self._layout.unpack(packed))
        self._process(outputs, worker_number())
        return packed
