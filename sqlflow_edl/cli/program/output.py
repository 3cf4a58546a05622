"""Destination of a run's data: stdout, or with `-o` a file that appears only when complete."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from edl.errors import SQLFlowError
from edl.jobs.outcome import JobInterruptedError
from edl.jobs.termination import TerminatedError
from sqlflow_edl.cli.program.inputs import Text
from sqlflow_edl.display import views
from sqlflow_edl.display.files import SUFFIXES, OutputFile, format_of, name_write_errors
from sqlflow_edl.display.narrator import ProgramStep
from sqlflow_edl.display.output import OF_FILES
from sqlflow_edl.display.terminal import outlasting_reader
from sqlflow_edl.reports.result import Result

OBJECTS = "objects"  # a line of JSON for each statement, see `sqlflow_edl.cli.program.statement_objects`
_OF_ONE = ("csv", "tsv", "json")  # formats of files that hold one result set
UNREAD = "the reader of standard output has exited before the last row"
_IN_MEMORY = 1 << 20  # bytes of held output; more goes to a temporary file


def complaint(options: argparse.Namespace) -> str:
    """Describe a conflict between the options; empty if there is none."""
    path: Path | None = options.output
    if options.parallel > 1 and options.detach:
        return "--parallel and --detach do not go together"
    if options.json:
        return "--json has a format of its own; leave --format out" if options.format else ""
    if options.format in OF_FILES and path is None:
        return f"--format {options.format} needs a file: -o FILE.{options.format}"
    if path is None or options.format or format_of(path) or (options.dry_run and options.on):
        return ""
    return f"the format of {path} is unknown; give --format, or a name that ends in {', '.join(SUFFIXES)}"


class HeldOutput(io.TextIOWrapper):
    """Output that waits until earlier statements have written theirs; formatted as for its destination."""

    def __init__(self, destination: IO[str]) -> None:
        kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed with this wrapper)
        encoding = getattr(destination, "encoding", None) or "utf-8"
        super().__init__(kept, encoding, newline="")
        self._destination = destination

    def isatty(self) -> bool:
        return self._destination.isatty()

    def release(self, *, as_bytes: bool) -> None:
        """Write all of it to its destination, and close this."""
        self.flush()
        self.seek(0)
        if as_bytes:
            shutil.copyfileobj(self.buffer, self._destination.buffer)  # type: ignore[attr-defined]
        else:
            shutil.copyfileobj(self, self._destination)
        self._destination.flush()
        self.close()


class Sheet:
    """Data of one statement, on its way to the output."""

    def __init__(self, output: ProgramOutput, out: IO[str], step: ProgramStep, kind: str) -> None:
        self._output = output
        self._out = out
        self._step = step
        self._kind = kind

    def rows(self, result: Result) -> str:
        """Write a result set and return its footer. Raises SQLFlowError if the file cannot be written."""
        if result.reader is None:
            return ""
        footer = UNREAD
        with self._output.adding():
            write = views.write_file if self._output.is_file else views.write
            footer = write(result, self._out, self._output.format)
            self._out.flush()
        return footer

    def text(self, text: str) -> None:
        """Write the text unchanged."""
        with self._output.adding():
            self._out.write(text)
            self._out.flush()

    def ends(
        self, outcome: str, seconds: float = 0.0, *, result: Result | None = None, why: str = ""
    ) -> None:
        """Write how the statement ended, in a format that has it. outcome: ok, skipped, cancelled or detached."""

    def interrupts(self, error: JobInterruptedError | TerminatedError, seconds: float) -> None:
        """Write that SIGTERM ended the statement, in a format that has it, and how its job continues."""

    def fails(self, error: SQLFlowError, text: Text, seconds: float = 0.0) -> None:
        """Write the errors of the statement, in a format that has them."""

    def release(self) -> None:
        """Write what is held to the destination."""
        if isinstance(self._out, HeldOutput):
            with self._output.writing():
                self._out.release(as_bytes=self._output.format in OF_FILES)


class ProgramOutput:
    """Writer of result sets. say: callback for a line to the user."""

    def __init__(self, path: Path | None, format_: str | None, say: Callable[[str], None]) -> None:
        self._file = OutputFile(path) if path is not None else None
        self._out = self._file.out if self._file else sys.stdout
        self.format = format_ or (path and format_of(path)) or "table"
        self._say = say
        self._results = 0

    @property
    def is_file(self) -> bool:
        return self._file is not None

    def sheet(self, step: ProgramStep, kind: str = "", *, held: bool = False) -> Sheet:
        """Make the sheet of a statement. held: it is written only on `release`."""
        make = Sheet
        if self.format == OBJECTS:
            from sqlflow_edl.cli.program.statement_objects import ObjectSheet

            make = ObjectSheet
        return make(self, HeldOutput(self._out) if held else self._out, step, kind)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Count what the block writes as a result set.

        Raises SQLFlowError if it cannot be written, or if the file has room for one result set only.
        """
        if self._file and self._results and self.format in OF_FILES:
            raise SQLFlowError(
                f"{self._file.path} holds the rows of an earlier statement",
                hint="a Parquet file holds one result set; write this one in a run of its own",
            )
        with self.writing():
            yield
        self._results += 1
        if self._file and self._results == 2 and self.format in _OF_ONE:
            self._say(f"note: {self._file.path} has several result sets, one after another")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Raise SQLFlowError where the file cannot be written; a reader of stdout may exit at any time."""
        if self._file is not None:
            with name_write_errors(self._file.path):
                yield
            return
        with name_write_errors(Path("standard output")), outlasting_reader(self._out):
            yield
            self._out.flush()

    def end(self, *, failed: bool) -> None:
        """Finish the output. failed: data is missing, so the file keeps its previous content."""
        if self._file is None or self._file.passes_on:
            return
        if self.format == OBJECTS:
            self._file.keep()
        elif failed or not self._results:
            why = "a statement failed" if failed else "no statement returned rows"
            self._say(f"{self._file.path} is not written: {why}")
        else:
            self._file.keep()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.__exit__(*error)
