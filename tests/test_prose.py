"""The language of docstrings: noun phrases and imperatives, in the words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

# Words with which a noun clause or a fragment begins, where an imperative or a noun phrase belongs.
FRAGMENT = re.compile(
    r"(What|Whether|Of|Who|Whom|Whose|How|That|Until|Which|Where|When|Why|With|Without|In|On|At|By|For|From|To|As"
    r"|If|While|Before|After|Since|Because|Between|Beside|Under|Over|About|Into|Upon|Nobody|Somebody)\b"
)
# Words for people, where processes are meant.
PEOPLE = re.compile(r"\b(who|whom|whoever|nobody|somebody)\b", re.IGNORECASE)
MOST = 0.02  # of all docstrings


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
