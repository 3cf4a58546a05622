"""Modules by their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl.extensions.elasticdl.names.loading import get_module_file_path, get_module_from_file


def test_a_module_of_the_zoo_is_found_and_loaded_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "deep.py").write_text("WIDTH = 3\n")
    path = get_module_file_path(str(tmp_path), "nets.deep.custom_model")
    assert get_module_from_file(path).WIDTH == 3
    with pytest.raises(ImportError, match="is not a Python file"):
        get_module_from_file(str(tmp_path / "notes.txt"))
