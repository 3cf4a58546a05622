"""The cases of tests/fixtures/*/*.sql, and the statements of the shared corpus.

A case begins with a line `-- title:`; more header lines follow, `-- field: value`, and then the text of a program.
It is a case in each dialect that it names, or in those of all data sources; `-- field mysql: value` is what the field
is in one of them. Each fixture file says at its top which fields it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from edl.errors import ErrorList, Span, SQLFlowError
from tests.databases import DIALECTS

REPOSITORY = Path(__file__).parents[1]
FIXTURES = REPOSITORY / "tests" / "fixtures"
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "statements.jsonl"

_HEADER = re.compile(r"-- (\w+(?: \w+)?):[ ]?(.*)\n")


@dataclass(frozen=True)
class Case:
    title: str
    fields: dict[str, str]
    program: str
    dialect: str

    def __str__(self) -> str:
        return f"{self.title} ({self.dialect})"


def cases(file: str) -> list[Case]:
    """Every case of the file, once for each of its dialects."""
    found: list[Case] = []
    for block in re.split(r"^(?=-- title:)", (FIXTURES / file).read_text("utf-8"), flags=re.MULTILINE)[1:]:
        fields: dict[str, str] = {}
        at = 0
        while header := _HEADER.match(block, at):
            fields[header[1]] = header[2].strip()
            at = header.end()
        title, dialects = fields.pop("title"), fields.pop("dialect", " ".join(DIALECTS))
        program = block[at:].rstrip("\n")
        found += [Case(title, _of(fields, dialect), program, dialect) for dialect in dialects.split()]
    return found


def _of(fields: dict[str, str], dialect: str) -> dict[str, str]:
    """The fields as they are in the dialect."""
    common = {name: value for name, value in fields.items() if " " not in name}
    return common | {name: fields[f"{name} {dialect}"] for name in common if f"{name} {dialect}" in fields}


def refusal(case: Case, run: Callable[[str], object]) -> Sequence[SQLFlowError]:
    """The errors of the case's program. The first is at the place between « and », with the case's message and hint."""
    start, end = case.program.index("«"), case.program.index("»") - 1
    with pytest.raises(SQLFlowError) as raised:
        run(case.program.replace("«", "").replace("»", ""))
    errors = raised.value.errors if isinstance(raised.value, ErrorList) else (raised.value,)
    assert case.fields["message"] in errors[0].message
    assert case.fields.get("hint", "") in (errors[0].hint or "")
    assert errors[0].span == Span(start, end)
    return errors


@dataclass(frozen=True)
class CorpusStatement:
    number: int
    sql: str
    kind: str
    valid: bool
    stage: str | None


def corpus() -> list[CorpusStatement]:
    """The corpus that stands beside the checkout; the test is skipped where it is not there."""
    if not CORPUS.exists():
        pytest.skip("the corpus of statements (../shared/corpus) is not beside this checkout")
    lines = CORPUS.read_text("utf-8").splitlines()
    return [
        CorpusStatement(
            number, row["sql"], row["kind"].replace(" ", "_"), row["valid_in_sqlflow"], row["stage"]
        )
        for number, row in enumerate(map(json.loads, lines))
    ]
