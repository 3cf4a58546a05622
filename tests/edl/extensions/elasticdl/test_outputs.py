"""Several outputs of a model as one array, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from edl.errors import JobError
from edl.extensions.elasticdl.outputs import OutputLayout, OutputsTarget

ROWS = tf.reshape(tf.range(12, dtype=tf.float32), (2, 6))
OUTPUTS: dict[str, Any] = {
    "one": ROWS,
    "of other ranks": {"flat": ROWS[:, 0], "cube": tf.reshape(ROWS, (2, 3, 2)), "column": ROWS[:, 1:2]},
    "in a list": [ROWS[:, :2], ROWS[:, 2]],
}


@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_are_unpacked_as_they_were_packed(outputs: Any) -> None:
    layout = OutputLayout()
    packed = layout.pack(outputs)
    assert packed.shape.rank == 2
    for given in (packed, packed.numpy()):
        unpacked = layout.unpack(given)
        tf.nest.assert_same_structure(unpacked, outputs)
        tf.nest.map_structure(np.testing.assert_array_equal, unpacked, outputs)


def test_rows_of_an_unknown_width_are_an_error_that_names_the_output() -> None:
    @tf.function(autograph=False, input_signature=[tf.TensorSpec((None, None))])
    def pack(tensor: Any) -> Any:
        return OutputLayout().pack({"logits": tensor})

    with pytest.raises(JobError, match="the output logits of the model has rows of an unknown shape"):
        pack(ROWS)


def test_predictions_of_several_outputs_are_a_struct_of_their_names() -> None:
    layout = OutputLayout()
    target = OutputsTarget(layout, "prediction")
    packed = layout.pack({"p": ROWS[:, 0], "x": ROWS[:, :2]}).numpy()
    assert target.decode(packed).to_pylist() == [{"p": 0, "x": [0, 1]}, {"p": 6, "x": [6, 7]}]
    layout.pack(ROWS[:, :1])
    assert target.decode(packed[:, :1]).to_pylist() == [0.0, 6.0]
