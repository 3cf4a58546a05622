"""Modules of a model zoo: how they are found, imported and checked."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edl.errors import JobError, SemanticError
from edl.program import Program, UserCodeError, load, unload, user_model
from edl.program.zoo import find_in_zoo
from edl.spec import Component, JobSpec, Query, RawLabel, Rows, Zoo

MODULE = """
from torch import nn

from . import layers
from nets_of_a_test.layers import WIDTH


def custom_model(units=3):
    return nn.Linear(WIDTH, units)


def loss(labels, predictions):
    return labels - predictions


def my_loss(labels, predictions):
    return predictions - labels


def optimizer(parameters):
    return layers.optimizer(parameters)


def feed(batch, mode):
    return batch, None


def eval_metrics_fn():
    return {}
"""
READER = """

def custom_data_reader(origin, *, table):
    return origin, table
"""


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A zoo with one package; the process is afterwards as it was."""
    package = tmp_path / "zoo" / "nets_of_a_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "net.py").write_text(MODULE)
    (package / "layers.py").write_text(
        "WIDTH = 2\n\ndef optimizer(parameters):\n    return list(parameters)\n"
    )
    (tmp_path / "zoo" / "losses.py").write_text("def squared(labels, predictions):\n    return 4\n")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in user_model._added])
    monkeypatch.setattr(user_model, "_added", [])
    before = set(sys.modules)
    yield tmp_path / "zoo"
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("nets_of_a_test", "losses"):
            del sys.modules[name]


def loaded(folder: Path, params: dict[str, Any] | None = None, **zoo: Any) -> Program:
    found = find_in_zoo(folder, "nets_of_a_test.net.custom_model")
    given = Zoo(str(folder), found.module, found.attribute, found.digest, **zoo)
    spec = JobSpec(
        kind="train",
        statement="",
        query=Query("", "", ""),
        rows=Rows(False, 0, 0),
        framework="torch",
        model=Component("nets_of_a_test.net.custom_model", params or {}),
        inputs={},
        label=RawLabel("prediction"),
        optimizer=Component("optimizer"),
        loss=Component("loss"),
        metrics=(),
        zoo=given,
    )
    return load(folder.parent, spec)


def test_a_module_imports_its_siblings_by_package_and_by_the_zoo(zoo: Path) -> None:
    program = loaded(zoo)
    assert program.call("custom_model").in_features == 2
    assert program.call("optimizer", [1, 2]) == [1, 2]
    assert program.file == zoo / "nets_of_a_test" / "net.py"
    assert program.edited


def test_parameters_of_the_job_enter_the_model(zoo: Path) -> None:
    assert loaded(zoo, {"units": 7}).call("custom_model").out_features == 7


@pytest.mark.parametrize(("name", "gives"), [("my_loss", 2), ("losses.squared", 4)])
def test_a_function_may_have_another_name_or_be_in_another_module(zoo: Path, name: str, gives: int) -> None:
    assert loaded(zoo, functions={"loss": name}).call("loss", 1, 3) == gives


def test_each_zoo_of_a_process_finds_its_own_modules(zoo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(zoo, other)
    (other / "losses.py").write_text("def squared(labels, predictions):\n    return 9\n")
    squares = {"loss": "losses.squared"}
    found = [loaded(each, functions=squares).call("loss", 1, 3) for each in (zoo, other, zoo)]
    assert found == [4, 9, 4]


def test_a_name_that_is_not_there_is_named_with_the_nearest(zoo: Path) -> None:
    with pytest.raises(JobError, match="defines no my_los") as caught:
        loaded(zoo, functions={"loss": "my_los"})
    assert caught.value.hint == "did you mean my_loss?"


def test_the_module_is_imported_as_it_is_now(zoo: Path) -> None:
    unload(loaded(zoo).module)
    layers = zoo / "nets_of_a_test" / "layers.py"
    layers.write_text(layers.read_text().replace("WIDTH = 2", "WIDTH = 5"))
    assert loaded(zoo).call("custom_model").in_features == 5


def test_its_own_reader_is_given_the_data_and_the_parameters(zoo: Path) -> None:
    module = zoo / "nets_of_a_test" / "net.py"
    module.write_text(MODULE + READER)
    reader = loaded(zoo, reader_params={"table": "t"}).call(
        "custom_data_reader", SimpleNamespace(source="db:x"), zoo
    )
    assert reader == ("db:x", "t")
    with pytest.raises(
        JobError, match=r"cannot be called with the data .*: missing a required argument: 'table'"
    ):
        loaded(zoo, reader_params={"tabel": "t"})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "def feed(batch, mode):",
            "def feed(batch, mode, a, b):",
            r"feed in .*net.py takes .*mode, a, b",
        ),
        ("def loss(", "def los(", "defines no loss"),
        ("WIDTH\n", "HEIGHT\n", "net.py:5: ImportError: cannot import name 'HEIGHT'"),
    ],
)
def test_what_does_not_fit_the_contract_is_named(zoo: Path, old: str, new: str, words: str) -> None:
    module = zoo / "nets_of_a_test" / "net.py"
    module.write_text(MODULE.replace(old, new, 1))
    with pytest.raises(JobError, match=words):
        loaded(zoo)


def test_what_the_module_raises_points_at_its_line(zoo: Path) -> None:
    module = zoo / "nets_of_a_test" / "net.py"
    module.write_text(MODULE.replace("nn.Linear(WIDTH, units)", "1 / 0"))
    with pytest.raises(UserCodeError, match=r"net.py:9, in custom_model: ZeroDivisionError"):
        loaded(zoo).call("custom_model")


@pytest.mark.parametrize(
    ("name", "words", "hint"),
    [
        ("net_of_a_test.net.custom_model", "has no module net_of_a_test", "did you mean nets_of_a_test?"),
        ("nets_of_a_test.nett.custom_model", "no module nets_of_a_test.nett", "nets_of_a_test.net?"),
        ("nets_of_a_test.net.custom_modell", "no class or function", "did you mean custom_model?"),
        ("nets_of_a_test.net.__import__('os')", "is not the name of a Python module", "such as"),
        ("json.decoder.JSONDecoder", "has no module json", ""),
    ],
)
def test_a_model_def_that_means_nothing_is_named(zoo: Path, name: str, words: str, hint: str) -> None:
    with pytest.raises(SemanticError, match=words) as caught:
        find_in_zoo(zoo, name)
    assert hint in (caught.value.hint or "")


def test_a_package_that_an_installed_one_hides_is_named(zoo: Path) -> None:
    (zoo / "msgspec").mkdir()
    (zoo / "msgspec" / "json.py").write_text("def decode(): pass\n")
    with pytest.raises(SemanticError, match="shadowed by the installed package"):
        find_in_zoo(zoo, "msgspec.json.decode")


def test_a_zoo_that_is_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="there is no folder"):
        find_in_zoo(tmp_path / "none", "a.b")
