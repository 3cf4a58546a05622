"""Plugin of pytest for an installation without extensions: a test that fails for want of one is skipped.

python -m pytest -p tests.without_extensions tests/sqlflow_edl/syntax
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from edl.extension_loader import ExtensionError

WANT = "is not part of this installation"
_BEFORE = pytest.StashKey[int]()
_absent: list[str] = []  # messages of all errors so far
_make_error = ExtensionError.__init__


def _record(error: ExtensionError, message: str, **more: Any) -> None:
    _absent.append(message)
    _make_error(error, message, **more)


ExtensionError.__init__ = _record  # type: ignore[method-assign, assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEFORE] = len(_absent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    asked_for_one = len(_absent) > item.stash[_BEFORE]
    if report.failed and (asked_for_one or WANT in report.longreprtext):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "it needs an extension")
    return report
