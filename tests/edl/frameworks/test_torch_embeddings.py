"""Row tables in PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from edl.frameworks import Minibatches
from tests.edl.frameworks.row_cases import FEATURES, LABELS, TORCH, RowCases, create


class TestTorch(RowCases):
    framework = "torch"
    model = TORCH
    computed = ('self.both(features["f0"], features["f1"])', 'self.both(features["f0"] + 1, features["f1"])')
    other_dim = ('self.again = Embedding("both", 3', 'self.again = Embedding("both", 2')
    own_optimizer = """

class Own(torch.optim.SGD):
    pass


def optimizer(parameters):
    return Own(parameters, 0.1)
"""
    bag = """

from edl.torch import Embedding


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tags = Embedding("tags", 1, COMBINER, num_ids=20)
        self.none = nn.Parameter(torch.zeros(1))  # an optimizer of torch wants one

    def forward(self, features):
        return self.tags(features["tags"]) + 0 * self.none


def optimizer(parameters):
    return torch.optim.SGD(parameters, 0.1)
"""
    helpers = """

from edl.torch import WeightedSum, clipped

FEATURES = fc.Features(*(fc.embedding(CATEGORY, dim=4, table=TABLE) for name in NAMES))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first_order = WeightedSum(FEATURES)
        self.features = Concatenated(FEATURES)
        self.hidden = nn.Linear(FEATURES.width, 8)
        self.output = nn.Linear(8, 1)

    def forward(self, features):
        return self.first_order(features) + self.output(torch.tanh(self.hidden(self.features(features))))


def optimizer(parameters):
    return clipped(torch.optim.SGD(parameters, 0.1), OPTIONS)
"""

    def dense(self, weights: dict[str, Any]) -> tuple[Any, Any]:
        return weights["output.weight"].T, weights["output.bias"]

    def outputs(self, model: Any, features: Any = FEATURES) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = model({k: torch.from_numpy(v) for k, v in features.items()}).numpy()
        return found


class Reference(nn.Module):
    """The model of `TORCH` with PyTorch's own sparse embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Embedding(30, 3, sparse=True)
        self.bag = nn.Embedding(12, 2, sparse=True)
        self.output = nn.Linear(12, 1)

    def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
        both = torch.cat([self.both(features[name]) for name in ("f0", "f1", "f1")], dim=1)
        bag = self.bag(features["many"]).mean(dim=1)
        found: torch.Tensor = self.output(torch.cat([features["x"], both, bag], dim=1))
        return found


def test_epochs_equal_sparse_embeddings_and_sparse_adam(tmp_path: Path) -> None:
    adapter = create(TestTorch().program(tmp_path))
    model, tables = Reference(), adapter.tables
    start = {f"{name}.weight": torch.from_numpy(tables.whole(name)) for name in ("both", "bag")}
    model.load_state_dict(start | adapter.model.state_dict())
    optimizers = [
        torch.optim.SparseAdam([model.both.weight, model.bag.weight], lr=0.01),
        torch.optim.Adam(model.output.parameters(), lr=0.01),
    ]
    tensors, labels = {k: torch.from_numpy(v) for k, v in FEATURES.items()}, torch.from_numpy(LABELS)
    for _ in range(3):
        for first in range(0, len(labels), 16):
            rows = slice(first, first + 16)
            model.zero_grad()
            outputs = model({name: tensor[rows] for name, tensor in tensors.items()})
            nn.functional.mse_loss(outputs, labels[rows]).backward()
            for each in optimizers:
                each.step()
        adapter.train(Minibatches(FEATURES, LABELS, 16))
    for name in ("both", "bag"):
        expected = getattr(model, name).weight.detach().numpy()
        np.testing.assert_allclose(tables.whole(name), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(adapter.predict(FEATURES), model(tensors).detach().numpy(), atol=1e-5)
