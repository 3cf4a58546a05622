"""Row tables in Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edl.frameworks import Minibatches
from tests.edl.frameworks.row_cases import FEATURES, KERAS, LABELS, RowCases, create, part


class TestKeras(RowCases):
    framework = "keras"
    model = KERAS
    computed = ('[inputs["f0"], inputs["f1"]]', '[inputs["f0"] + 1, inputs["f1"]]')
    other_dim = ('"both", 3, num_ids=30)(inputs["f1"])', '"both", 2, num_ids=30)(inputs["f1"])')
    own_optimizer = """

class Own(keras.optimizers.SGD):
    pass


def optimizer():
    return Own(0.1)
"""
    bag = """

from edl.keras import Embedding


def custom_model():
    inputs = {"tags": keras.Input(SHAPE, dtype="int64", name="tags")}
    return keras.Model(inputs, Embedding("tags", 1, COMBINER, num_ids=20)(inputs["tags"]))


def optimizer():
    return keras.optimizers.SGD(0.1)
"""
    helpers = """

from edl.keras import weighted_sum

FEATURES = fc.Features(*(fc.embedding(CATEGORY, dim=4, table=TABLE) for name in NAMES))


def custom_model():
    inputs = feature_inputs(FEATURES)
    hidden = keras.layers.Dense(8, activation="tanh")(concatenated(FEATURES, inputs))
    return keras.Model(inputs, weighted_sum(FEATURES, inputs) + keras.layers.Dense(1)(hidden))


def optimizer():
    return keras.optimizers.SGD(0.1, OPTIONS)


"""

    def dense(self, weights: dict[str, Any]) -> tuple[Any, Any]:
        return weights["0.kernel"], weights["1.bias"]

    def outputs(self, model: Any, features: Any = FEATURES) -> np.ndarray:
        found: np.ndarray = model(features).numpy()
        return found

    def test_a_job_is_traced_once(self, tmp_path: Path) -> None:
        text = """

TRACES = []
_LOSS = loss


def loss(labels, predictions):
    TRACES.append(1)
    return _LOSS(labels, predictions)
"""
        subject = self.program(tmp_path, append=text)
        adapter = create(subject)
        for rows in (64, 17, 1, 64):
            adapter.train(Minibatches(part(slice(rows)), LABELS[:rows], 16))
        assert subject.module.TRACES == [1]
