"""Where results and words go: a format, a pager for what is taller than the terminal, and how long things took."""

from __future__ import annotations

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
from typing import IO, TYPE_CHECKING

from edl.errors import SemanticError, SQLFlowError
from sqlflow_edl.display.files import OutputFile, format_of
from sqlflow_edl.display.narrator import Narrator
from sqlflow_edl.display.output import (
    FORMATS,
    FirstRows,
    as_table,
    first_rows,
    width,
    write_records,
    write_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa

LESS = ("less", "-SRX")
FOR_PEOPLE = ("table", "vertical")  # formats that show the first rows
_STYLES = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal


class Page(io.StringIO):
    """Text on its way to a terminal, or to what is none."""

    def __init__(self, out: IO[str]) -> None:
        super().__init__()
        self._out = out

    def isatty(self) -> bool:
        return self._out.isatty()


class Screen:
    """out: gets data. narrator: writes the words."""

    def __init__(self, out: IO[str], narrator: Narrator) -> None:
        self.narrator = narrator
        self.format = "table"
        self.timing = True
        self.types = True  # under the names of columns, on a terminal
        self.once: Path | None = None  # takes the next rows
        self._tee: IO[str] | None = None
        self.pager: Sequence[str] = default_pager()
        self._out = out

    def rows(self, reader: pa.RecordBatchReader, *, vertical: bool = False) -> tuple[Page, str]:
        """A result set as it is to be shown, and its footer; once into a file, nothing is to be shown.

        vertical: one value a line, whatever the format is.
        """
        page = Page(self._out)
        if self.once is not None:
            return page, self._into_file(reader)
        if self.format in FOR_PEOPLE or vertical:
            return page, self._for_people(first_rows(reader), page, vertical or self.format == "vertical")
        return page, FORMATS[self.format](reader, page)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """Show texts under their headings."""
        with self.page() as page:
            write_rows(((name, False) for name in columns), rows, page)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """What is written to it is shown at its end."""
        page = Page(self._out)
        yield page
        self.show(page)

    def show(self, page: Page) -> None:
        """By the pager, if it is taller than the terminal."""
        self.narrator.clear()
        text = page.getvalue()
        self.note_down(text)
        tall = text.count("\n") >= shutil.get_terminal_size().lines
        if not (self.pager and tall and page.isatty() and self._paged(text)):
            self._out.write(text)
            self._out.flush()

    def say(self, text: str) -> None:
        """Words beside the data."""
        self.narrator.say(text)
        self.note_down(text + "\n")

    def tee(self, path: Path | None) -> None:
        """Add all that is typed, shown and said to the end of a file too; None: no more. SQLFlowError: it cannot be."""
        if self._tee is not None:
            self._tee.close()
            self._tee = None
        if path is not None:
            try:
                self._tee = path.open("a", encoding="utf-8", buffering=1)
            except OSError as error:
                raise SQLFlowError(f"cannot write {path}: {error.strerror}") from None

    def note_down(self, text: str) -> None:
        """Where everything is written to, too, if that is so."""
        if self._tee is not None:
            self._tee.write(_STYLES.sub("", text))

    def _into_file(self, reader: pa.RecordBatchReader) -> str:
        path, self.once = self.once, None
        if path is None:
            raise RuntimeError("there is a file to write")
        with OutputFile(path) as file:
            footer = FORMATS[format_of(path) or self.format](reader, file.out)
            file.keep()
        return f"{footer} in {path}"

    def _for_people(self, found: FirstRows, page: Page, vertical: bool) -> str:
        if vertical or (page.isatty() and self._is_too_wide(found)):
            write_records(found.columns, found.rows, page)
        else:
            write_rows(found.columns, found.rows, page, types=self._types(found, page))
        return found.footer("/format csv shows all")

    def _is_too_wide(self, found: FirstRows) -> bool:
        table = as_table(found.columns, found.rows, found.types if self.types else ())
        return width(table) > shutil.get_terminal_size().columns

    def _types(self, found: FirstRows, page: Page) -> Sequence[str]:
        return found.types if self.types and page.isatty() else ()

    def _paged(self, text: str) -> bool:
        """Whether the pager could be started."""
        try:
            process = subprocess.Popen(self.pager, stdin=subprocess.PIPE, text=True, encoding="utf-8")  # noqa: S603
        except OSError as error:
            self.say(f"the pager {self.pager[0]} does not start: {error.strerror}; /nopager does without")
            return False
        with _unheard(signal.SIGINT):  # Ctrl-C is the pager's while it has the terminal
            process.communicate(text)
        return True


def default_pager() -> Sequence[str]:
    """What the variable PAGER names, else less; empty when neither is there."""
    written = arguments(os.environ.get("PAGER", ""))
    return written or (LESS if shutil.which(LESS[0]) else ())


def arguments(command: str) -> list[str]:
    """The program and its arguments that the text names. SemanticError: a quote is not closed."""
    try:
        return shlex.split(command)
    except ValueError:
        raise SemanticError(f"a quote is not closed in {command}") from None


@contextmanager
def _unheard(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
