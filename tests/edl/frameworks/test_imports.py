"""Libraries without the packages that they import where they are installed and no job needs."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from edl.frameworks.imports import without_extras

PREPARED = """
import sys
from edl import frameworks

frameworks.prepare(sys.argv[1], 1)
print(*{"IPython", "pandas", "sklearn"} & {*sys.modules})
import pandas  # noqa: F401 - for the model of a user
"""


def test_a_hidden_package_looks_as_if_it_was_not_installed_and_is_there_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "sklearn", raising=False)
    with without_extras(), pytest.raises(ModuleNotFoundError):
        importlib.import_module("sklearn")
    assert importlib.import_module("sklearn")


def test_what_is_loaded_already_stays_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", sys)
    with without_extras():
        assert importlib.import_module("graphviz") is sys


@pytest.mark.parametrize(
    "framework", ["lightgbm", *(pytest.param(each, marks=pytest.mark.soak) for each in ("keras", "xgboost"))]
)
def test_a_process_of_ours_starts_without_them(framework: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARED, framework], check=True, capture_output=True, text=True
    )
    assert not done.stdout.strip()
