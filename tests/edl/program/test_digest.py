"""Whether a model.py still is the compiler's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from edl.program import DIGEST_FILE, digest, digest_line, is_edited

SOURCE = "x = 'größe'\n"


def test_a_digest_is_taken_of_the_utf_8_bytes() -> None:
    assert digest(SOURCE) == digest(SOURCE.encode())
    assert digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_sha256sum_checks_the_note(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE)
    (tmp_path / DIGEST_FILE).write_text(digest_line(SOURCE))
    subprocess.run(
        ["sha256sum", "--strict", "-c", DIGEST_FILE], cwd=tmp_path, check=True, capture_output=True
    )


def test_a_program_is_edited_when_one_byte_differs(tmp_path: Path) -> None:
    (tmp_path / DIGEST_FILE).write_text(digest_line(SOURCE))
    assert not is_edited(tmp_path, SOURCE.encode())
    assert is_edited(tmp_path, SOURCE.encode() + b" ")


@pytest.mark.parametrize("note", [None, b"", b"\xff\xfe", b"e3b0c4"])
def test_a_program_without_a_readable_note_is_edited(tmp_path: Path, note: bytes | None) -> None:
    if note is not None:
        (tmp_path / DIGEST_FILE).write_bytes(note)
    assert is_edited(tmp_path, b"")
