"""Pictures of commands for the documentation: what a terminal shows, as SVG.

`docs/pictures/pictures.toml` lists them, with the commands in their order. Each command runs at a pseudo-terminal, a
terminal emulator reads what it writes, and Rich draws the cells. So colours, bars and menus are real.
"""

from __future__ import annotations

import fcntl
import html
import io
import itertools
import os
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyte
from rich.console import Console
from rich.syntax import Syntax
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from sqlflow_edl.console.prompt import ExtendedSqlLexer

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH = 100  # cells
USER = "/home/analyst"  # in place of the folder where the commands run, whose name is as long
DEADLINE = 120.0  # seconds without output
LARGEST = 40_000  # bytes
COLOURS = {"default": "default", "brown": "yellow", "brightbrown": "bright_yellow"}  # of pyte: of Rich
PROGRAMS = {"sqlflow": "sqlflow_edl.cli.main", "edl": "edl.cli.main"}
# What differs from run to run, and from machine to machine.
VARYING = {
    r"\b\d{8}-\d{6}-\d{6}\b": "JOB",
    r"\b[0-9a-f]{6}\b": "JOB",  # the end of an id
    r"\b\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?": "TIME",
    r"(?<=127\.0\.0\.1:)\d+": "PORT",
    r"[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+": "BAR",
    r"\bpid \d+": "pid",
    r"[\d,]+ rows/s": "0 rows/s",
    r"\b[0-9a-f]{32,}\b": "DIGEST",
    r"\d+ (?=(ms|s|min)\b)": "0 ",
    r"-?\d+\.\d+(e[+-]?\d+)?…?": "0.0",
    r"─+": "─",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """Commands to draw.

    commands: command lines; `cat FILE` shows a file, and `{job}` stands for the end of the last job's id.
    typed: pairs of a pattern and the keys that are pressed when the screen of the last command shows it; it is
    ended when `until` is shown. hidden: command lines that run before and are not drawn. masks: patterns of texts
    that vary, up to their first group. height: cells.
    """

    name: str
    commands: tuple[str, ...]
    typed: tuple[tuple[str, str], ...] = ()
    until: str = ""
    hidden: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    height: int = 200

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.svg"


def pictures() -> list[Picture]:
    """Return the pictures of the list."""
    listed: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "pictures.toml").read_text(encoding="utf-8"))
    tuples = {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in entries.items()}
        for name, entries in listed.items()
    }
    return [Picture(name, **entries) for name, entries in tuples.items()]


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of commands whose files, state and settings are all in the folder."""
    ours = {
        "SQLFLOW_SOURCE": "duckdb:///demo.duckdb",
        "XDG_STATE_HOME": str(folder / ".state"),
        "HOME": str(folder),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # advice names pip, not its folder
    }
    terminal = {"TERM": "xterm-256color", "TZ": "UTC", "LC_ALL": "C.UTF-8", "PAGER": "cat"}
    left_out = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "XDG_CONFIG_HOME", "SQLFLOW_MODEL_PATH")
    return {name: text for name, text in os.environ.items() if name not in left_out} | ours | terminal


def draw(picture: Picture, prepared: Path) -> str:
    """Run the commands in a copy of the folder, and return the picture."""
    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True)
    with TemporaryDirectory(prefix="", dir="/tmp", ignore_cleanup_errors=True) as copy:
        folder = Path(shutil.copytree(prepared, copy, dirs_exist_ok=True))
        for command in picture.hidden:
            _run(command, folder, Picture("", ()))
        for i, each in enumerate(picture.commands, start=1):
            command = each.replace("{job}", _last_job(folder))
            console.print(Text(f"$ {command}", style="bold"))
            if command.startswith("cat "):
                console.print(_file(folder / command.removeprefix("cat ")))
            else:
                typed = picture if i == len(picture.commands) else Picture("", ())
                console.print(_text(_run(command, folder, typed), str(folder)))
    return _smaller(
        console.export_svg(theme=DIMMED_MONOKAI, title="sqlflow", unique_id=f"sqlflow-{picture.name}")
    )


def _file(path: Path) -> Syntax:
    text = path.read_text(encoding="utf-8").rstrip()
    lexer = ExtendedSqlLexer() if path.suffix == ".sql" else path.suffix[1:]
    return Syntax(text, lexer, theme="ansi_dark", background_color="default", word_wrap=True)


def _smaller(svg: str) -> str:
    """Remove web fonts, in place of which the reader's machine has one, and what cuts lines that fit."""
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<clipPath id="[^"]*-line-\d+">.*?</clipPath>\n?', "", svg, flags=re.DOTALL)
    return re.sub(r' clip-path="[^"]*-line-\d+\)"', "", svg).replace("&#160;", "\xa0")


