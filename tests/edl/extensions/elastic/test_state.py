"""State of a script's objects as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edl.errors import JobError, SemanticError
from edl.extensions.elastic.cursor import Cursor, Positions
from edl.extensions.elastic.state import ScriptState, flatten_tree, restore_tree, stateful
from edl.jobs.script_run import NamedRows


def trained(seed: int) -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1 * (seed + 1))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=10)
    for _ in range(seed + 1):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


def test_objects_continue_with_the_state_of_others() -> None:
    ours, theirs = trained(0), trained(1)
    ScriptState(ours).set_weights(ScriptState(theirs).get_weights())
    ScriptState(ours).set_state(ScriptState(theirs).get_state())
    rows = torch.randn(5, 3)
    for model, optimizer, scheduler in (ours, theirs):
        optimizer.zero_grad()
        model(rows).square().sum().backward()
        optimizer.step()
        scheduler.step()
    for mine, other in zip(ours[0].state_dict().values(), theirs[0].state_dict().values(), strict=True):
        assert torch.equal(mine, other)
    assert ours[2].get_last_lr() == theirs[2].get_last_lr()


def test_a_tree_comes_back_as_it_was() -> None:
    tree = {
        1: [torch.tensor(True), torch.empty(0, 2), torch.tensor([1.5], dtype=torch.bfloat16)],
        "a": ({"b": None, "c": float("inf")}, np.float32(0.5), "text", [True]),
    }
    found = restore_tree({name: array.copy() for name, array in flatten_tree(tree).items()})
    assert [each.dtype for each in found[1]] == [torch.bool, torch.float32, torch.bfloat16]
    assert [each.tolist() for each in found[1]] == [True, [], [1.5]]
    assert found["a"] == ({"b": None, "c": float("inf")}, 0.5, "text", [True])


def test_what_is_no_state_is_named() -> None:
    with pytest.raises(JobError, match=r"has a function at 0\.rule"):
        flatten_tree([{"rule": lambda step: step}])
    with pytest.raises(SemanticError, match="a int has no state_dict"):
        stateful(1)
    with pytest.raises(JobError, match="different objects"):
        ScriptState(trained(0)[:1]).set_state(flatten_tree([{}]))


def test_a_cut_has_the_arrays_of_its_moment() -> None:
    model = nn.Linear(1, 1)
    state = ScriptState((model, torch.optim.SGD(model.parameters(), 0.1)))
    expected = {name: array.copy() for name, array in state.get_weights().items()}
    read = state.cut()
    with torch.no_grad():
        model.weight.add_(1.0)
    weights, _ = read()
    assert weights.keys() == expected.keys()
    assert all(np.array_equal(weights[name], expected[name]) for name in expected)
    assert not all(np.array_equal(state.get_weights()[name], expected[name]) for name in expected)


def test_positions_of_an_earlier_checkpoint_are_loaded() -> None:
    positions = Positions()
    positions.of["train"] = cursor = Cursor("train", NamedRows(100, 10, 3, shuffle=True), 0)
    positions.load_state_dict({"positions": {"train": [1, 40, True]}, "trained": 14, "ended": False})
    assert cursor.position() == [1, 40, True, False]
