"""Generated models: Keras and PyTorch compute the same function of the same features and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl import frameworks, spec
from edl.arrays import Array, checked_features
from edl.frameworks import Minibatches
from edl.frameworks.torch import device
from edl.frameworks.torch.device import CPU
from edl.program import load, read_spec
from sqlflow_edl.analysis import model_size
from sqlflow_edl.codegen import generate
from tests.edl.frameworks.exchanging import gradients
from tests.edl.frameworks.simulated_device import DEVICE, Simulation
from tests.edl.programs import FRAMEWORKS
from tests.sqlflow_edl.codegen.jobs import job

AGE, SIZE = spec.Standardize("age", 40.0, 10.0), spec.Numeric("size", 1.5)
BINS = spec.PiecewiseLinear("age", (20.0, 40.0, 80.0))
KNOWN = spec.PiecewiseLinear("size", (1.0, 1.5, 3.5, 4.0), True)
WAVES = (spec.Periodic("age", 40.0, 10.0, 3), spec.Periodic("size", 2.0, 1.0, 3))
MEANS = spec.TargetMean(
    spec.Vocabulary("city", ("oslo", "rome")), 1.0, 1, (3.0, 2.0, 1.0), (2.0, 0.5, 9.0), 1, 6
)
CITY, USER = spec.Vocabulary("city", ("oslo", "rome", "lima")), spec.HashBucket("user", 30)
BOTH = spec.Cross(("city", "user"), 50)
ROWS = pa.record_batch(
    {
        "age": [20.0, None, 71.0, 33.0],
        "size": [1.0, 2.0, None, 4.0],
        "city": ["rome", "oslo", None, "bonn"],
        "user": ["a", "b", "c", None],
    }
)
MODELS: dict[str, tuple[str, Mapping[str, tuple[spec.Feature, ...]]]] = {
    "linear": ("LinearRegressor", {"features": (AGE, spec.OneHot(CITY))}),
    "deep": ("DNNRegressor", {"features": (AGE, spec.OneHot(CITY), spec.Embedding(USER, 3))}),
    "wide and deep": (
        "DNNLinearCombinedRegressor",
        {
            "wide": (spec.OneHot(CITY), spec.OneHot(BOTH)),
            "deep": (AGE, SIZE, spec.Embedding(CITY, 2), spec.OneHot(CITY)),
        },
    ),
    "wide and deep, numbers only": (
        "DNNLinearCombinedRegressor",
        {"wide": (AGE, SIZE), "deep": (AGE, SIZE, spec.Numeric("age", 3.0))},
    ),
    "DeepFM": (
        "DeepFMRegressor",
        {"features": (AGE, spec.Embedding(CITY, 4), SIZE, spec.Embedding(USER, 4), spec.Embedding(BOTH, 4))},
    ),
    "deep, bins": ("DNNRegressor", {"features": (BINS, spec.OneHot(CITY), KNOWN)}),
    "deep, periodic": ("DNNRegressor", {"features": (*WAVES, MEANS, spec.Periodic("age", 40.0, 10.0, 2))}),
    "RealMLP": ("RealMLPRegressor", {"features": (BINS, KNOWN, spec.OneHot(CITY), spec.Embedding(USER, 3))}),
    "linear, periodic": ("LinearRegressor", {"features": (WAVES[0], MEANS)}),
    "wide and deep, bins": ("DNNLinearCombinedRegressor", {"wide": (AGE, KNOWN), "deep": (SIZE, BINS)}),
    "DeepFM, bins": ("DeepFMRegressor", {"features": (spec.Embedding(CITY, 4), KNOWN, SIZE, BINS)}),
    "DeepFM without numbers": (
        "DeepFMRegressor",
        {"features": (spec.Embedding(CITY, 4), spec.Embedding(USER, 4))},
    ),
}

EVERY_LAYER = ("wide and deep", "deep, periodic", "RealMLP", "DeepFM, bins")  # is in one of them


def adapter(
    framework: spec.job.Framework,
    model: str,
    folder: Path,
    labels: Array | None = None,
    precision: spec.job.Precision = "float32",
    **more: object,
) -> tuple[frameworks.Adapter, Any]:
    """more: parameters of the model."""
    name, inputs = MODELS[model]
    params = {} if name.startswith("Linear") else {"hidden_units": (7, 5), "activation": "tanh", **more}
    component = spec.Component(name, params)  # type: ignore[arg-type]
    made = msgspec.structs.replace(job(framework, model=component), inputs=dict(inputs), precision=precision)
    generate(made).write(folder)
    frameworks.prepare(framework, 1)
    program = load(folder)
    features, _ = program.call("feed", ROWS, "predict")
    features = checked_features(features, ROWS.num_rows)
    return frameworks.create(program, features, labels, seed=0), features


def copied(weights: Mapping[str, Array], into: Mapping[str, Array]) -> dict[str, Array]:
    """The weights under the other framework's names; shapes tell which is which, kernels are transposed."""
    found: dict[str, Array] = {}
    left = dict(weights)
    for name, own in into.items():
        match = next(
            other
            for other, value in left.items()
            if value.shape == own.shape or (name.endswith("weight") and value.T.shape == own.shape)
        )
        value = left.pop(match)
        found[name] = value if value.shape == own.shape else value.T
    assert not left
    return found


