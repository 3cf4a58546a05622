"""The onboarding walk of docs/design: its examples, executed."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest


def test_the_objects_of_the_walk_are_those_of_the_code(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    page = repository / "docs" / "design" / "walk.md"
    failures, examples = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert examples > 20
    assert not failures, capsys.readouterr().out
