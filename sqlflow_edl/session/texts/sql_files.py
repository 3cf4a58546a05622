"""Files of SQL."""

from __future__ import annotations

import shlex
from pathlib import Path

from edl.data.url import names_file
from edl.errors import SourceError


def read(path: Path, *, exact: bool = False) -> str:
    """Read the text of a file. Raises SourceError if it cannot be read or is not UTF-8.

    exact: with its line ends and byte order mark.
    """
    if names_file(str(path)):
        name = shlex.quote(str(path))
        hint = f"sqlflow run --source {name} -e 'SELECT * FROM rows LIMIT 5'"
        raise SourceError(f"{path} is a file of rows, not of statements", hint=hint)
    try:
        return path.read_bytes().decode() if exact else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
