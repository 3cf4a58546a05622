"""The features as one tensor, in Keras and PyTorch alike."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from edl import features as fc
from edl import frameworks
from edl.embeddings.initializers import EMBEDDING_SCALE
from edl.embeddings.placement import LARGEST_IN_GRAPH, group_entries, initial_of

FEATURES = fc.Features(
    fc.one_hot(fc.vocabulary("type", ["a", "b"])),
    fc.numeric("a.b"),
    fc.embedding(fc.hash_bucket("x/y", 50), dim=4),
    fc.one_hot(fc.category_id("äöü", 3)),
    fc.one_hot(fc.bucket("a.b", [0.0])),
    fc.numeric("__class__"),
)
BATCH = pa.RecordBatch.from_pydict(
    {
        "type": ["b", "a", None, "new"],
        "a.b": [1.0, -2.0, 3.0, 4.0],
        "x/y": ["p", "q", "p", None],
        "äöü": [2, 0, 99, None],
        "__class__": [5, 6, 7, 8],
    }
)
ARRAYS = FEATURES.transform(BATCH)


def expected(vectors: np.ndarray) -> np.ndarray:
    """Dense numbers, the one-hot row of `type`, the embedding, and the last two one-hot rows."""
    one_hot = [np.eye(size)[ARRAYS[name]] for name, size in (("f0", 3), ("f3", 4), ("f4", 3))]
    dense = np.array([[1, 5], [-2, 6], [3, 7], [4, 8]])
    return np.concatenate([dense, one_hot[0], vectors[ARRAYS["f2"]], *one_hot[1:]], axis=1)


def test_torch_concatenates_entry_after_entry() -> None:
    frameworks.prepare("torch", 1)
    import torch

    from edl.torch import Concatenated

    torch.manual_seed(1)
    module = Concatenated(FEATURES)
    assert list(module.state_dict()) == ["f2.weight"]
    found = module({name: torch.from_numpy(array) for name, array in ARRAYS.items()}).detach().numpy()
    assert found.shape == (4, FEATURES.width) == (4, module.width)
    np.testing.assert_allclose(found, expected(module.f2.weight.detach().numpy()))


def test_keras_concatenates_entry_after_entry() -> None:
    frameworks.prepare("keras", 1)
    import keras

    from edl.keras import concatenated, feature_inputs

    inputs = feature_inputs(FEATURES)
    assert list(inputs) == ["dense", "f0", "f2", "f3", "f4"]
    model = keras.Model(inputs, concatenated(FEATURES, inputs))
    [vectors] = model.get_weights()
    np.testing.assert_allclose(model(ARRAYS).numpy(), expected(vectors))


@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize(
    ("initial", "deviation"),
    [("uniform", EMBEDDING_SCALE / np.sqrt(3)), ("normal", EMBEDDING_SCALE), ("zeros", 0.0)],
)
def test_vectors_start_alike_in_both(framework: str, initial: str, deviation: float) -> None:
    frameworks.prepare(framework, 1)
    frameworks.seed_everything(framework, 3)
    features = fc.Features(fc.embedding(fc.hash_bucket("x", 9_999), dim=8, initial=initial))
    if framework == "keras":
        import keras

        from edl.keras import concatenated, feature_inputs

        inputs = feature_inputs(features)
        [vectors] = keras.Model(inputs, concatenated(features, inputs)).get_weights()
    else:
        from edl.torch import Concatenated

        vectors = Concatenated(features).f0.weight.detach().numpy()
    assert vectors.shape == (10_000, 8)
    assert vectors.std() == pytest.approx(deviation, rel=0.02)
    assert (np.abs(vectors).max() <= EMBEDDING_SCALE) == (initial != "normal")
    assert abs(vectors.mean()) < 0.001


SHARED = fc.Features(
    fc.one_hot(fc.vocabulary("type", ["a", "b"])),
    *(fc.embedding(fc.category_id(name, 5), dim=4, table=1) for name in ("from", "to")),
)
PLACES = {"f0": np.array([0, 1]), "f1": np.array([3, 0]), "f2": np.array([4, 3])}


def test_torch_has_one_table_for_columns_that_share_vectors() -> None:
    frameworks.prepare("torch", 1)
    import torch

    from edl.torch import Concatenated, WeightedSum

    tensors = {name: torch.from_numpy(array) for name, array in PLACES.items()}
    module, linear = Concatenated(SHARED), WeightedSum(SHARED)
    assert {name: tuple(array.shape) for name, array in module.state_dict().items()} == {"f1.weight": (6, 4)}
    found, vectors = module(tensors).detach().numpy(), module.f1.weight.detach().numpy()
    np.testing.assert_array_equal(found[:, 3:], np.hstack([vectors[PLACES["f1"]], vectors[PLACES["f2"]]]))
    linear.ids.weight.data[:, 0] = torch.arange(9.0)
    assert linear(tensors).tolist() == [[0 + 6 + 7], [1 + 3 + 6]]


def test_keras_has_one_table_for_columns_that_share_vectors() -> None:
    frameworks.prepare("keras", 1)
    import keras

    from edl.keras import concatenated, feature_inputs, weighted_sum

    inputs = feature_inputs(SHARED)
    [vectors] = (model := keras.Model(inputs, concatenated(SHARED, inputs))).get_weights()
    assert vectors.shape == (6, 4)
    found = model(PLACES).numpy()
    np.testing.assert_array_equal(found[:, 3:], np.hstack([vectors[PLACES["f1"]], vectors[PLACES["f2"]]]))
    linear = keras.Model(inputs, weighted_sum(SHARED, inputs))
    linear.set_weights([np.arange(9.0)[:, None]])
    assert linear(PLACES).numpy().tolist() == [[0 + 6 + 7], [1 + 3 + 6]]


def test_neighbours_share_a_row_table_where_they_start_alike() -> None:
    large = fc.hash_bucket("x", LARGEST_IN_GRAPH)
    first = [
        fc.embedding(large, 2, initial=initial) for initial in ("uniform", "uniform", "normal", "normal")
    ]
    groups = group_entries(fc.Features(*first).entries)
    assert [[initial_of(entry) for entry in group] for group in groups] == [["uniform"] * 2, ["normal"] * 2]


def test_another_backend_of_keras_is_refused_by_name() -> None:
    code = (
        "import os, sys, types\n"
        "keras = types.ModuleType('keras')\n"
        "keras.backend = types.SimpleNamespace(backend=lambda: 'jax')\n"
        "sys.modules['keras'] = keras\n"
        "from edl.errors import JobError\n"
        "try:\n    import edl.keras\nexcept JobError as error:\n    print(error.message)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "Keras was loaded with the backend jax; edl runs it on tensorflow"
