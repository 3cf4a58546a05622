"""PyTorch on another device than the CPU: one that is simulated, which any machine has, and CUDA where there is one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Adapter, Minibatches
from edl.frameworks import device as devices
from edl.frameworks.torch import device as torch_device
from edl.frameworks.torch.clusters import squared_distances
from edl.frameworks.torch.device import CPU, GENERATOR, ON_DEVICE, RandomNumbers
from edl.frameworks.torch.isolation_forest import IsolationForest
from edl.frameworks.torch.layers import by_class
from edl.spec.job import Device, Precision
from tests.edl.frameworks import test_torch_adapter, test_torch_embeddings
from tests.edl.frameworks.adapter_cases import FEATURES, LABELS, create, program, same
from tests.edl.frameworks.exchanging import gradients
from tests.edl.frameworks.simulated_device import DEVICE, Simulation

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """CUDA, which `auto` takes, or the simulated device."""
    if torch.cuda.is_available():
        monkeypatch.setenv(devices.AUTO, "cuda")
        yield
        return
    monkeypatch.setattr(torch_device, "choose_device", lambda wanted: DEVICE)
    with Simulation():
        yield


@pytest.mark.soak(
    "test_each_step_has_the_rate_it_is_given",
    "test_parameters_buffers_and_random_numbers_are_all_that_a_gradient_depends_on",
    "test_parameters_that_are_handed_out_are_copies",
    "test_shares_that_are_added_up_are_a_step",
    "test_steps_in_one_call_equal_steps_in_several",
    "test_the_same_seed_gives_the_same_weights_bit_for_bit",
    "test_training_goes_on_from_weights_and_state_as_if_nothing_had_been",
    "test_gradients_applied_equal_a_step",
)
@pytest.mark.usefixtures("elsewhere")
class TestAdapter(test_torch_adapter.TestTorch):
    """All that an adapter owes. Its state is compared bit for bit, its numbers with NumPy's."""


@pytest.mark.soak(
    "test_gradients_applied_equal_a_step",
    "test_outputs_are_what_rows_and_weights_give",
    "test_rows_may_be_handed_in_and_are_read_from_any_source",
    "test_sgd_moves_rows_as_it_moves_embeddings_in_the_graph",
    "test_steps_in_one_call_equal_steps_in_several",
    "test_the_same_seed_gives_the_same_rows_bit_for_bit",
    "test_training_goes_on_from_weights_and_the_slots_of_rows",
    "test_limits_of_the_job_hold_for_its_tables_and_are_part_of_its_state",
    "test_lists_of_two_columns_share_one_table",
)
@pytest.mark.usefixtures("elsewhere")
class TestRows(test_torch_embeddings.TestTorch):
    """The same of a model that reads row tables."""


@pytest.mark.usefixtures("elsewhere")
def test_arrays_that_leave_the_adapter_are_on_the_cpu(tmp_path: Path) -> None:
    adapter = create(program(tmp_path, "torch"))
    rows = Minibatches(FEATURES, LABELS, 16)
    adapter.train(rows)
    weights, state = adapter.get_weights(), adapter.get_state()
    values = gradients(adapter, FEATURES, LABELS).values
    assert {type(value) for value in values.values()} == {np.ndarray}
    assert all(parameter.device.type != "cpu" for parameter in adapter.model.parameters())
    assert all(parameter.is_cpu for parameter in adapter.standalone().parameters())
    assert {type(array) for array in (weights | state).values()} == {np.ndarray}


