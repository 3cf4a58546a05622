"""Files are read in a process of their own, which may die."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edl.extensions.imported import description
from edl.extensions.imported.description import FileError, describe_file
from tests.onnx_files import linear


def test_a_file_is_described_by_another_process(tmp_path: Path) -> None:
    file = tmp_path / "m"
    file.write_bytes(linear([1, 2]))
    described = describe_file(file, "onnx")
    assert described.inputs[0].shape == (None, 2)


def test_its_error_is_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "m"
    file.write_bytes(linear([1, 2])[:40])
    with pytest.raises(FileError, match="is damaged, or is none of ONNX"):
        describe_file(file, "onnx")


def test_a_process_that_dies_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(FileError, match="the file is damaged: LightGBM ended with code -11 when it read it"):
        describe_file(tmp_path / "m", "lightgbm")


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(description, "SECONDS", 0.2)
    with pytest.raises(FileError, match="the file was not read in 0 s"):
        describe_file(tmp_path / "m", "onnx")
