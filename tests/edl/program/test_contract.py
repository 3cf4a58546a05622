"""The contract of a model.py."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from edl.errors import JobError
from edl.program.contract import check


def module(**functions: Any) -> ModuleType:
    found = ModuleType("model")
    found.__dict__.update(
        {
            "custom_model": lambda: None,
            "loss": lambda labels, predictions: None,
            "optimizer": lambda lr=0.1: None,
            "feed": lambda batch, mode: None,
            "eval_metrics_fn": dict,
        }
        | functions
    )
    for name in [name for name, value in functions.items() if value is None]:
        del found.__dict__[name]
    return found


def test_optional_functions_need_not_be_there() -> None:
    assert set(check(module(), "keras", "model.py")) == {
        "custom_model",
        "loss",
        "optimizer",
        "feed",
        "eval_metrics_fn",
    }


def test_a_missing_function_names_the_file_and_the_nearest_of_its_own() -> None:
    with pytest.raises(JobError, match=r"model\.py defines no custom_model") as caught:
        check(module(custom_model=None, customModel=lambda: None), "keras", "model.py")
    assert caught.value.hint == "is customModel meant to be it?"


def test_a_missing_function_without_a_near_one_shows_how_it_is_called() -> None:
    with pytest.raises(JobError) as caught:
        check(module(loss=None), "keras", "model.py")
    assert caught.value.hint == "the program needs a function loss(labels, predictions)"


def test_other_arguments_are_named_with_the_call() -> None:
    with pytest.raises(
        JobError, match=r"loss in model\.py takes \(labels\); it is called as loss\(labels, predictions\)"
    ):
        check(module(loss=lambda labels: None), "keras", "model.py")


def test_an_optional_function_is_checked_when_it_is_there() -> None:
    with pytest.raises(JobError, match="scores"):
        check(module(scores=lambda: None), "keras", "model.py")


def test_an_optimizer_of_torch_takes_the_parameters() -> None:
    assert "optimizer" in check(module(optimizer=lambda parameters, lr=0.1: None), "torch", "model.py")
    with pytest.raises(JobError, match=r"it is called as optimizer\(parameters\)"):
        check(module(optimizer=lambda *, lr=0.1: None), "torch", "model.py")
    with pytest.raises(JobError, match=r"it is called as optimizer\(\)"):
        check(module(optimizer=lambda parameters, lr=0.1: None), "keras", "model.py")


def test_what_is_no_function_is_named_by_its_type() -> None:
    with pytest.raises(JobError, match=r"loss in model\.py is a str, not a function"):
        check(module(loss="mse"), "keras", "model.py")


def test_a_class_serves_as_a_model() -> None:
    class Model:
        pass

    assert check(module(custom_model=Model), "torch", "model.py")["custom_model"] is Model


@pytest.mark.parametrize("name", ["dataset", "stream"])
def test_a_loader_of_torch_takes_the_place_of_feed(name: str) -> None:
    functions = {"dataset": lambda reader, start, end, mode: None, "stream": lambda batches, mode: None}
    own = {name: functions[name], "optimizer": lambda parameters: None}
    assert name in check(module(feed=None, **own), "torch", "model.py")
    with pytest.raises(
        JobError, match=f"defines feed and {name}; only one function may convert rows to arrays"
    ):
        check(module(**own), "torch", "model.py")
    with pytest.raises(JobError, match="defines no feed"):
        check(module(feed=None, **{name: functions[name]}), "keras", "model.py")
