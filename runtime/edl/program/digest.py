"""Digest of model.py. It shows changes after the compilation."""

from __future__ import annotations

import hashlib
from pathlib import Path

DIGEST_FILE = "model.py.sha256"


def digest(source: str | bytes) -> str:
    """SHA-256 of a program's source, in hexadecimal; text counts as UTF-8."""
    return hashlib.sha256(source.encode() if isinstance(source, str) else source).hexdigest()


def digest_line(source: str | bytes) -> str:
    """Return the content of `model.py.sha256` for that source."""
    return f"{digest(source)}  model.py\n"


def is_edited(folder: Path, source: bytes) -> bool:
    """Return True if `source` differs from the digest that the compiler stored in `folder`, or if it stored none."""
    try:
        noted = (folder / DIGEST_FILE).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return True
    return noted[:1] != [digest(source)]
