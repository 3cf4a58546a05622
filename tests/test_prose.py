"""The language of docstrings: noun phrases and imperatives, in the words of the field."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
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


def docstrings(folder: Path) -> Iterator[tuple[str, str]]:
    """Place and text of each docstring of a folder's modules; generated ones are left out."""
    for path in sorted(folder.rglob("*.py")):
        if "_pb2" in path.name:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    yield f"{path.relative_to(folder.parent)}:{getattr(node, 'lineno', 1)}", text


@pytest.mark.parametrize("package", ["runtime/edl", "sqlflow_edl"])
def test_docstrings_begin_with_an_imperative_or_a_noun_phrase(repository: Path, package: str) -> None:
    found = list(docstrings(repository / package))
    fragments = [f"{place}: {text.splitlines()[0]}" for place, text in found if FRAGMENT.match(text)]
    assert len(fragments) <= MOST * len(found), "\n".join(fragments)


@pytest.mark.parametrize("package", ["runtime/edl", "sqlflow_edl"])
def test_docstrings_do_not_speak_of_processes_as_people(repository: Path, package: str) -> None:
    found = list(docstrings(repository / package))
    people = [f"{place}: {text.splitlines()[0]}" for place, text in found if PEOPLE.search(text)]
    assert len(people) <= MOST * len(found), "\n".join(people)
