"""The language of names, docstrings and pages: verbs with objects, noun phrases and plain sentences."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from tests.documentation import PAGES, REPOSITORY
from tests.prose import shared_names, words_of

# Words with which a noun clause or a fragment begins, where an imperative or a noun phrase belongs.
FRAGMENT = re.compile(
    r"(What|Whether|Of|Who|Whom|Whose|How|That|Until|Which|Where|When|Why|With|Without|In|On|At|By|For|From|To|As"
    r"|If|While|Before|After|Since|Because|Between|Beside|Under|Over|About|Into|Upon|Nobody|Somebody)\b"
)
# Words for people, where processes are meant.
PEOPLE = re.compile(r"\b(who|whom|whoever|nobody|somebody)\b", re.IGNORECASE)
MOST = 0.02  # of all docstrings
PACKAGES = ("runtime/edl", "sqlflow_edl")
# Bounds of names and docstrings. They stand at the present figures: lower one when its figure falls.
MOST_BARE = {"runtime/edl": 0.004, "sqlflow_edl": 0.0}  # of the functions of modules
MOST_BARE_METHODS = {"runtime/edl": 49, "sqlflow_edl": 34}  # in all
MOST_VAGUE = {"runtime/edl": 0.6, "sqlflow_edl": 1.8}  # of 1,000 bindings
MOST_SHARED_CLASS_NAMES = 23
MOST_RELATIVES = {"runtime/edl": 0.1, "sqlflow_edl": 0.1}  # of 1,000 words of docstrings
MOST_WHOSE = {"runtime/edl": 0.1, "sqlflow_edl": 0.1}
DOCS = REPOSITORY / "docs"
PAGES_FOR_USERS = [
    REPOSITORY / "README.md",
    *(page for page in PAGES if page.parent in {DOCS, DOCS / "tutorials"}),
]
# Constructions that hide the point of a sentence, with their most frequent use in 1,000 words of these pages. The pages
# have fewer today; lower a number when they get better.
CONSTRUCTIONS = {
    "a relative clause with which": (r",\s+(?:\w+ )?which\b|\b(?:of|in|by) which\b", 0.3),
    "whose": (r"\bwhose\b", 0.1),
    "a clause with what": (r"\bwhat\b", 0.12),
    "that of, those": (r"\bthat of\b|\bthose\b", 0.1),
    "a sentence of more than 30 words": (r"(?<!\S)(?:[^\s.!?:;|]++\s++){30,}+", 0.6),
}
NO_PROSE = re.compile(r"^(```+).*?^\1$|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_an_imperative_or_a_noun_phrase(repository: Path, package: str) -> None:
    found = words_of(repository / package).docstrings
    fragments = [f"{place}: {text.splitlines()[0]}" for place, text in found if FRAGMENT.match(text)]
    assert len(fragments) <= MOST * len(found), "\n".join(fragments)


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_do_not_speak_of_processes_as_people(repository: Path, package: str) -> None:
    found = words_of(repository / package).docstrings
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


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_named_by_a_verb_with_its_object_or_a_noun(repository: Path, package: str) -> None:
    words = words_of(repository / package)
    assert len(words.bare_functions) <= MOST_BARE[package] * len(words.functions), words.bare_functions


@pytest.mark.parametrize("package", PACKAGES)
def test_few_methods_are_named_by_a_participle_or_a_preposition_alone(repository: Path, package: str) -> None:
    words = words_of(repository / package)
    assert len(words.bare_methods) <= MOST_BARE_METHODS[package], words.bare_methods


@pytest.mark.parametrize("package", PACKAGES)
def test_variables_say_what_they_hold(repository: Path, package: str) -> None:
    words = words_of(repository / package)
    rate = 1000 * sum(words.vague_bindings.values()) / words.bindings.total()
    assert rate <= MOST_VAGUE[package], words.vague_bindings


def test_few_classes_share_a_name(repository: Path) -> None:
    names = chain.from_iterable(words_of(repository / package).classes for package in PACKAGES)
    assert len(shared := shared_names(names)) <= MOST_SHARED_CLASS_NAMES, shared


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_the_point_in_the_main_clause(repository: Path, package: str) -> None:
    words = words_of(repository / package)
    assert words.rate(r"\b(that|those) of\b") <= MOST_RELATIVES[package]
    assert words.rate(r"\bwhose\b") <= MOST_WHOSE[package]