@pytest.mark.variants(4)
@pytest.mark.parametrize("model", MODELS)
def test_both_frameworks_compute_the_same_function(model: str, tmp_path: Path) -> None:
    keras, features = adapter("keras", model, tmp_path / "keras")
    torch, same = adapter("torch", model, tmp_path / "torch")
    draw = np.random.default_rng(7)
    weights = {
        name: draw.normal(size=value.shape).astype(np.float32) for name, value in keras.get_weights().items()
    }
    keras.set_weights(weights)
    torch.set_weights(copied(weights, torch.get_weights()))
    expected, found = keras.predict(features), torch.predict(same)
    assert expected.shape == (4, 1)
    assert np.ptp((expected - 60000.0) / 15000.0) > 0.1
    assert found == pytest.approx(expected, rel=1e-5, abs=0.1)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "model", [name if name in EVERY_LAYER else pytest.param(name, marks=pytest.mark.soak) for name in MODELS]
)
def test_a_step_on_another_device_equals_the_cpus(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a step reads is there: no layer holds or makes a tensor elsewhere."""
    weights = []
    for place in (CPU, DEVICE):
        monkeypatch.setattr(device, "choose_device", lambda wanted, place=place: place)
        with Simulation():
            made, features = adapter("torch", model, tmp_path / place.type, LABELS)
            made.train(Minibatches(features, LABELS, 2))
            weights.append({**made.get_weights(), "outputs": made.predict(features)})
    for name, value in weights[0].items():
        np.testing.assert_array_equal(weights[1][name], value)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_numbers_far_from_zero_are_predicted_in_bfloat16(
    framework: spec.job.Framework, tmp_path: Path
) -> None:
    """Predictions around 60,000 are not among the four multiples of 256 between 59,500 and 60,500."""
    whole, features = adapter(framework, "deep", tmp_path / "whole")
    half, _ = adapter(framework, "deep", tmp_path / "half", precision="bfloat16")
    half.set_weights(whole.get_weights())
    np.testing.assert_allclose(half.predict(features), whole.predict(features), atol=15_000 * 0.01)
    assert (half.predict(features) % 256).all()


@pytest.fixture(scope="module")
def ensembles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[frameworks.Adapter, Any]]:
    """One ensemble of three members in both frameworks, with the same weights."""
    made = {
        framework: adapter(framework, "deep, bins", tmp_path_factory.mktemp(framework), LABELS, members=3)
        for framework in ("keras", "torch")
    }
    weights = made["keras"][0].get_weights()
    made["torch"][0].set_weights(copied(weights, made["torch"][0].get_weights()))
    return made  # type: ignore[return-value]


LABELS = np.array([[50000.0], [60000.0], [70000.0], [90000.0]], np.float32)


@pytest.mark.soak
def test_members_of_an_ensemble_differ_and_both_frameworks_compute_the_same(ensembles: Any) -> None:
    keras, torch = (made.predict(features) for made, features in ensembles.values())
    assert keras.shape == (4, 3, 1)
    assert np.ptp(keras, axis=1).min() > 1
    assert torch == pytest.approx(keras, rel=1e-5)


@pytest.mark.variants(1)
@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_the_loss_of_an_ensemble_is_the_mean_of_its_members_losses(ensembles: Any, framework: str) -> None:
    made, features = ensembles[framework]
    outputs = made.predict(features)
    each = np.square((outputs - LABELS[:, None]) / 15000.0).mean(axis=(1, 2))
    assert made.evaluate(features, LABELS).loss == pytest.approx(each.mean(), rel=1e-5)
    weights = np.array([0.0, 1.0, 0.0, 3.0], np.float32)
    assert made.evaluate(features, LABELS, weights).loss == pytest.approx((each * weights).mean(), rel=1e-5)
    assert gradients(made, features, LABELS).loss == pytest.approx(each.mean(), rel=1e-5)


def test_the_plan_knows_the_size_of_an_ensemble(tmp_path: Path) -> None:
    made, _ = adapter("torch", "deep, bins", tmp_path, members=3)
    numbers = sum(value.size for value in made.get_weights().values())
    assert model_size.parameters(read_spec(tmp_path)) == numbers


@pytest.mark.parametrize("model", MODELS)
def test_the_plan_knows_the_size_of_the_model(model: str, tmp_path: Path) -> None:
    made, _ = adapter("torch", model, tmp_path)
    numbers = sum(value.size for value in made.get_weights().values())
    assert model_size.parameters(read_spec(tmp_path)) == numbers


def test_the_square_of_the_sum_gives_the_products_of_all_pairs(tmp_path: Path) -> None:
    made, _ = adapter("torch", "DeepFM", tmp_path)
    module = made._program.module  # type: ignore[attr-defined]
    vectors = np.random.default_rng(1).normal(size=(5, 4, 3)).astype(np.float32)
    pairs = sum((vectors[:, i] * vectors[:, j]).sum(axis=1) for i in range(4) for j in range(i))
    import torch

    assert module.pairwise_products(torch.from_numpy(vectors)).numpy()[:, 0] == pytest.approx(pairs, rel=1e-4)


@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize("classes", [2, 3])
def test_smoothed_labels_give_the_cross_entropy_to_their_mixture_with_all_classes(
    framework: Any, classes: int, tmp_path: Path
) -> None:
    label = spec.ClassLabel("kind", ("a", "b", "c")[:classes])
    loss = spec.Component("cross_entropy", {"label_smoothing": 0.2})
    model = spec.Component("LinearClassifier")
    generate(
        msgspec.structs.replace(job(framework, label=label, model=model), loss=loss, metrics=("accuracy",))
    ).write(tmp_path)
    module = load(tmp_path).module
    labels = np.array([0, 1, 1, 0]) if classes == 2 else np.array([0, 1, 2, 1])
    logits = np.random.default_rng(3).normal(size=(4, label.outputs)).astype(np.float32)
    given = labels[:, None].astype(np.float32) if classes == 2 else labels
    tensor = keras_tensor if framework == "keras" else torch_tensor
    losses = np.asarray(module.loss(tensor(given), tensor(logits))).reshape(-1)

    both = np.concatenate([np.zeros_like(logits), logits], axis=1) if classes == 2 else logits
    logs = both - np.log(np.exp(both).sum(axis=1, keepdims=True))
    wanted = 0.8 * np.eye(classes)[labels] + 0.2 / classes
    assert losses == pytest.approx(-(wanted * logs).sum(axis=1), rel=1e-5)


def keras_tensor(values: Array) -> Any:
    import keras

    return keras.ops.convert_to_tensor(values)


def torch_tensor(values: Array) -> Any:
    import torch

    return torch.tensor(values)
