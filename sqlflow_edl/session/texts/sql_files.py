"""Files of SQL."""

from __future__ import annotations

from pathlib import Path

from edl.errors import SourceError


def read(path: Path, *, exact: bool = False) -> str:
    """Read the text of a file. Raises SourceError if it cannot be read or is not UTF-8.

    exact: with its line ends and byte order mark.
    """
    try:
        return path.read_bytes().decode() if exact else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
