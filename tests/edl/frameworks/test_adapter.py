"""The checks that both frameworks share."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from edl.errors import JobError, UserCodeError
from edl.frameworks.adapter import check_fit, check_losses, check_outputs, check_own_outputs
from edl.program import Program
from edl.spec import ClassLabel, Component, JobSpec, Own, Query, Rows


@pytest.mark.parametrize(
    ("labels", "outputs", "whole"),
    [
        ((8, 1), (8, 1), False),
        ((None, 3), (None, 3), False),
        ((8,), (8, 3), True),
        ((None,), (None, None), True),
    ],
)
def test_outputs_that_stand_row_by_row_pass(
    labels: tuple[int | None, ...], outputs: tuple[int | None, ...], whole: bool
) -> None:
    check_outputs(labels, outputs, whole)


@pytest.mark.parametrize(
    ("labels", "outputs", "whole", "message"),
    [
        ((8, 1), (8,), False, r"gives \(n,\) for labels of shape \(n, 1\); it must give \(n, 1\)"),
        ((8, 1), (8, 3), False, r"gives \(n, 3\)"),
        ((8,), (8, 1), True, r"it must give \(n, classes\)"),
        ((8,), (8,), True, r"it must give \(n, classes\)"),
        ((8, 1), (), False, r"gives \(\)"),
        ((8, 1), (1, 1), False, "1 rows of outputs for 8 rows"),
    ],
)
def test_outputs_that_would_broadcast_are_refused(
    labels: tuple[int, ...], outputs: tuple[int, ...], whole: bool, message: str
) -> None:
    with pytest.raises(JobError, match=message):
        check_outputs(labels, outputs, whole)


def test_a_loss_is_a_value_per_row_or_one() -> None:
    for shape in [(), (8,), (8, 1)]:
        check_losses(shape)
    with pytest.raises(JobError, match=r"loss gives \(n, 8\)"):
        check_losses((8, 8))


def test_weights_of_another_model_are_named() -> None:
    own = {"0.kernel": (2, 3), "1.bias": (3,)}
    check_fit(own, {"0.kernel": np.ones((2, 3)), "1.bias": np.ones(3)})
    with pytest.raises(
        JobError,
        match=r"lacking: 1\.bias; not of this model: 9\.x; 0\.kernel is \(3, 2\) instead of \(2, 3\)",
    ):
        check_fit(own, {"0.kernel": np.ones((3, 2)), "9.x": np.ones(1)})


def test_many_problems_of_weights_are_cut() -> None:
    with pytest.raises(JobError, match="97 more"):
        check_fit({str(i): (1,) for i in range(100)}, {str(i): np.ones(2) for i in range(100)})


class Net:
    """Stands for a user's own model."""


def of_own_model(own: Own | None, *, edited: bool = False) -> Program:
    """A program that predicts three classes."""
    spec = JobSpec(
        kind="train",
        statement="",
        query=Query(select="", dialect="duckdb", source="duckdb:"),
        rows=Rows(pinned=True, total=1, training=1),
        framework="torch",
        model=Component("nets.Net"),
        inputs={},
        label=ClassLabel("species", ("a", "b", "c")),
        optimizer=Component("adam"),
        loss=Component("cross_entropy"),
        metrics=(),
        own=own,
    )
    return Program(Path(), spec, sys, {}, edited)


OWN = Own("nets", "Net", "")


@pytest.mark.parametrize(
    ("program", "shape"),
    [
        (of_own_model(OWN), (15, 3)),
        (of_own_model(OWN), (15,)),
        (of_own_model(OWN, edited=True), (15, 4)),
        (of_own_model(None), (15, 4)),
    ],
)
def test_outputs_that_fit_the_label_or_are_no_users_pass(program: Program, shape: tuple[int, ...]) -> None:
    check_own_outputs(program, shape)


def test_a_users_model_of_another_width_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    nets = ModuleType("nets")
    nets.Net = Net  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nets", nets)
    monkeypatch.setitem(sys.modules, __name__, nets)
    nets.__file__ = __file__
    with pytest.raises(UserCodeError, match=r"test_adapter\.py:\d+: Net gives outputs \(rows, 4\)") as raised:
        check_own_outputs(of_own_model(OWN), (15, 4))
    assert "the label species needs (rows, 3)" in raised.value.message
