"""What an exported model does with lists of ids, and with the members of an ensemble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import edl
from edl import features as fc
from edl import spec
from edl.errors import JobError
from edl.frameworks import export
from edl.frameworks.export import average_members, check_lists
from edl.frameworks.keras.layers import keras

LISTS = {"tags": edl.Ragged([1, 4, 2], [0, 1, 3])}


class Sum(nn.Module):
    """Of the ids of each row, as a row table would give one number for each."""

    def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
        return features["tags"].clamp(min=0).sum(dim=1, keepdim=True)


class Count(nn.Module):
    """A model that takes the numbers of ids, which it was given in training."""

    def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
        return features["tags"].reshape(-1, 1).float()


def test_a_model_that_reads_row_tables_alone_gives_the_same_outputs() -> None:
    check_lists("torch", Sum(), LISTS, np.array([[1], [6]]))


@pytest.mark.parametrize(("model", "wanted"), [(Count(), [[1], [2]]), (Sum(), [[1], [7]])])
def test_a_model_that_counts_its_lists_is_not_exported(model: nn.Module, wanted: list[list[int]]) -> None:
    with pytest.raises(JobError, match="does more with lists of ids than to read row tables"):
        check_lists("torch", model, LISTS, np.array(wanted))


def test_features_without_lists_are_not_looked_at() -> None:
    check_lists("torch", Count(), {"x": np.zeros((2, 1), np.float32)}, np.zeros((2, 1)))


LABELS = [
    spec.RegressionLabel("y"),
    spec.ClassLabel("y", (False, True)),
    spec.ClassLabel("y", ("a", "b", "c")),
]


@pytest.mark.parametrize("framework", ["keras", "torch"])
@pytest.mark.parametrize("label", LABELS)
def test_an_exported_ensemble_gives_the_scores_of_all_its_members(framework: str, label: spec.Label) -> None:
    outputs = np.random.default_rng(3).normal(0, 2, (5, 4, label.outputs)).astype(np.float32)
    if framework == "keras":
        given = keras.Input((4, label.outputs))
        found = average_members("keras", keras.Model(given, given + 0.0), label)(outputs).numpy()
    else:
        found = average_members("torch", nn.Identity(), label)(torch.from_numpy(outputs)).numpy()
    assert found.shape == (5, label.outputs)
    target = fc.target(label)
    assert target.scores(found) == pytest.approx(target.scores(outputs), rel=1e-5)


def test_a_layer_without_settings_is_an_error_that_names_the_other_format(tmp_path: Path) -> None:
    class Unsaved:
        def save(self, path: Path) -> None:
            raise NotImplementedError("\nObject OperationLayer was created by passing\nnon-serializable")

    with pytest.raises(JobError, match="the model has a layer OperationLayer without any") as raised:
        export.export("keras", Unsaved(), {}, tmp_path / "m.keras")
    assert raised.value.hint == "write a SavedModel: --output FOLDER, without a suffix"
