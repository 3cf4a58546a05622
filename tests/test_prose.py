"""The language of docstrings and pages: noun phrases, imperatives and plain sentences, in the words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.documentation import PAGES, REPOSITORY

# Words with which a noun clause or a fragment begins, where an imperative or a noun phrase belongs.
FRAGMENT = re.compile(
    r"(What|Whether|Of|Who|Whom|Whose|How|That|Until|Which|Where|When|Why|With|Without|In|On|At|By|For|From|To|As"
    r"|If|While|Before|After|Since|Because|Between|Beside|Under|Over|About|Into|Upon|Nobody|Somebody)\b"
)
# Words for people, where processes are meant.
PEOPLE = re.compile(r"\b(who|whom|whoever|nobody|somebody)\b", re.IGNORECASE)
MOST = 0.02  # of all docstrings
DOCS = REPOSITORY / "docs"
PAGES_FOR_USERS = [
    REPOSITORY / "README.md",
    *(page for page in PAGES if page.parent in {DOCS, DOCS / "tutorials"}),
]
# Constructions that hide the point of a sentence, with their most frequent use in 1,000 words of these pages. The pages
# have fewer today; lower a number when they get better.
CONSTRUCTIONS = {
    "a relative clause with which": (r",\s+(?:\w+ )?which\b|\b(?:of|in|by) which\b", 0.8),
    "whose": (r"\bwhose\b", 0.1),
    "a clause with what": (r"\bwhat\b", 0.15),
    "that of, those": (r"\bthat of\b|\bthose\b", 0.1),
    "a sentence of more than 30 words": (r"(?:[^\s.!?:;|]+[\s,]+){30,}", 0.6),
}
NO_PROSE = re.compile(r"^(```+).*?^\1$|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


@cache
def docstrings(folder: Path) -> list[tuple[str, str]]:
    """Place and text of each docstring of a folder's modules; generated ones are left out."""
    return [
        (f"{path.relative_to(folder.parent)}:{getattr(node, 'lineno', 1)}", text)
        for path in sorted(folder.rglob("*.py"))
        if "_pb2" not in path.name
        for module in (ast.parse(path.read_text(encoding="utf-8")),)  # one at a time: they are large
        for node in (module, *definitions(module.body))
        if (text := ast.get_docstring(node))
    ]


def definitions(
    statements: Iterable[ast.AST],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """All definitions in the statements, without a look at the expressions, of which there are many more."""
    for statement in statements:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(inner := getattr(statement, part, None), list):
                yield from definitions(inner)


@pytest.mark.parametrize("package", ["runtime/edl", "sqlflow_edl"])
def test_docstrings_begin_with_an_imperative_or_a_noun_phrase(repository: Path, package: str) -> None:
    found = docstrings(repository / package)
    fragments = [f"{place}: {text.splitlines()[0]}" for place, text in found if FRAGMENT.match(text)]
    assert len(fragments) <= MOST * len(found), "\n".join(fragments)


@pytest.mark.parametrize("package", ["runtime/edl", "sqlflow_edl"])
def test_docstrings_do_not_speak_of_processes_as_people(repository: Path, package: str) -> None:
    found = docstrings(repository / package)
    people = [f"{place}: {text.splitlines()[0]}" for place, text in found if PEOPLE.search(text)]
    assert len(people) <= MOST * len(found), "\n".join(people)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_pages_say_the_point_in_the_main_clause(construction: str) -> None:
    pattern, most = CONSTRUCTIONS[construction]
    texts = {page: NO_PROSE.sub("", page.read_text(encoding="utf-8")) for page in PAGES_FOR_USERS}
    found = [
        f"{page.relative_to(REPOSITORY)}: {' '.join(text[max(match.start() - 60, 0) : match.end()].split())}"
        for page, text in texts.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    words = sum(len(text.split()) for text in texts.values())
    rate = 1000 * len(found) / words
    assert rate <= most, f"{rate:.2f} of 1,000 words:\n" + "\n".join(found)
