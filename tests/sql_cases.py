"""The cases of tests/fixtures/*/*.sql, and the statements of the shared corpus.

A case begins with a line `-- title:`; more header lines follow, `-- field: value`, and then the text of a program. Each
fixture file says at its top which fields it has.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FIXTURES = REPOSITORY / "tests" / "fixtures"
CORPUS = REPOSITORY.parent / "shared" / "corpus" / "statements.jsonl"

_HEADER = re.compile(r"-- (\w+):[ ]?(.*)\n")


@dataclass(frozen=True)
class Case:
    title: str
    fields: dict[str, str]
    program: str
    dialect: str

    def __str__(self) -> str:
        return f"{self.title} ({self.dialect})"


def cases(file: str) -> list[Case]:
    """Every case of the file, once for each dialect that it names."""
    found: list[Case] = []
    for block in re.split(r"^(?=-- title:)", (FIXTURES / file).read_text("utf-8"), flags=re.MULTILINE)[1:]:
        fields: dict[str, str] = {}
        at = 0
        while header := _HEADER.match(block, at):
            fields[header[1]] = header[2].strip()
            at = header.end()
        title, dialects = fields.pop("title"), fields.pop("dialect", "duckdb")
        found += [Case(title, fields, block[at:].rstrip("\n"), dialect) for dialect in dialects.split()]
    return found


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
