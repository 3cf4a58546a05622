"""Search of the pages of the documentation by words: in headings, names of options and settings, and text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_PAGES = 8
LONGEST_LINE = 100  # characters of a line that is shown

_TITLE, _HEADING, _NAME, _LINE = 40, 25, 8, 1  # worth of a line by its kind
_PROSE = 1.1  # worth of a line of prose, which may stand for its section
_ALIAS = 0.6  # of a line that has a word in the place of the one that was given
_MOST_LINES = 15  # of a page that count beside the best one
_STEM = re.compile(r"(?<=\w{4})(?:ing|es|s)$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# what people ask for -> words of the pages
ALIASES: Mapping[str, tuple[str, ...]] = {
    "api": ("HTTP",),
    "balance": ("rare", "class_weights"),
    "cpu": ("cores", "threads"),
    "cron": ("scheduler", "systemd"),
    "cross-validation": ("folds",),
    "deploy": ("serve", "export"),
    "excel": ("spreadsheet",),
    "holdout": ("VALIDATE", "validation rows"),
    "imbalance": ("rare", "class_weights"),
    "imbalanced": ("rare", "class_weights"),
    "importance": ("importance", "EXPLAIN"),
    "interpret": ("EXPLAIN", "Shapley"),
    "leak": ("gives the label away", "too good to be true"),
    "leakage": ("gives the label away", "too good to be true"),
    "missing": ("missing", "NULL"),
    "monthly": ("cron", "retrain"),
    "ram": ("memory",),
    "rest": ("HTTP",),
    "shap": ("EXPLAIN", "Shapley"),
    "share": ("colleague",),
    "speed": ("fast", "cores"),
    "timeout": ("time_limit", "deadline"),
    "tune": ("RANGE", "search"),
    "tuning": ("RANGE", "search"),
    "weight": ("weight_column", "class_weights", "weight"),
    "xls": ("spreadsheet",),
}


_Words = list[re.Pattern[str]]  # that a line has to have, all of them


@dataclass(frozen=True, slots=True)
class PageMatch:
    """Page with the words that were searched for: the section and the line that has most to do with them."""

    topic: str
    section: str
    line: str
    worth: float


def search(pages: Iterable[tuple[str, str]], words: str) -> list[PageMatch]:
    """Return the pages that have the words, the nearest one first. pages: topics and texts."""
    patterns = _patterns(words)
    matches = [match for topic, text in pages if (match := _best(topic, text, patterns)) is not None]
    return sorted(matches, key=lambda match: -match.worth)[:MOST_PAGES]


def _patterns(words: str) -> list[_Words]:
    """Return what a line may have: all of the words, or one that stands for them in the pages."""
    folded = words.casefold().strip()
    aliases = ALIASES.get(folded) or ALIASES.get(_STEM.sub("", folded), ())
    return [[_word(_STEM.sub("", word)) for word in folded.split()], *([_word(alias)] for alias in aliases)]


def _word(stem: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z]){re.escape(stem)}[a-z]*(?!\w)", re.IGNORECASE)


def _best(topic: str, text: str, patterns: Sequence[_Words]) -> PageMatch | None:
    """Return the best line of a page, with the worth of the page, or None if it has none of the words."""
    best, count, lines = (0.0, 0), 0, list(_lines(text))
    for place, (_, line, kind) in enumerate(lines):
        first = next(
            (at for at, words in enumerate(patterns) if all(word.search(line) for word in words)), None
        )
        if first is None:
            continue
        count += 1
        worth = kind * (_ALIAS if first else 1)
        if worth > best[0]:
            best = worth, place
    if not count:
        return None
    section, line, kind = lines[best[1]]
    if kind in (_TITLE, _HEADING):
        line = next((line for _, line, kind in lines[best[1] + 1 :] if kind == _PROSE), line)
    return PageMatch(topic, section, _show_line(line, patterns), best[0] + min(count, _MOST_LINES))


def _lines(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield the section, the text and the worth of each line that is not empty; lines of code count as text."""
    section, in_code = "", False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
        elif not in_code and line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            section = line.lstrip("#").strip()
            yield section, section, _TITLE if level == 1 else _HEADING
        elif not in_code and stripped.startswith("| `"):
            yield section, stripped, _NAME
        elif stripped and not set(stripped) <= set("|-: "):
            yield section, stripped, _LINE if in_code or stripped[0] in "|![" else _PROSE


def _show_line(line: str, patterns: Sequence[_Words]) -> str:
    """Return a line without the marks of links and tables, cut around the word."""
    plain = _LINK.sub(r"\1", line).strip("| ").replace(" | ", "  ")
    if len(plain) <= LONGEST_LINE:
        return plain
    places = (match.start() for words in patterns for word in words if (match := word.search(plain)))
    first = max(0, min(next(places, 0) - LONGEST_LINE // 2, len(plain) - LONGEST_LINE))
    cut = plain[first : first + LONGEST_LINE].strip()
    return f"{'… ' if first else ''}{cut}{' …' if first + LONGEST_LINE < len(plain) else ''}"
