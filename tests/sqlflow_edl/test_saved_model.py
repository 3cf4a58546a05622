"""Networks as a TensorFlow SavedModel over raw columns: the rows get what PREDICT gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from edl import spec
from edl.frameworks.networks.onnx import NetworkFile
from sqlflow_edl.extensions.serving.model import load_model
from tests.sqlflow_edl.extensions.model_sql.test_text import CITY, archive
from tests.trained import fed

tf = pytest.importorskip("tensorflow")


def scores(file: NetworkFile, folder: Path, batch: pa.RecordBatch) -> np.ndarray:
    from edl.frameworks.keras.saved_model import save

    save(file, folder)
    model = tf.saved_model.load(str(folder))
    found = model.serve({name: tf.constant(each) for name, each in fed(batch, file.spec.columns).items()})
    values: np.ndarray = found.get("scores", found["outputs"]).numpy()
    return values


def test_texts_and_numbers_are_looked_up_in_the_graph(tmp_path: Path) -> None:
    features = (
        spec.Standardize("amount", 10.0, 2.0, 3.0),
        spec.PiecewiseLinear("amount", (0.0, 1.0, 5.0), True),
        spec.OneHot(CITY),
        spec.OneHot(spec.Vocabulary("shop", (7, -3))),
    )
    found = archive(tmp_path, inputs={"features": features})
    table = pa.table(
        {
            "amount": pa.array([None, 1e300, 0.5, 3.0, np.inf]),
            "ci ty": ["O'slo", None, "b\\", "o'slo", ""],
            "shop": pa.array([7, -3, None, 8, 0], pa.int64()),
        }
    )
    model = load_model(tmp_path / "m.zip")
    [batch] = table.to_batches()
    file = NetworkFile(found.spec, found.weights())
    np.testing.assert_allclose(
        scores(file, tmp_path / "saved", batch), model.predictor.scores(batch)[0], rtol=1e-6, atol=1e-6
    )
