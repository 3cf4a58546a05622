"""Program texts of a command line: files, standard input, -e; each with its name for errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edl.errors import SourceError
from sqlflow_edl.session.texts import sql_files


@dataclass(frozen=True, slots=True)
class Text:
    name: str  # name of the file, empty for -e
    text: str


def texts(files: list[str], execute: list[str]) -> Iterator[Text]:
    """Read the texts in the order of the command line, files first.

    Standard input is read when neither is given and it is not a terminal.
    """
    if not files and not execute and not sys.stdin.isatty():
        files = ["-"]
    for file in files:
        yield _standard_input() if file == "-" else Text(file, sql_files.read(Path(file)))
    for text in execute:
        yield Text("", text)


def _standard_input() -> Text:
    try:
        return Text("<stdin>", sys.stdin.read())
    except UnicodeDecodeError as error:
        raise SourceError(
            f"standard input is not UTF-8 text (byte {error.start})", hint="save it as UTF-8"
        ) from None
