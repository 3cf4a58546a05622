"""Threads of small models: the faster number of them is taken, and nobody sees which one it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from edl import frameworks
from edl.frameworks import Minibatches
from edl.frameworks.torch.adapter import TorchAdapter
from edl.frameworks.torch.threads import LEAST_PAUSE, MOST_PAUSE, PATIENCE, TRIAL, ThreadChoice, Threads
from edl.program import Program, load
from edl.spec import Rows
from tests.edl.programs import simple

MODEL = """

def custom_model():
    return nn.Sequential(
        nn.Linear(20, 100), nn.ReLU(), {more}nn.Linear(100, 150), nn.Dropout(0.3), nn.Linear(150, 50), nn.Linear(50, 1)
    )
"""
ROWS = Minibatches(
    np.random.default_rng(1).standard_normal((2_000, 20), np.float32), np.ones((2_000, 1), np.float32), 512
)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    frameworks.prepare("torch", 1)
    torch.set_num_threads(before)


def program(folder: Path, more: str = "") -> Program:
    return load(simple(folder, rows=Rows(True, 2_000, 2_000), append=MODEL.format(more=more)))


def adapter(program: Program, threads: int) -> TorchAdapter:
    frameworks.prepare("torch", threads)
    made: Any = frameworks.create(program, ROWS.features[:2], ROWS.labels[:2], seed=1)
    return made


def choose_ways(choice: ThreadChoice, steps: int, *seconds: float) -> list[int]:
    """The ways that steps went, each of which takes so long."""
    ways = []
    for _ in range(steps):
        ways.append(choice.way)
        choice.took(seconds[choice.way])
    return ways


def test_the_faster_way_is_found_by_one_trial_and_kept() -> None:
    choice = ThreadChoice()
    assert choose_ways(choice, TRIAL, 1.0, 0.8) == [0] * TRIAL
    ways = choose_ways(choice, 10_000, 1.0, 0.8)
    assert ways[: TRIAL + LEAST_PAUSE] == [1] * (TRIAL + LEAST_PAUSE)
    assert 0.98 < sum(ways) / len(ways) < 1  # the other one is tried too


def test_a_way_that_is_hardly_faster_is_not_taken() -> None:
    assert sum(choose_ways(ThreadChoice(), 10_000, 1.0, 0.99)) < 10 * TRIAL


def test_a_trial_ends_with_its_first_slow_step_and_trials_become_rare() -> None:
    ways = choose_ways(ThreadChoice(), 3 * MOST_PAUSE, 1.0, 80.0)
    tried = [number for number, way in enumerate(ways) if way]
    pauses = np.diff(tried)
    assert pauses.tolist() == [1 + 16 * LEAST_PAUSE, 1 + MOST_PAUSE, 1 + MOST_PAUSE]


def test_the_way_is_left_when_something_else_needs_the_cores_and_found_again_later() -> None:
    choice = ThreadChoice()
    choose_ways(choice, 200, 1.0, 0.8)
    assert choose_ways(choice, 50, 1.0, 80.0) == [1] * PATIENCE + [0] * (50 - PATIENCE)
    assert choose_ways(choice, 5_000, 1.0, 0.8)[-1] == 1


def test_one_slow_step_is_no_reason_to_leave() -> None:
    choice = ThreadChoice()
    choose_ways(choice, TRIAL + TRIAL + 1, 1.0, 0.8)
    choice.took(80.0)
    assert choice.way == 1


@pytest.mark.variants(2)
@pytest.mark.parametrize("way", [0, 1])
@pytest.mark.parametrize("more", ["", "nn.BatchNorm1d(100), "], ids=["plain", "normalised"])
def test_threads_leave_no_trace_in_the_model(
    tmp_path: Path, more: str, way: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where two threads would, which add up a normalisation's sums in another order."""
    found = program(tmp_path, more)
    alone = adapter(found, 1)
    losses = [alone.train(ROWS).tobytes() for _ in range(3)]
    monkeypatch.setattr(ThreadChoice, "took", lambda self, seconds: setattr(self, "way", way))
    shared = adapter(found, 2)
    assert [shared.train(ROWS).tobytes() for _ in range(3)] == losses
    assert {name: array.tobytes() for name, array in shared.get_weights().items()} == {
        name: array.tobytes() for name, array in alone.get_weights().items()
    }
    assert torch.get_num_threads() == 1


def test_few_threads_are_only_taken_where_they_give_the_same_bits() -> None:
    def gradients_of(differ: int) -> list[torch.Tensor]:
        return [torch.ones(3), torch.full((2,), 1 + 1e-7 * (torch.get_num_threads() == differ))]

    threads = Threads(4, 10_000)
    for rows, (differ, few) in enumerate(((4, 2), (2, 4), (1, 1)), 1):
        turns = threads.turns(rows, lambda differ=differ: gradients_of(differ))  # type: ignore[misc]
        assert turns.few == few


def test_nobody_tries_a_step_of_somebody_elses_program(tmp_path: Path) -> None:
    """What it does in a step may be seen."""
    found = program(tmp_path)
    assert adapter(found, 2)._turns(ROWS) is not None
    assert adapter(dataclasses.replace(found, edited=True), 2)._turns(ROWS) is None
