"""Destination of a run's data: stdout, or with `-o` a file that appears only when complete."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Self

from sqlflow_edl.display import views
from sqlflow_edl.display.files import SUFFIXES, OutputFile, format_of, writing
from sqlflow_edl.reports.result import Result

_OF_ONE = ("csv", "tsv", "json")  # formats of files that hold one result set


def complaint(options: argparse.Namespace) -> str:
    """Describe a conflict between the options; empty if there is none."""
    path: Path | None = options.output
    if path is None or options.format or format_of(path) or (options.dry_run and options.on):
        return ""
    return f"the format of {path} is unknown; give --format, or a name that ends in {', '.join(SUFFIXES)}"


class Output:
    """Writer of result sets. tell: callback for a line to the user."""

    def __init__(self, path: Path | None, format_: str | None, tell: Callable[[str], None]) -> None:
        self._file = OutputFile(path) if path is not None else None
        self._out = self._file.out if self._file else sys.stdout
        self._format = format_ or (path and format_of(path)) or "table"
        self._tell = tell
        self._results = 0

    def rows(self, result: Result) -> str:
        """Write a result set and return its footer. Raises SQLFlowError if the file cannot be written."""
        if result.reader is None:
            return ""
        with self._writing():
            write = views.write_file if self._file else views.write
            footer = write(result, self._out, self._format)
            self._out.flush()
        self._results += 1
        if self._file and self._results == 2 and self._format in _OF_ONE:
            self._tell(f"note: {self._file.path} has several result sets, one after another")
        return footer

    def text(self, text: str) -> None:
        """Write the text unchanged."""
        with self._writing():
            self._out.write(text)
            self._out.flush()
        self._results += 1

    def end(self, *, failed: bool) -> None:
        """Finish the output. failed: data is missing, so the file keeps its previous content."""
        if self._file is None or self._file.passes_on:
            return
        if failed or not self._results:
            why = "a statement failed" if failed else "no statement returned rows"
            self._tell(f"{self._file.path} is not written: {why}")
        else:
            self._file.keep()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.__exit__(*error)

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._file.path) if self._file is not None else nullcontext()
