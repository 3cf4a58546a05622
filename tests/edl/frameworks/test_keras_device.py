"""Keras on GPUs, as far as a machine without one shows it, and in bfloat16."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import msgspec
import numpy as np
import pytest
import tensorflow as tf

from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks import device as devices
from edl.frameworks.keras import device as keras_device
from edl.program import Program
from tests.edl.frameworks.adapter_cases import FEATURES, LABELS, create, program
from tests.edl.frameworks.exchanging import gradients

ROWS = Minibatches(FEATURES, LABELS, 16)


def of(folder: Path, **changes: Any) -> Program:
    subject = program(folder, "keras")
    return replace(subject, spec=msgspec.structs.replace(subject.spec, **changes))


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """TensorFlow with four GPUs; `running` when it has computed and decides no more."""
    found = SimpleNamespace(visible=None, growing=[], exact=[], running=False)

    def see(devices: Any, kind: str) -> None:
        if found.running:
            raise RuntimeError("Visible devices cannot be modified after being initialized")
        found.visible = devices

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [f"{kind}:{i}" for i in range(4)])
    monkeypatch.setattr(tf.config, "set_visible_devices", see)
    monkeypatch.setattr(
        tf.config.experimental, "set_memory_growth", lambda gpu, on: found.growing.append((gpu, on))
    )
    monkeypatch.setattr(tf.config.experimental, "enable_tensor_float_32_execution", found.exact.append)
    monkeypatch.setattr(devices, "_own_process", True)
    monkeypatch.delenv(devices.AUTO, raising=False)
    monkeypatch.setenv(devices.LOCAL_RANK, "5")
    return found


def test_a_worker_sees_one_gpu_and_takes_its_memory_as_it_needs_it(gpus: SimpleNamespace) -> None:
    assert keras_device.choose_device("auto") == "/GPU:0"
    assert (gpus.visible, gpus.growing, gpus.exact) == ("GPU:1", [("GPU:1", True)], [False])


def test_a_process_of_the_user_sees_what_it_saw(
    gpus: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_own_process", False)
    assert [keras_device.choose_device(wanted) for wanted in ("cpu", "auto")] == ["/CPU:0", "/GPU:1"]
    assert (gpus.visible, gpus.growing, gpus.exact) == (None, [], [])


def test_a_worker_that_computes_on_the_cpu_sees_no_gpu(gpus: SimpleNamespace) -> None:
    assert keras_device.choose_device("cpu") == ""
    assert (gpus.visible, gpus.growing) == ([], [])


def test_a_process_that_has_computed_places_its_operations(gpus: SimpleNamespace) -> None:
    gpus.running = True
    assert [keras_device.choose_device(wanted) for wanted in ("cpu", "cuda")] == ["/CPU:0", "/GPU:0"]


@pytest.mark.soak
def test_operations_of_a_model_are_made_for_its_device(tmp_path: Path, gpus: SimpleNamespace) -> None:
    gpus.running = True
    adapter = create(of(tmp_path, device="cpu"))
    adapter.train(ROWS)
    adapter.predict(FEATURES)
    graph = adapter._predict.get_concrete_function().graph  # type: ignore[attr-defined]
    made = {operation.device for operation in graph.get_operations() if operation.type == "MatMul"}
    assert made == {"/device:CPU:0"}


def test_a_gpu_that_is_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    monkeypatch.delenv(devices.AUTO, raising=False)
    assert keras_device.choose_device("auto") == keras_device.choose_device("cpu") == ""
    with pytest.raises(JobError, match="TensorFlow sees no CUDA device"):
        create(of(tmp_path, device="cuda"))


def test_a_network_computes_in_bfloat16_with_weights_and_outputs_of_float32(tmp_path: Path) -> None:
    whole: Any = create(of(tmp_path / "whole"))
    half: Any = create(of(tmp_path / "half", precision="bfloat16"))
    assert keras.config.dtype_policy().name == "float32"
    assert {layer.compute_dtype for layer in half.model.layers} == {"bfloat16"}
    losses = [adapter.train(ROWS) for adapter in (whole, half)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)
    assert not np.array_equal(losses[1], losses[0])
    assert {array.dtype.name for array in half.get_weights().values()} == {"float32"}
    assert {value.dtype.name for value in gradients(half, FEATURES, LABELS).values.values()} == {"float32"}
    found = half.evaluate(FEATURES, LABELS)
    assert found.outputs.dtype == np.float32
    assert np.array_equal(found.outputs, half.predict(FEATURES))
    weights, state = half.get_weights(), half.get_state()
    half.train(ROWS)
    expected = half.get_weights()
    half.set_weights(weights)
    half.set_state(state)
    half.train(ROWS)
    for name, value in half.get_weights().items():
        np.testing.assert_array_equal(value, expected[name])


def test_float16_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="models of Keras don't compute in float16"):
        create(of(tmp_path, precision="float16"))


@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="no CUDA device")
def test_cuda_gives_the_weights_of_the_cpu_up_to_rounding(tmp_path: Path) -> None:
    found = []
    for device in ("cuda", "cpu"):
        adapter = create(of(tmp_path / device, device=device))
        assert device == "cpu" or "GPU" in adapter.model.trainable_variables[0].value.device
        adapter.train(ROWS)
        found.append(adapter.get_weights())
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-6)
