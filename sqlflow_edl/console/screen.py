"""Where results and words go: a format, a pager for what is taller than the terminal, and how long things took."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

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
        self.pager: Sequence[str] = default_pager()
        self._out = out

    def rows(self, reader: pa.RecordBatchReader, *, vertical: bool = False) -> str:
        """Show a result set; returns its footer. vertical: one value a line, whatever the format is."""
        with self.page() as page:
            if self.format == "table" or vertical:
                return self._for_people(first_rows(reader), page, vertical)
            return FORMATS[self.format](reader, page)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
        """Show texts under their headings."""
        with self.page() as page:
            write_rows(((name, False) for name in columns), rows, page)

    @contextmanager
    def page(self) -> Iterator[Page]:
        """What is written to it is shown at its end, by the pager if it is taller than the terminal."""
        page = Page(self._out)
        yield page
        self._show(page.getvalue())

    def say(self, text: str) -> None:
        """Words beside the data."""
        self.narrator.say(text)

    def _for_people(self, found: FirstRows, page: Page, vertical: bool) -> str:
        too_wide = (
            page.isatty() and width(as_table(found.columns, found.rows)) > shutil.get_terminal_size().columns
        )
        if vertical or too_wide:
            write_records(found.columns, found.rows, page)
        else:
            write_rows(found.columns, found.rows, page)
        return found.footer("/format csv shows all")

    def _show(self, text: str) -> None:
        self.narrator.clear()
        tall = text.count("\n") >= shutil.get_terminal_size().lines
        if not (self.pager and tall and self._out.isatty() and self._paged(text)):
            self._out.write(text)
            self._out.flush()

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
    written = shlex.split(os.environ.get("PAGER", ""))
    return written or (LESS if shutil.which(LESS[0]) else ())


@contextmanager
def _unheard(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)
