"""Cases that execute the advice of a hint: a statement that fails, what is taken from its hint, and where it goes.

A file of `statements/` has blocks, each of which begins with the site of its hint:

    -- site: sqlflow_edl.analysis.forecasts written
    -- hint: leave VALIDATE out
    -- take: leave VALIDATE out
    SELECT day, y FROM series TO TRAIN Forecast WITH forecast.time = day «VALIDATE 0.1» LABEL y INTO m;

The text between the marks « and » is replaced by what the regular expression behind `take` finds in the hint that the
statement raises: its first group, its second group in the second place, and so on; by nothing without groups. With
`-- as: WITH \\1` the only place gets that text, with the groups filled in. Then the error is gone.

`-- on:` names another dialect than DuckDB. TRAIN is compiled, which looks at the rows but trains nothing; other
statements run, and so do those behind `-- run`. `-- first:` has statements that run before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from edl.errors import ErrorList, SQLFlowError
from sqlflow_edl.session.session import Session
from tests.hints.sites import Site

CASES = Path(__file__).parent / "statements"
_PLACE = re.compile("«(.*?)»", re.DOTALL)


@dataclass(frozen=True)
class Case:
    """take: regular expression of what is taken from the hint. text: template of what replaces the only place.

    first: statements that run before.
    """

    site: Site
    take: str
    statement: str
    dialect: str = "duckdb"
    runs: bool = False
    first: str = ""
    text: str = ""

    @property
    def name(self) -> str:
        return f"{self.site.module.rpartition('.')[2]} {self.site.function}: {self.site.pattern[:40]}"

    @property
    def wrong(self) -> str:
        """The statement with the error."""
        return _PLACE.sub(lambda match: match[1], self.statement)

    def mended(self, hint: str) -> str:
        """The statement after the advice of the hint."""
        match = re.search(self.take, hint)
        assert match is not None, f"{self.take!r} is not in the hint {hint!r}"
        taken = iter(
            (match.expand(self.text),)
            if self.text
            else match.groups() or ("",) * len(_PLACE.findall(self.statement))
        )
        return _PLACE.sub(lambda place: next(taken), self.statement)

    def run(self, session: Session, statement: str) -> list[SQLFlowError]:
        """Errors of the statement."""
        try:
            for each in session.parse(self.first) if self.first else ():
                for _ in session.execute(each).to_arrow().to_batches():
                    pass
            if self.runs or not any(each.trains for each in session.parse(statement)):
                for result in session.run(statement):
                    result.to_arrow()
            else:
                session.compile(statement)
        except ErrorList as error:
            return list(error.errors)
        except SQLFlowError as error:
            return [error]
        return []


def read_cases() -> list[Case]:
    return [
        case for path in sorted(CASES.glob("*.sql")) for case in parse_cases(path.read_text(encoding="utf-8"))
    ]


def parse_cases(text: str) -> list[Case]:
    found = []
    for block in re.split(r"(?m)^(?=-- site: )", text):
        if not block.startswith("-- site: "):
            continue
        lines = block.strip().splitlines()
        heads = [line for line in lines if line.startswith("-- ")]
        head = dict(
            line.removeprefix("-- ").split(": ", 1) if ": " in line else (line[3:], "") for line in heads
        )
        module, _, function = head["site"].partition(" ")
        found.append(
            Case(
                Site(module, function, head["hint"]),
                head["take"],
                "\n".join(line for line in lines if not line.startswith("-- ")),
                head.get("on", "duckdb"),
                "run" in head,
                head.get("first", ""),
                head.get("as", ""),
            )
        )
    return found
