"""Record docs/demo.svg: the output of `sqlflow run docs/demo.sql` on the sample tables (`make picture`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.syntax import Syntax
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

DOCS = Path(__file__).parent
PROGRAM = DOCS / "demo.sql"
PICTURE = DOCS / "demo.svg"
WIDTH = 100  # characters
STYLES = {  # of what the command prints, which has no colours where standard output is no terminal
    r"\bOK\b": "green",
    r"(?m)^  (ending|metrics|training loss|validation loss|model|next) ": "cyan",
    r"[▁▂▃▄▅▆▇█]+": "blue",
}


def main() -> None:
    """Run the program on a new database, and draw it."""
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "SQLFLOW_SOURCE": "duckdb:///demo.duckdb", "XDG_STATE_HOME": folder}
        _sqlflow("samples", folder=folder, environment=environment)
        printed = _sqlflow("run", str(PROGRAM), folder=folder, environment=environment)
    PICTURE.write_text(draw(PROGRAM.read_text(encoding="utf-8"), printed), encoding="utf-8")


def _sqlflow(*arguments: str, folder: str, environment: dict[str, str]) -> str:
    """Return everything that the command prints, in its order."""
    command = [sys.executable, "-u", "-m", "sqlflow_edl.cli.main", *arguments]
    ran = subprocess.run(  # noqa: S603
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
        text=True,
    )
    return ran.stdout


def draw(program: str, printed: str) -> str:
    """Return an SVG picture of a terminal that shows a program and its output."""
    with Path(os.devnull).open("w", encoding="utf-8") as unseen:
        console = Console(file=unseen, record=True, width=WIDTH, force_terminal=True)
        console.print(Text("$ cat demo.sql", style="bold"))
        console.print(Syntax(program.rstrip(), "sql", theme="ansi_dark", background_color="default"))
        console.print(Text("$ sqlflow run demo.sql", style="bold"))
        output = Text(printed.rstrip())
        for pattern, style in STYLES.items():
            output.highlight_regex(pattern, style)
        console.print(output)
        picture = console.export_svg(title="sqlflow", theme=DIMMED_MONOKAI, unique_id="sqlflow-demo")
    # Without rich's web fonts, the picture uses a font of the reader's machine and loads nothing.
    return re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
