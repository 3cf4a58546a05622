"""Search of the documentation by words. Its results are sections, ordered by where their words stand, then by BM25."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_SECTIONS = 8
LONGEST_LINE = 100  # characters of a line that is shown
INDEX = "index"  # page of links; its text describes the sections that it links to

_IN_HEADING, _IN_LINE, _SPREAD = 2, 1, 0  # where the words of a section stand
_TIMES_OF_HEADING, _TIMES_OF_OPTION = 5, 3  # a word counts as often there as this many times in text
_ALIAS = 0.6  # worth of a word in the place of the one that was given
_SATURATION, _LENGTH = 1.2, 0.75  # k1 and b of BM25
_PREFIX = 4  # letters of a word from which on it also finds longer words

_WORD = re.compile(r"[^\W_]+")
_SUFFIX = re.compile(r"(?<=\w{3})(?:ations?|ates?|ions?|ings?|es|ed|e|ly|(?<!s)s)$")
_STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and any are as at be by can do does for from get has have how i if in into is it me my of on or our "
        "should so some than that the their there these this to was we what when where which who why will with you your"
    )
)
_LINK = re.compile(r"!?\[([^\]]*)\]\(([^)]*)\)")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
# what people ask for -> words of the pages
ALIASES: Mapping[str, tuple[str, ...]] = {
    "api": ("HTTP",),
    "balance": ("rare", "weight"),
    "cpu": ("core", "thread"),
    "cron": ("systemd",),
    "deploy": ("serve", "export"),
    "excel": ("spreadsheet",),
    "explanation": ("EXPLAIN",),
    "holdout": ("validation",),
    "imbalance": ("rare", "weight"),
    "importance": ("EXPLAIN",),
    "interpret": ("EXPLAIN", "Shapley"),
    "missing": ("NULL",),
    "monthly": ("cron",),
    "ram": ("memory",),
    "rest": ("HTTP",),
    "shap": ("EXPLAIN", "Shapley"),
    "share": ("colleague",),
    "speed": ("fast",),
    "timeout": ("deadline",),
    "tune": ("RANGE", "search"),
    "xls": ("spreadsheet",),
}


@dataclass(frozen=True, slots=True)
class SectionMatch:
    """Section with the words that were searched for, and the line that has most to do with them."""

    topic: str
    section: str
    line: str


@dataclass(slots=True)
class _Section:
    topic: str
    heading: str
    lines: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)  # its own, and what the index says of it
    counts: dict[str, float] = field(default_factory=dict)  # stem -> weighted number of times
    size: float = 0.0

    def add(self, text: str, times: int) -> None:
        for stem in _stems(text):
            self.counts[stem] = self.counts.get(stem, 0.0) + times
            self.size += 1


class _Term:
    """Word that was searched for, with words that stand for it."""

    def __init__(self, word: str) -> None:
        self._stem = _stem(word)
        self._aliases = [_stem(alias.casefold()) for alias in _STEMMED_ALIASES.get(self._stem, ())]

    def count(self, counts: Mapping[str, float]) -> float:
        """Return the weighted number of times that it is among the counted stems."""
        own = sum(times for stem, times in counts.items() if _is_found(self._stem, stem))
        return own + _ALIAS * sum(counts.get(alias, 0.0) for alias in self._aliases)

    def is_in(self, text: str) -> bool:
        return any(_is_found(self._stem, stem) or stem in self._aliases for stem in _stems(text))


def search(pages: Iterable[tuple[str, str]], words: str) -> list[SectionMatch]:
    """Return the sections that have most of the words, the nearest one first. pages: topics and texts."""
    stems = dict.fromkeys(word for word in _WORD.findall(words.casefold()) if word not in _STOP_WORDS)
    terms = [_Term(word) for word in stems]
    sections = _read_sections(pages)
    counts = {id(section): [term.count(section.counts) for term in terms] for section in sections}
    most = max((sum(map(bool, found)) for found in counts.values()), default=0)
    if not most:
        return []
    weights = [
        _weigh(len(sections), sum(bool(found[at]) for found in counts.values())) for at in range(len(terms))
    ]
    mean = sum(section.size for section in sections) / len(sections)

    def rank(section: _Section) -> tuple[int, float]:
        length = _SATURATION * (1 - _LENGTH + _LENGTH * section.size / mean)
        worth = sum(
            weight * count / (count + length)
            for weight, count in zip(weights, counts[id(section)], strict=True)
        )
        return _place(section, terms, most), worth

    matches = [section for section in sections if sum(map(bool, counts[id(section)])) == most]
    matches.sort(key=rank, reverse=True)
    return [
        SectionMatch(section.topic, section.heading, _choose_line(section, terms))
        for section in matches[:MOST_SECTIONS]
    ]


def _read_sections(pages: Iterable[tuple[str, str]]) -> list[_Section]:
    """Return the sections of all pages but the index, which is read as descriptions of them."""
    sections: list[_Section] = []
    by_link: dict[str, _Section] = {}  # page.md, and page.md#section
    index = ""
    for topic, text in pages:
        if topic == INDEX:
            index = text
            continue
        for section in _split_page(topic, text):
            sections.append(section)
            by_link.setdefault(f"{topic}.md", section)
            by_link.setdefault(f"{topic}.md#{_anchor(section.heading)}", section)
    for line in index.splitlines():
        for _, link in _LINK.findall(line):
            if described := by_link.get(posixpath.normpath(link)):
                described.headings.append(_LINK.sub(r"\1", line))
                described.add(described.headings[-1], _TIMES_OF_HEADING)
    return sections


def _split_page(topic: str, text: str) -> Iterator[_Section]:
    section, in_code = _Section(topic, ""), False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("```"):
            in_code = not in_code
        elif line.startswith("#") and not in_code:
            if section.headings:
                yield section
            heading = line.lstrip("# ")
            section = _Section(topic, heading, headings=[heading])
            section.add(heading, _TIMES_OF_HEADING)
        elif line and not set(line) <= set("|-: "):
            section.lines.append(line)
            section.add(_LINK.sub(r"\1", line), _TIMES_OF_OPTION if line.startswith("| `") else 1)
    yield section


def _place(section: _Section, terms: Sequence[_Term], most: int) -> int:
    """Return where as many of the words stand as any section has."""
    for place, texts in ((_IN_HEADING, [" ".join(section.headings)]), (_IN_LINE, section.lines)):
        if any(sum(term.is_in(text) for term in terms) == most for text in texts):
            return place
    return _SPREAD


def _weigh(sections: int, found: int) -> float:
    """Weigh a word by how few sections have it."""
    return math.log(1 + (sections - found + 0.5) / (found + 0.5))


def _choose_line(section: _Section, terms: Sequence[_Term]) -> str:
    """Return the first line with the most words, without the marks of links and tables, cut around a word."""
    line = max(
        section.lines, key=lambda line: sum(term.is_in(line) for term in terms), default=section.heading
    )
    plain = _LINK.sub(r"\1", line).strip("| ").replace(" | ", "  ")
    if len(plain) <= LONGEST_LINE:
        return plain
    places = (match.start() for match in _WORD.finditer(plain) if any(term.is_in(match[0]) for term in terms))
    first = max(0, min(next(places, 0) - LONGEST_LINE // 2, len(plain) - LONGEST_LINE))
    cut = plain[first : first + LONGEST_LINE].strip()
    return f"{'… ' if first else ''}{cut}{' …' if first + LONGEST_LINE < len(plain) else ''}"


def _anchor(heading: str) -> str:
    """Return the name of a heading in links."""
    return _NOT_IN_ANCHOR.sub("", heading.casefold()).replace(" ", "-")


def _is_found(stem: str, other: str) -> bool:
    return other == stem or (len(stem) >= _PREFIX and other.startswith(stem))


def _stems(text: str) -> Iterator[str]:
    return map(_stem, _WORD.findall(text.casefold()))


def _stem(word: str) -> str:
    return _SUFFIX.sub("", word)


_STEMMED_ALIASES = {_stem(word): aliases for word, aliases in ALIASES.items()}
