"""PyTorch behind the adapter's contract."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch

from edl import frameworks
from edl.frameworks import Minibatches
from tests.edl.frameworks.adapter_cases import FEATURES, LABELS, AdapterCases, create, program
from tests.edl.frameworks.exchanging import gradients

ADAM = "torch.optim.Adam(parameters, lr, fused=True)"


class TestTorch(AdapterCases):
    framework = "torch"
    bad_output = (
        "torch.relu(self.hidden(self.features(features))))",
        "torch.relu(self.hidden(self.features(features)))).ravel()",
    )
    scalar_loss = ('reduction="none"', 'reduction="mean"')
    normalised = (
        "        self.output = nn.Linear(16, 1)",
        "        self.output = nn.Sequential(nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 1))",
    )
    sgd = (
        "\n\nfrom edl.torch import clipped\n\n\n"
        "def optimizer(parameters):\n    return clipped(torch.optim.SGD(parameters, 1.0), OPTION)\n"
    )
    not_elsewhere = (
        ((ADAM, "torch.optim.Adam([{'params': [p]} for p in parameters], lr)"), "has 4 groups of parameters"),
        ((ADAM, "torch.optim.Adam(parameters[1:], lr)"), "does not move the parameter hidden.weight"),
        (
            (
                "        self.output =",
                "        self.own = nn.Parameter(torch.ones(1).double())\n        self.output =",
            ),
            "own is float64; parameter servers hold float32",
        ),
        ((ADAM, "torch.optim.Rprop(parameters, lr)"), "cannot follow the optimizer Rprop"),
    )


def test_parameters_have_their_paths_as_names(tmp_path: Path) -> None:
    names = create(program(tmp_path, "torch")).get_weights()
    assert list(names) == ["hidden.weight", "hidden.bias", "output.weight", "output.bias"]


def test_read_only_arrays_are_fine(tmp_path: Path) -> None:
    features, labels = FEATURES["dense"].copy(), LABELS.copy()
    features.flags.writeable = labels.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = create(program(tmp_path, "torch")).train(Minibatches({"dense": features}, labels, 32))
    assert len(losses) == 2


def test_lazy_layers_take_their_shape_from_the_first_rows(tmp_path: Path) -> None:
    edit = {"nn.Linear(FEATURES.width, 16)": "nn.LazyLinear(16)"}
    adapter = create(program(tmp_path, "torch", replace=edit))
    assert adapter.get_weights()["hidden.weight"].shape == (16, 1)
    assert np.isfinite(adapter.train(Minibatches(FEATURES, LABELS, 32))).all()


def test_frozen_parameters_stay(tmp_path: Path) -> None:
    edit = {
        "        self.output =": "        self.hidden.weight.requires_grad = False\n        self.output ="
    }
    adapter = create(program(tmp_path, "torch", replace=edit))
    before = adapter.get_weights()
    adapter.train(Minibatches(FEATURES, LABELS, 16))
    after = adapter.get_weights()
    assert np.array_equal(before["hidden.weight"], after["hidden.weight"])
    assert not np.array_equal(before["output.weight"], after["output.weight"])
    assert "hidden.weight" not in gradients(adapter, FEATURES, LABELS).values


def test_threads_share_large_work_only(tmp_path: Path) -> None:
    subject = program(tmp_path, "torch", replace={"nn.Linear(FEATURES.width, 16)": "nn.Linear(1, 16)"})
    frameworks.prepare("torch", 2)
    adapter = create(subject)
    adapter.train(Minibatches(FEATURES, LABELS, 16))
    assert torch.get_num_threads() == 1
    adapter.train(Minibatches(FEATURES, LABELS, 10_000_000))
    assert torch.get_num_threads() == 2
