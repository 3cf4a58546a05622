"""Mixed precision in PyTorch, on the CPU: bfloat16, and what float16 does on a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from edl.errors import JobError
from edl.frameworks import Adapter, Minibatches
from edl.frameworks.exchange import Slice
from edl.frameworks.torch import precision as torch_precision
from tests.edl.frameworks.adapter_cases import FEATURES, LABELS, create, program, same
from tests.edl.frameworks.exchanging import gradients
from tests.edl.frameworks.reducing import NO_ROWS, compute_part, take_step
from tests.edl.frameworks.row_cases import FEATURES as ROW_FEATURES
from tests.edl.frameworks.row_cases import LABELS as ROW_LABELS
from tests.edl.frameworks.row_cases import create as create_rows
from tests.edl.frameworks.test_torch_embeddings import TestTorch as RowCases

SCALE = 1024.0  # at first, so that the gradients here don't overflow
ROWS = Minibatches(FEATURES, LABELS, 16)
NORMALISED = (
    "        self.output = nn.Linear(16, 1)",
    "        self.output = nn.Sequential(nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))",
)


def of(folder: Path, precision: str, **options: Any) -> Any:
    subject = program(folder / precision, "torch", **options)
    return replace(subject, spec=msgspec.structs.replace(subject.spec, precision=precision))


@pytest.fixture
def float16_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU compute as a GPU does, slowly."""
    monkeypatch.setattr(torch_precision, "choose_precision", lambda spec, device: spec.precision)
    monkeypatch.setattr(torch_precision, "FIRST", SCALE)


def dtypes(adapter: Adapter) -> list[torch.dtype]:
    """The types of what the hidden layer gives in prediction."""
    found: list[torch.dtype] = []
    adapter.model.hidden.register_forward_hook(lambda *given: found.append(given[-1].dtype))
    adapter.predict(FEATURES)
    return found


def test_a_network_computes_in_bfloat16_with_weights_and_outputs_of_float32(tmp_path: Path) -> None:
    whole, half = (create(of(tmp_path, precision)) for precision in ("float32", "bfloat16"))
    assert same(whole.get_weights(), half.get_weights())
    assert (dtypes(whole), dtypes(half)) == ([torch.float32], [torch.bfloat16])
    losses = [adapter.train(ROWS) for adapter in (whole, half)]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)
    assert not np.array_equal(losses[1], losses[0])
    for adapter in (whole, half):
        assert {array.dtype.name for array in adapter.get_weights().values()} == {"float32"}
        assert adapter.predict(FEATURES).dtype == np.float32
    found = half.evaluate(FEATURES, LABELS)
    assert np.array_equal(found.outputs, half.predict(FEATURES))
    values = gradients(half, FEATURES, LABELS).values
    assert {value.dtype.name for value in values.values()} == {"float32"}


def test_training_in_bfloat16_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    subject = of(tmp_path, "bfloat16", replace=dict([NORMALISED]))
    first, second = create(subject), create(subject, seed=9)
    first.train(ROWS)
    weights, state = first.get_weights(), first.get_state()
    first.train(ROWS)
    second.set_weights(weights)
    second.set_state(state)  # with the random numbers, which belong to the process
    second.train(ROWS)
    assert same(second.get_weights(), first.get_weights())


def test_shares_in_bfloat16_are_a_step(tmp_path: Path) -> None:
    subject = of(tmp_path, "bfloat16")
    local, member = create(subject), create(subject)
    rows = Minibatches(FEATURES, LABELS, 64)
    [loss] = local.train(rows)
    assert compute_part(member, rows, Slice(0, 40, 0.625, NO_ROWS)).dtype == np.float32
    assert take_step(member, rows, (0, 40, 64)) == pytest.approx(float(loss), rel=0.01)
    for name, value in member.get_weights().items():
        np.testing.assert_allclose(value, local.get_weights()[name], rtol=0.05, atol=2e-3)


def test_rows_of_tables_are_trained_in_bfloat16(tmp_path: Path) -> None:
    subject = RowCases().program(tmp_path)
    adapter = create_rows(replace(subject, spec=msgspec.structs.replace(subject.spec, precision="bfloat16")))
    losses = [adapter.train(Minibatches(ROW_FEATURES, ROW_LABELS, 16)).mean() for _ in range(3)]
    assert losses[2] < losses[0]
    assert adapter.get_weights()["both:rows"].dtype == np.float32


def test_the_cpu_trains_no_model_in_float16_but_uses_one_in_float32(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="float16 computes on GPUs only") as found:
        create(of(tmp_path, "float16"))
    assert found.value.hint == "use bfloat16, which any CPU computes, or float32"
    trained = of(tmp_path / "trained", "float16")
    used: Any = create(
        replace(trained, spec=msgspec.structs.replace(trained.spec, kind="predict")), labels=None
    )
    assert dtypes(used) == [torch.float32]


@pytest.mark.usefixtures("float16_anywhere")
def test_gradients_of_a_scaled_loss_equal_the_gradients_of_the_loss(tmp_path: Path) -> None:
    half, whole = create(of(tmp_path, "float16")), create(program(tmp_path, "torch"))
    assert dtypes(half) == [torch.float16]
    expected = gradients(whole, FEATURES, LABELS).values
    for name, value in gradients(half, FEATURES, LABELS).values.items():
        np.testing.assert_allclose(value, expected[name], rtol=0.02, atol=1e-3)
    np.testing.assert_allclose(half.train(ROWS), whole.train(ROWS), rtol=0.02)


@pytest.mark.usefixtures("float16_anywhere")
def test_a_step_is_left_out_by_all_members_if_its_gradients_overflow(tmp_path: Path) -> None:
    subject = of(tmp_path, "float16")
    local, member = create(subject), create(subject)
    before = local.get_weights()
    high = Minibatches(FEATURES, LABELS * 1e5, 64)  # the gradients, times the scale, are beyond float16
    local.train(high)
    take_step(member, high, (0, 40, 64))
    for adapter in (local, member):
        assert same(adapter.get_weights(), before)
        assert adapter.get_state()["loss_scale"] == SCALE / 2
    local.train(ROWS)
    assert not same(local.get_weights(), before)
    state = local.get_state()
    assert (state["loss_scale"], state["loss_scale.steps"]) == (SCALE / 2, 4)
    other = create(subject)
    other.set_state(state)
    assert other.get_state()["loss_scale"] == SCALE / 2


def test_the_scale_grows_after_steps_that_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_precision, "STEPS_TO_GROW", 3)
    scale = torch_precision.LossScale()
    assert [scale.passes([torch.ones(2)]) for _ in range(3)] == [True] * 3
    assert scale.get_state() == {"loss_scale": torch_precision.FIRST * 2, "loss_scale.steps": 0}
    assert not scale.passes([torch.ones(2), torch.tensor([torch.nan])])
    assert scale.get_state()["loss_scale"] == torch_precision.FIRST
