"""Packages that SQL may take models from, and the check of an imported object."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from edl.errors import JobError, SemanticError
from edl.program.model_packages import VARIABLE, ModelSources, check_imported, parse, read_configured_packages

FOLDER = Path("/home/ann/models")
SITE = Path("/venv/lib/python3.11/site-packages")


def test_entries_are_dotted_names_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " keras.applications ,, my_company.models.Wide,")
    assert read_configured_packages() == ("keras.applications", "my_company.models.Wide")
    monkeypatch.delenv(VARIABLE)
    assert read_configured_packages() == ()


@pytest.mark.parametrize("text", ["*", "keras.*", "a/b", "keras;torch", "a..b", ".a"])
def test_an_entry_that_is_no_name_is_an_error(text: str) -> None:
    with pytest.raises(SemanticError, match="is not the name of a package"):
        parse(f"torch.nn,{text}")


@pytest.mark.parametrize(
    ("name", "file", "allowed"),
    [
        ("nets.Tower", FOLDER / "nets.py", True),
        ("nets.Tower", Path("/home/ann/models2/nets.py"), False),
        ("wide.Wide", FOLDER / ".venv/lib/python3.11/site-packages/wide.py", False),
        ("company.models.Wide", SITE / "company/models.py", True),
        ("company.models_old.Wide", SITE / "company/models_old.py", False),
        ("company.tools.run", SITE / "company/tools.py", False),
        ("edl.api.train", FOLDER / "edl/api.py", False),
        ("sqlflow_edl.cli.main.main", FOLDER / "sqlflow_edl/cli/main.py", False),
    ],
)
def test_a25_names_of_the_folders_and_below_the_packages_are_allowed(
    name: str, file: Path, allowed: bool
) -> None:
    assert ModelSources((str(FOLDER),), ("company.models",)).allows(name, file) is allowed


@pytest.mark.parametrize(
    ("name", "origin", "file", "allowed"),
    [
        ("nets.Tower", "nets.parts", FOLDER / "nets/parts.py", True),
        ("nets.Popen", "subprocess", Path("/usr/lib/python3.11/subprocess.py"), False),
        ("nets.Wide", "company.models", SITE / "company/models.py", True),
        ("company.models.Wide", "company._source.wide", SITE / "company/_source/wide.py", True),
        ("company.models.Popen", "subprocess", Path("/usr/lib/python3.11/subprocess.py"), False),
        ("nets.run", "company.tools", SITE / "company/tools.py", False),
    ],
)
def test_a25_an_allowed_name_stands_for_nothing_that_is_defined_elsewhere(
    name: str, origin: str, file: Path, allowed: bool
) -> None:
    sources = ModelSources((str(FOLDER),), ("company.models",))
    assert sources.allows_origin(name, origin, file) is allowed


class Base:
    """Stands for keras.Layer."""


class Net(Base):
    pass


class Config:
    pass


def build() -> Net:
    return Net()


@pytest.fixture
def users(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """An imported module of a user, and a framework of which only the base class is there."""
    framework = ModuleType("keras")
    framework.Layer = Base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keras", framework)
    monkeypatch.delitem(sys.modules, "torch.nn", raising=False)
    monkeypatch.setitem(sys.modules, __name__, ModuleType(__name__))
    module = ModuleType("users")
    sys.modules[__name__].__file__ = __file__
    monkeypatch.setitem(sys.modules, "users", module)
    return module


HERE = ModelSources((str(Path(__file__).parent),))


@pytest.mark.parametrize("found", [Net, build, functools.cache(build)])
def test_a_class_of_models_and_a_function_may_be_called(users: ModuleType, found: object) -> None:
    users.found = found  # type: ignore[attr-defined]
    check_imported("users", "found", HERE)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Config, "is not a model class"),
        (subprocess.Popen, "is not a model class"),
        (subprocess.getoutput, "is subprocess.getoutput, which SQL may not name"),
        (eval, "is a builtin_function_or_method, neither a class nor a function"),
        (functools.partial(build), "is a partial, neither a class nor a function"),
        (Net(), "is a Net, neither a class nor a function"),
    ],
)
def test_a25_nothing_else_is_called(users: ModuleType, found: Any, message: str) -> None:
    users.found = found  # type: ignore[attr-defined]
    with pytest.raises(JobError, match=message):
        check_imported("users", "found", HERE)


def test_a25_a_model_class_of_a_package_that_is_not_allowed_is_not_called(users: ModuleType) -> None:
    users.found = Net  # type: ignore[attr-defined]
    with pytest.raises(JobError, match="which SQL may not name"):
        check_imported("users", "found", ModelSources((str(FOLDER),)))
