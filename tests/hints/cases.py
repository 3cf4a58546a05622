r"""Cases that execute the advice of a hint: a statement that fails, what is taken from its hint, and where it goes.

A file of `statements/` has blocks, each of which begins with the site of its hint:

    -- site: sqlflow_edl.analysis.forecasts written
    -- hint: leave VALIDATE out
    -- take: leave VALIDATE out
    SELECT day, y FROM series TO TRAIN Forecast WITH forecast.time = day «VALIDATE 0.1» LABEL y INTO m;

The text between the marks « and » is replaced by what the regular expression behind `take` finds in the hint that the
statement raises: its first group, its second group in the second place, and so on; by nothing without groups. With
`-- as: WITH \1` a place gets that text, with the groups filled in; the second place gets the second `as`. Then the
error is gone.

TRAIN is compiled, which looks at the rows but trains nothing; other statements run, and so do those behind `-- run`.
`-- first:` has statements that run before. `-- on:` names another dialect than DuckDB; `-- source:` another source
than the tables of `rows`, a URL that may have places, too, and `-- file NAME:` the bytes of a file beside it, with
`\n` and `\xe9`, and `{1,2\n}*9` for nine lines. Behind the mended error there may be one more, for what a test lacks,
such as a server that the statement names: `-- then:` is a regular expression of it. `-- looks: no` is a source whose
rows errors do not look at, as of a warehouse. A line with a mark before it is typed elsewhere:

    $ edl train --program my_program      a command, of which the entry point runs in this process
    % %sqlflow SELECT 1                   a cell of a notebook
    > /fs top SELECT 1                    a line of the console

A variable of the environment stands before a command, or on a line of the console before others: `EDITOR=nano`. A
command that ends with `|| true` may fail. `{URL}` names the database of `-- on`, over which a console is opened;
without it, of one in memory.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from openpyxl import Workbook

from tests.hints.sites import Site

CASES = Path(__file__).parent / "statements"
COMMAND, CELL, LINE = "$ ", "% ", "> "  # before what is no statement
_PLACE = re.compile("«(.*?)»", re.DOTALL)
_BEHIND = "\x00"  # each part of what is typed
_REPEATED = re.compile(r"\{(.*?)\}\*(\d+)")


class Typed(NamedTuple):
    """Input of a user: a source, a statement or what `Case.kind` says, and files beside it, bytes by name."""

    source: str
    text: str
    files: dict[str, bytes]

    @classmethod
    def parse(cls, template: str) -> Typed:
        source, text, *files = template.split(_BEHIND)
        return cls(
            source,
            text,
            {name: _content(name, content) for name, _, content in (each.partition(": ") for each in files)},
        )


def _content(name: str, written: str) -> bytes:
    """Return the bytes of a file; of a spreadsheet from its cells, as CSV."""
    written = _REPEATED.sub(lambda match: match[1] * int(match[2]), written)
    content = written.encode().decode("unicode_escape").encode("latin-1")
    if not name.endswith(".xlsx"):
        return content
    book = Workbook()
    for row in csv.reader(content.decode().splitlines()):
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@dataclass(frozen=True)
class Case:
    """take: regular expression of what is taken from the hint. texts: templates of what replaces the places.

    first: statements that run before. then: regular expression of the next error. template: what is typed, with places.
    looks: errors may look at the rows of the source.
    """

    site: Site
    take: str
    template: str
    dialect: str = "duckdb"
    runs: bool = False
    first: str = ""
    texts: tuple[str, ...] = ()
    then: str = ""
    looks: bool = True

    @property
    def name(self) -> str:
        return f"{self.site.module.rpartition('.')[2]} {self.site.function}: {self.site.pattern[:40]}"

    @property
    def kind(self) -> str:
        """The mark of what is typed elsewhere, or empty: a statement."""
        return next(
            (mark for mark in (COMMAND, CELL, LINE) if self.template.split(_BEHIND)[1].startswith(mark)), ""
        )

    @property
    def trains(self) -> bool:
        """True if a model is trained, not only compiled."""
        return (
            self.runs or "LABEL" in self.first or "TO TRAIN" in self.first or "$ sqlflow run" in self.template
        )

    @property
    def wrong(self) -> Typed:
        """The input with the error."""
        return Typed.parse(_PLACE.sub(lambda match: match[1], self.template))

    def mended(self, hint: str) -> Typed:
        """The same after the advice of the hint."""
        match = re.search(self.take, hint)
        assert match is not None, f"{self.take!r} is not in the hint {hint!r}"
        places = len(_PLACE.findall(self.template))
        taken = [match.expand(text) for text in self.texts] or match.groups() or ("",) * places
        assert len(taken) == places, f"{len(taken)} texts for {places} places"
        filled = iter(taken)
        return Typed.parse(_PLACE.sub(lambda place: next(filled) or "", self.template))


def read_cases() -> list[Case]:
    return [
        case for path in sorted(CASES.glob("*.sql")) for case in parse_cases(path.read_text(encoding="utf-8"))
    ]


def parse_cases(text: str) -> list[Case]:
    return [
        _parsed(block) for block in re.split(r"(?m)^(?=-- site: )", text) if block.startswith("-- site: ")
    ]


def _parsed(block: str) -> Case:
    lines = block.strip().splitlines()
    head, files = defaultdict[str, list[str]](list), list[str]()
    for line in lines:
        if line.startswith("-- "):
            key, _, value = line.removeprefix("-- ").partition(": ")
            if key.startswith("file "):
                files.append(f"{key.removeprefix('file ')}: {value}")
            else:
                head[key].append(value)
    [site], [hint], [take] = head["site"], head["hint"], head["take"]
    module, _, function = site.partition(" ")
    statement = "\n".join(line for line in lines if not line.startswith("-- "))
    return Case(
        Site(module, function, hint.replace("\\n", "\n")),
        take,
        _BEHIND.join(["".join(head["source"]), statement, *files]),
        "".join(head["on"]) or "duckdb",
        "run" in head,
        " ".join(head["first"]),
        tuple(head["as"]),
        "".join(head["then"]),
        "no" not in head["looks"],
    )