def test_a_checkpoint_of_a_device_goes_on_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated device takes the same steps as the CPU, so the weights are equal in all bits."""
    rows = Minibatches(FEATURES, LABELS, 16)
    subject = program(tmp_path, "torch")
    alone = create(subject)
    alone.train(rows)
    alone.train(rows)
    with monkeypatch.context() as patch, Simulation():
        patch.setattr(torch_device, "choose_device", lambda wanted: DEVICE)
        first = create(subject)
        first.train(rows)
        weights, state = first.get_weights(), first.get_state()
    second = create(subject, seed=9)
    second.set_weights(weights)
    second.set_state(state)
    second.train(rows)
    assert same(second.get_weights(), alone.get_weights())


@NO_CUDA
def test_cuda_gives_the_weights_of_the_cpu_up_to_rounding(tmp_path: Path) -> None:
    weights = [trained(tmp_path, device) for device in ("cpu", "cuda")]
    for name, value in weights[0].items():
        np.testing.assert_allclose(weights[1][name], value, rtol=1e-4, atol=1e-6)


@NO_CUDA
def test_cuda_computes_float32_with_all_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """TF32 has an error of 3e-4 here."""
    kept = [(each, each.fp32_precision) for each in (torch.backends.cudnn.conv, torch.backends.cudnn.rnn)]
    monkeypatch.setattr(devices, "_own_process", True)
    device = torch_device.choose_device("cuda")
    rows, weights = torch.randn(8, 64, 256), torch.randn(64, 64, 3)
    for function, given in ((torch.matmul, (rows, rows.mT)), (torch.conv1d, (rows, weights))):
        exact = function(*(each.double() for each in given))
        found = function(*(each.to(device) for each in given)).cpu()
        assert ((found - exact).norm() / exact.norm()).item() < 1e-5
    for each, precision in kept:
        each.fp32_precision = precision


@NO_CUDA
@pytest.mark.parametrize("devices", [("cuda", "cpu"), ("cpu", "cuda")])
def test_a_checkpoint_goes_on_on_the_other_device(tmp_path: Path, devices: tuple[Device, Device]) -> None:
    rows = Minibatches(FEATURES, LABELS, 16)
    first, second, alone = (on(tmp_path, device) for device in (*devices, "cpu"))
    for adapter in (first, alone, alone):
        adapter.train(rows)
    second.set_weights(first.get_weights())
    second.set_state(first.get_state())
    second.train(rows)
    for name, value in alone.get_weights().items():
        np.testing.assert_allclose(second.get_weights()[name], value, rtol=1e-4, atol=1e-6)


@NO_CUDA
@pytest.mark.parametrize("precision", get_args(Precision))
def test_two_trainings_on_cuda_are_equal(tmp_path: Path, precision: Precision) -> None:
    assert same(*(trained(tmp_path, "cuda", precision) for _ in range(2)))


def trained(folder: Path, device: Device, precision: Precision = "float32") -> dict[str, Any]:
    """The weights after an epoch."""
    adapter = on(folder, device, precision)
    adapter.train(Minibatches(FEATURES, LABELS, 16))
    return adapter.get_weights()


def on(folder: Path, device: Device, precision: Precision = "float32") -> Adapter:
    """The program's adapter on a device."""
    subject = program(folder, "torch")
    changed = msgspec.structs.replace(subject.spec, device=device, precision=precision)
    return create(dataclasses.replace(subject, spec=changed))


def test_equal_seeds_give_equal_weights_in_each_precision(tmp_path: Path) -> None:
    weights = [trained(tmp_path, "cpu", precision) for precision in ("float32", "float32", "bfloat16")]
    assert same(weights[0], weights[1])
    assert not same(weights[0], weights[2])


def test_workers_share_the_devices_of_their_machine_by_their_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.AUTO, raising=False)
    monkeypatch.delenv(devices.LOCAL_RANK, raising=False)
    monkeypatch.setenv(devices.WORKER_NUMBER, "")
    assert [devices.choose("auto", count, "PyTorch", with_cuda=True) for count in (0, 1, 4)] == [None, 0, 0]
    chosen = []
    for name in ("worker-0", "worker-1", "worker-2", "worker-13"):
        monkeypatch.setenv(devices.LOCAL_RANK, "")
        devices.set_ranks(name)
        chosen.append(devices.choose("cuda", 3, "PyTorch", with_cuda=True))
    assert chosen == [0, 1, 2, 1]
    devices.set_ranks("worker-2", in_pods=True)
    assert devices.worker_number() == 2  # everywhere, though it is alone on its machine
    assert devices.choose("cuda", 3, "PyTorch", with_cuda=True) == 0
    assert devices.choose("cpu", 3, "PyTorch", with_cuda=True) is None


def test_a_device_that_is_wanted_and_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    with pytest.raises(JobError, match="device is cuda, and PyTorch sees no CUDA device") as found:
        devices.choose("cuda", 0, "PyTorch", with_cuda=True)
    assert found.value.hint == "check nvidia-smi"
    monkeypatch.setenv(devices.VISIBLE, "")
    with pytest.raises(JobError) as found:
        devices.choose("cuda", 0, "PyTorch", with_cuda=True)
    assert found.value.hint == "CUDA_VISIBLE_DEVICES is '' here"
    with pytest.raises(JobError) as found:
        devices.choose("cuda", 0, "PyTorch", with_cuda=False)
    assert "an image has it with the build argument DEVICE=gpu" in str(found.value.hint)


