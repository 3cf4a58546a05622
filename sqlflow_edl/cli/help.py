"""`sqlflow help [TOPIC]`: show a page of the documentation, which is installed with the package, or list the pages."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from edl.errors import SQLFlowError, did_you_mean
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.arguments import Commands, display, subcommand
from sqlflow_edl.cli.errors import report_errors

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

COLUMNS = ("topic", "title")
FOUND = ("topic", "section", "line")
TUTORIALS = "tutorials"  # folder of pages


def add_command(commands: Commands) -> None:
    command = subcommand(
        commands,
        "help",
        "show a page of the documentation, search the pages, or list them",
        "Show a page of the documentation, or the sections that have some words, or list all pages. The options of a "
        "command are shown by its --help.",
    )
    display(command)
    command.add_argument(
        "topic",
        nargs="*",
        metavar="TOPIC",
        help="name of a page, such as search or sources, or words to look for in all pages",
    )


@report_errors
def help_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code. A terminal gets the laid out page, through its pager."""
    pages = _pages()
    topic = " ".join(options.topic).strip()
    if not topic:
        _list(pages)
        return exit_codes.OK
    if topic not in pages:
        _search(pages, topic)
        return exit_codes.OK
    text = pages[topic].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        _show(text)
    else:
        print(text, end="")
    return exit_codes.OK


def _pages() -> dict[str, Traversable]:
    """Return the pages by topic: the name, of a tutorial with its folder."""
    from importlib.resources import files

    folder = files("sqlflow_edl.docs")
    folders = (("", folder), (f"{TUTORIALS}/", folder / TUTORIALS))
    return {
        prefix + page.name.removesuffix(".md"): page
        for prefix, folder_of_pages in folders
        for page in sorted(folder_of_pages.iterdir(), key=lambda page: page.name)
        if page.name.endswith(".md")
    }


def _search(pages: dict[str, Traversable], words: str) -> None:
    """List the sections that have the words. Raises SQLFlowError if none has, or a page has almost that name."""
    from sqlflow_edl.cli.help_search import search
    from sqlflow_edl.display.output import write_rows

    near = None if " " in words else did_you_mean(words, pages, list_up_to=0)
    texts = ((topic, page.read_text(encoding="utf-8")) for topic, page in pages.items())
    matches = [] if near else search(texts, words)
    if not matches:
        raise SQLFlowError(f"there is no page {words}", hint=near or "sqlflow help lists the pages")
    rows = [(match.topic, match.section, match.line) for match in matches]
    write_rows([(name, False) for name in FOUND], rows, sys.stdout)
    print(f"sqlflow help {matches[0].topic} shows the first page", file=sys.stderr)


def _list(pages: dict[str, Traversable]) -> None:
    from sqlflow_edl.display.output import write_rows

    rows = [(topic, _title(page)) for topic, page in pages.items()]
    write_rows([(name, False) for name in COLUMNS], rows, sys.stdout)


def _title(page: Traversable) -> str:
    with page.open(encoding="utf-8") as lines:
        return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), "")


def _show(text: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))
