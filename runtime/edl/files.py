"""Files that others see whole or not at all, and that survive a crash of the machine where they have to."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file atomically, readable by this user alone. A `durable` one survives a crash of the machine."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(path)
        if durable:
            sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file's content, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