def test_the_process_that_forks_workers_leaves_cuda_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A forked process cannot use it if the other one did."""

    def touched(*_: object) -> None:
        raise AssertionError("CUDA was used")

    for name in ("is_available", "device_count", "_lazy_init"):
        monkeypatch.setattr(torch.cuda, name, touched)
    frameworks.prepare("torch", 1)
    frameworks.seed_everything("torch", 1)
    with pytest.raises(AssertionError, match="CUDA was used"):
        torch_device.choose_device("auto")
    assert torch_device.choose_device("cpu") == CPU


def test_a_worker_takes_its_gpu_among_those_that_pytorch_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    monkeypatch.delenv(devices.AUTO, raising=False)
    monkeypatch.setenv(devices.LOCAL_RANK, "3")
    before = torch.backends.cudnn.conv.fp32_precision
    for own in (False, True):  # a process of the user stays as it is
        monkeypatch.setattr(devices, "_own_process", own)
        assert torch_device.choose_device("auto") == torch.device("cuda", 1)
        assert taken == [1] * own
    assert torch.backends.cudnn.conv.fp32_precision == "ieee"
    torch.backends.cudnn.conv.fp32_precision = torch.backends.cudnn.rnn.fp32_precision = before


def test_a_machine_says_what_auto_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.AUTO, "cpu")
    assert devices.choose("auto", 2, "PyTorch", with_cuda=True) is None
    assert devices.choose("cuda", 2, "PyTorch", with_cuda=True) == 0
    monkeypatch.setenv(devices.AUTO, "cuda")
    with pytest.raises(JobError, match="sees no CUDA device"):
        devices.choose("auto", 0, "PyTorch", with_cuda=True)
    monkeypatch.setenv(devices.AUTO, "gpus")
    with pytest.raises(JobError, match="EDL_DEVICE is 'gpus'"):
        devices.choose("auto", 2, "PyTorch", with_cuda=True)


def test_random_numbers_of_a_device_are_a_part_of_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint may come from, or go to, a process without a GPU."""
    seeds = {"cuda": torch.arange(16, dtype=torch.uint8)}
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: seeds["cuda"])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: seeds.update(cuda=state))
    cpu, cuda = RandomNumbers(CPU), RandomNumbers(torch.device("cuda", 0))
    state, packed = cuda.state(), cuda.pack()
    assert list(state) == [GENERATOR, ON_DEVICE]
    for set_it in (lambda: cuda.set_state(state), lambda: cuda.unpack(packed)):
        seeds["cuda"] = torch.zeros(16, dtype=torch.uint8)
        torch.manual_seed(7)
        set_it()
        assert torch.equal(seeds["cuda"], torch.arange(16, dtype=torch.uint8))
        assert same(cpu.state(), {GENERATOR: state[GENERATOR]})
    torch.manual_seed(7)
    cpu.unpack(packed)
    cuda.unpack(cpu.pack())
    cpu.set_state(state)
    assert same(cuda.state(), state)


def test_functions_of_programs_compute_where_their_rows_are() -> None:
    rows = torch.from_numpy(np.random.default_rng(3).normal(size=(64, 2)).astype(np.float32))
    labels, forest = torch.arange(4) % 2, IsolationForest(8, 16, 2, 0.1)
    forest(rows)  # grows the trees
    found = [by_class(labels, (1.0, 5.0)), squared_distances(rows, rows[:3]), forest(rows).detach()]
    with Simulation():
        rows, labels = rows.to(DEVICE), labels.to(DEVICE)
        there = [
            by_class(labels, (1.0, 5.0)),
            squared_distances(rows, rows[:3]),
            forest.to(DEVICE)(rows).detach(),
        ]
        assert all(tensor.device == DEVICE for tensor in there)
        for one, other in zip(found, there, strict=True):
            np.testing.assert_array_equal(other.cpu().numpy(), one.numpy())


def test_the_log_of_a_job_says_once_what_it_computes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "_own_process", False)
    for own in (False, True, True):
        devices.begin(own_process=own)
        told: tuple[Precision, ...] = ("float32", "bfloat16", "bfloat16")
        for precision in told:
            devices.tell("auto", "cuda:1 (H100)", precision)
        devices.tell("cpu", "cpu", "float32")  # as of an export, which has no choice
    lines = [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["device: cuda:1 (H100)", "device: cuda:1 (H100), precision: bfloat16"] * 2


class Transfers(TorchFunctionMode):
    """Record of what CUDA is asked for, which leaves tensors where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.Tensor.pin_memory, torch.Tensor.to):
            self.asked.append((func.__name__, *args[1:], *(kwargs or {}).items()))
            return args[0]
        return func(*args, **(kwargs or {}))


def test_rows_go_to_cuda_from_pinned_memory_while_the_cpu_goes_on() -> None:
    device = torch.device("cuda", 1)
    with Transfers() as transfers:
        torch_device.transfer_to(device)(FEATURES["dense"])
    assert transfers.asked == [("pin_memory",), ("to", device, ("non_blocking", True))]
    assert torch_device.transfer_to(CPU) is torch_device.own_tensor