def _last_job(folder: Path) -> str:
    """Return the end of the id of the job that began last, or an empty text."""
    jobs = sorted((folder / ".state" / "sqlflow-edl" / "jobs").glob("*-*-*-*"))
    return jobs[-1].name.rpartition("-")[2] if jobs else ""


class _Screen(pyte.Screen):
    """A screen that answers the terminal's questions, such as for the place of the cursor."""

    def __init__(self, terminal: int, height: int) -> None:
        super().__init__(WIDTH, height)
        self._terminal = terminal

    def write_process_input(self, data: str) -> None:
        os.write(self._terminal, data.encode())

    def shows(self, pattern: str) -> bool:
        return bool(re.search(pattern, "\n".join(self.display)))


def _run(command: str, folder: Path, picture: Picture) -> _Screen:
    """Run a command at a terminal to its end, or until it shows the picture's text, and return its screen."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", picture.height, WIDTH, 0, 0))
    program, *arguments = shlex.split(command)
    ran = [sys.executable, "-m", PROGRAMS[program], *arguments]
    how: dict[str, Any] = {"cwd": folder, "env": environment(folder), "start_new_session": True}
    process = subprocess.Popen(ran, stdin=theirs, stdout=theirs, stderr=theirs, **how)
    os.close(theirs)
    screen = _Screen(ours, picture.height)
    stream = pyte.ByteStream(screen)
    keys = list(picture.typed)
    try:
        for output in _read(ours):
            stream.feed(output.replace(b"\x1b[2m", b"\x1b[90m"))  # pyte knows no faint text
            while keys and screen.shows(keys[0][0]):
                os.write(ours, keys.pop(0)[1].encode())
            if picture.until and not keys and screen.shows(picture.until):
                break
    except TimeoutError as error:
        error.add_note("\n".join(line.rstrip() for line in screen.display).rstrip())
        raise
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait()
        os.close(ours)
    return screen


def _read(terminal: int) -> Iterator[bytes]:
    """Yield what is written to the terminal, until its last process ends."""
    while select.select([terminal], [], [], DEADLINE)[0]:
        try:
            output = os.read(terminal, 65_536)
        except OSError:  # Linux's end of a terminal
            return
        if not output:
            return
        yield output
    raise TimeoutError(f"the command has written nothing for {DEADLINE} s")


def _text(screen: pyte.Screen, folder: str) -> Text:
    """Return the screen's text with its colours, and `USER` in place of the folder."""
    shown = screen.display
    for row, line in enumerate(shown):
        for found in re.finditer(re.escape(folder), line):
            for column, character in enumerate(USER, start=found.start()):
                screen.buffer[row][column] = screen.buffer[row][column]._replace(data=character)
    last = max((row for row, line in enumerate(shown) if line.strip()), default=0)
    lines = [_line(screen.buffer[row]) for row in range(last + 1)]
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _line(cells: Any) -> Text:
    line = Text()
    for style, run in itertools.groupby((cells[column] for column in range(WIDTH)), _style):
        line.append("".join(cell.data for cell in run), style)
    line.rstrip()
    return line


def _style(cell: pyte.screens.Char) -> str:
    flags = [name for name in ("bold", "reverse") if getattr(cell, name)]
    return " ".join([*flags, _colour(cell.fg), "on", _colour(cell.bg)])


def _colour(name: str) -> str:
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return COLOURS.get(name, re.sub("^bright", "bright_", name))


def shown_lines(svg: str, masks: tuple[str, ...] = ()) -> list[str]:
    """Return the lines of text in a picture, with what varies replaced; lines that vary as a whole are left out."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', svg):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    joined = [" ".join(text for _, text in sorted(rows[y])) for y in sorted(rows)]
    return [line for line in (masked(line, masks) for line in joined) if line != "…"]


def masked(line: str, masks: tuple[str, ...]) -> str:
    """Replace what varies, and each run of blanks by one."""
    for pattern in masks:
        line = re.sub(pattern, lambda found: "".join([*found.groups(), "…"]), line)
    for pattern, word in VARYING.items():
        line = re.sub(pattern, word, line)
    return re.sub(r"\s+", " ", line).strip()
