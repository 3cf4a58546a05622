"""What an exported model does with lists of ids."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import edl
from edl.errors import JobError
from edl.frameworks.export import check_lists

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
