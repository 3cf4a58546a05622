"""Output of the console: data in a format, through a pager if needed, and narration."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from edl.errors import SemanticError
from sqlflow_edl.console.config import Config
from sqlflow_edl.display import views
from sqlflow_edl.display.files import OutputFile, format_of, name_write_errors
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.display.output import write_rows
from sqlflow_edl.reports.result import Result

LESS = ("less", "-SRX")
_STYLES = re.compile(r"\x1b\[[0-9;]*m")  # codes of a terminal


class Page(io.StringIO):
    """Text on its way to a terminal or another stream."""

    def __init__(self, out: IO[str]) -> None:
        super().__init__()
        self._out = out

    def isatty(self) -> bool:
        return self._out.isatty()

    @property
    def encoding(self) -> str | None:  # type: ignore[override]  # a writable attribute in the base class
        """Encoding of the stream that the page goes to."""
        return getattr(self._out, "encoding", None)


class Screen:
    """Output of the console. out: stream for data. narrator: writer of everything else."""

    def __init__(self, out: IO[str], narrator: Narrator) -> None:
        self.narrator = narrator
        self.format = "table"
        self.timing = True
        self.types = True  # below the names of columns, on a terminal
        self._once: OutputFile | None = None  # destination of the next rows
        self._tee: IO[str] | None = None
        self.pager: Sequence[str] = default_pager()
        self._out = out
        narrator.also = lambda text: self.note_down(text + "\n")

    def apply(self, config: Config) -> None:
        """Take the settings of the configuration file."""
        self.format, self.timing, self.types = config.format, config.timing, config.types
        if config.pager is not None:
            self.pager = arguments(config.pager)

    def rows(self, result: Result, *, vertical: bool = False, types: bool = True) -> tuple[Page, str]:
        """Return a page with the rows of the result, and its footer.

        The page is empty if the rows go to a file. vertical: one value a line, whatever the format is. types:
        show the types of the columns, if enabled.
        """
        page = Page(self._out)
        format_ = "vertical" if vertical else self.format
        if self._once is not None:
            return page, self._into_file(self._once, result, format_)
        others = "/format csv shows all"
        return page, views.write(result, page, format_, others=others, types=types and self.types)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """Show a table of texts."""
        with self.page() as page:
            write_rows(((name, False) for name in columns), rows, page)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Yield a page, and show it at the end of the block."""
        page = Page(self._out)
        yield page
        self.show(page)

    def show(self, page: Page) -> None:
        """Show the page, through the pager if it is taller than the terminal."""
        self.narrator.clear()
        text = page.getvalue()
        tall = text.count("\n") >= shutil.get_terminal_size().lines
        if not (self.pager and tall and page.isatty() and self._show_in_pager(text)):
            self._out.write(text)
            self._out.flush()
        self.note_down(text)

    def say(self, text: str) -> None:
        """Write a line beside the data."""
        self.narrator.say(text)

    def complain(self, error: str) -> None:
        """Show an error as it is rendered."""
        self.narrator.complain(error)

    def once(self, path: Path | None) -> None:
        """Write the next rows to the file instead of showing them; None cancels that.

        Raises SQLFlowError if the file cannot be written.
        """
        before, self._once = self._once, OutputFile(path) if path is not None else None
        if before is not None:
            before.__exit__()

    def tee(self, path: Path | None) -> None:
        """Append all input and output to a file as well, readable only by the user; None stops that.

        Raises SQLFlowError if the file cannot be written; the previous setting stays.
        """
        opened: IO[str] | None = None
        if path is not None:
            with name_write_errors(path):
                opened = os.fdopen(
                    os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", 1, "utf-8"
                )
        before, self._tee = self._tee, opened
        if before is not None:
            with contextlib.suppress(OSError):
                before.close()

    @contextmanager
    def without_pager(self) -> Iterator[None]:
        """Show results without the pager within the block."""
        before, self.pager = self.pager, ()
        try:
            yield
        finally:
            self.pager = before

    def note_down(self, text: str) -> None:
        """Append the text to the tee file, if there is one."""
        if self._tee is None:
            return
        try:
            self._tee.write(_STYLES.sub("", text))
            self._tee.flush()
        except OSError as error:
            self.tee(None)
            self.say(f"stopped writing to the file: {error.strerror}")

    def close(self) -> None:
        """Close the open files."""
        self.once(None)
        self.tee(None)

    def _into_file(self, file: OutputFile, result: Result, format_: str) -> str:
        self._once = None
        with file, name_write_errors(file.path):
            footer = views.write_file(result, file.out, format_of(file.path) or format_)
            file.keep()
        return f"{footer} in {file.path}"

    def _show_in_pager(self, text: str) -> bool:
        """Show the text in the pager; return False if it cannot start."""
        try:
            process = subprocess.Popen(self.pager, stdin=subprocess.PIPE, text=True, encoding="utf-8")  # noqa: S603
        except OSError as error:
            self.say(f"cannot start the pager {self.pager[0]}: {error.strerror}; /nopager turns it off")
            return False
        with ignore_signal(signal.SIGINT):  # Ctrl-C belongs to the pager while it has the terminal
            process.communicate(text)
        return True


def default_pager() -> Sequence[str]:
    """Return the command that the variable PAGER names, else less, or nothing if neither exists."""
    words = arguments(os.environ.get("PAGER", ""))
    return words or (LESS if shutil.which(LESS[0]) else ())


def arguments(command: str) -> list[str]:
    """Split a command line. Raises SemanticError for an open quote or a trailing backslash."""
    try:
        return shlex.split(command)
    except ValueError as error:
        why = "a quote is not closed" if "quotation" in str(error) else "nothing follows the last \\"
        raise SemanticError(f"{why} in {command}") from None


@contextmanager
def ignore_signal(number: signal.Signals) -> Iterator[None]:
    """Ignore the signal within the block."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
