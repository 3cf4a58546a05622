"""The examples and links of the Markdown pages, as data for tests.

An HTML comment in the lines before a block of SQL says that it does not run as it stands: `<!-- run: plan -->` asks for
its plan only, and `<!-- run: no, REASON -->` leaves it out.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGES = sorted(
    [
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        REPOSITORY / "samples" / "zoo" / "README.md",
    ]
)

_BLOCK = re.compile(
    r"^(?:<!-- run: (?P<mode>.*?) -->\n+)?^(?P<fence>```+)(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)
_PROMPT = re.compile(r"^(?:sqlflow>| +->) ?", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
_REMARK = re.compile(r" {2,}.*| +#.*")
_PLACEHOLDER = re.compile(r"…|\.\.\.")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. mode: the text of the comment before it; empty if there is none."""

    page: Path
    line: int
    language: str
    text: str
    mode: str

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def statements(self) -> str:
        """The SQL of a block of SQL or of a session of the console; empty for other blocks."""
        if self.language == "sql":
            return self.text
        typed = "\n".join(line for line in self.text.splitlines() if _PROMPT.match(line))
        return "" if self.language else _PROMPT.sub("", typed)

    @property
    def cells(self) -> list[str]:
        """The cells of a notebook, which blank lines separate; empty for other blocks."""
        return self.text.split("\n\n") if not self.language and "%sqlflow" in self.text else []

    @property
    def commands(self) -> list[list[str]]:
        """The commands of `sqlflow`, `edl` and `make` in a block of shell lines, as arguments without remarks."""
        if self.language:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        found = [re.match(r"^(?:\$ )?(?:[A-Z_]+=\S+ )?((?:sqlflow|edl|make) .*)$", line) for line in lines]
        return [_arguments(match[1]) for match in found if match]


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("fence")) + 1,
            found["language"],
            found["text"],
            found["mode"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def _arguments(command: str) -> list[str]:
    """Return the words of a command line; a remark begins after two blanks or a number sign."""
    quoted = re.split(r"""("[^"]*"|'[^']*')""", re.sub(r" {2,}(?=--)", " ", command))
    kept = ""
    for i, part in enumerate(quoted):
        bare = _REMARK.sub("", part) if i % 2 == 0 else part
        kept += bare
        if bare != part:
            break
    return shlex.split(kept.partition(" | ")[0])


def is_elliptic(arguments: list[str]) -> bool:
    """True if the command leaves arguments out."""
    return any(_PLACEHOLDER.search(each) for each in arguments)


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the relative links of a page as (path, anchor); the path is empty within the page."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield path, anchor


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, by the rules of GitHub."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    names = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text))
    return set(names)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a parser's commands."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}
