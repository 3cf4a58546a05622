"""The texts that a command line names: files, standard input, -e; each with the name that errors show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edl.errors import SourceError


@dataclass(frozen=True, slots=True)
class Text:
    name: str  # of the file, empty for -e
    text: str


def texts(files: list[str], execute: list[str]) -> Iterator[Text]:
    """The texts in the order of the command line, files first; standard input when neither is given and it is no
    terminal."""
    if not files and not execute and not sys.stdin.isatty():
        files = ["-"]
    for file in files:
        yield Text("<stdin>", sys.stdin.read()) if file == "-" else Text(file, _read(Path(file)))
    for text in execute:
        yield Text("", text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8") from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
