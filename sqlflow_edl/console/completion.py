"""Completions of the prompt: the fitting offers, best first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from edl.jobs.job_folder import jobs
from sqlflow_edl.analysis.catalog import MODELS
from sqlflow_edl.console import favourites
from sqlflow_edl.console.commands import COMMANDS, JOB_ACTIONS, LISTED
from sqlflow_edl.console.completion_rules import Offer, list_offers
from sqlflow_edl.console.connection import ConsoleConnection
from sqlflow_edl.console.context import context
from sqlflow_edl.console.help import TOPICS
from sqlflow_edl.display.output import TEXT_FORMATS
from sqlflow_edl.syntax.dialects import dialect_named

_COMMAND = re.compile(r"\s*(?P<mark>[/\\])(?P<name>\w*)(?P<rest>\s+(?P<first>\S+\s+)?(?P<argument>\S*))?")
_FILES = ("source", "edit", "once", "tee")
# What commands have before a statement; a digit after it may belong to the seconds.
_BEFORE_STATEMENT = re.compile(r"\s*[/\\](?:watch(?:\s+[\d.]+)?|fs\s+\S+)\s+(?=\D)")
_PARTS = re.compile(r"[._ ]")


class Completing(Completer):
    """Completer of the prompt. It runs in a thread, so it may query the database."""

    def __init__(self, connection: Callable[[], ConsoleConnection]) -> None:
        self._connection = connection
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        connection = self._connection()
        if command := _BEFORE_STATEMENT.match(document.text_before_cursor + "|"):  # | is the cursor
            text, at = document.text[command.end() :], document.cursor_position - command.end()
            document = Document(text, at)
        if called := _COMMAND.fullmatch(document.text_before_cursor):
            yield from self._of_command(called, event, connection)
            return
        where = context(document.text, document.cursor_position, dialect_named(connection.dialect))
        if where is not None:
            yield from _completions(where.word, list_offers(where, connection))

    def _of_command(
        self, called: re.Match[str], event: CompleteEvent, connection: ConsoleConnection
    ) -> Iterator[Completion]:
        if called["rest"] is None:
            names = (
                Offer(f"{called['mark']}{name}", "command", command.doc) for name, command in LISTED.items()
            )
            yield from _completions(called["mark"] + called["name"], names)
        elif called["name"] in _FILES:
            yield from self._paths.get_completions(Document(called["argument"]), event)
        elif called["first"]:
            actions = JOB_ACTIONS if called["name"] == "job" else ()
            yield from _completions(called["argument"], (Offer(action, "argument") for action in actions))
        elif called["name"] in COMMANDS:
            yield from _completions(called["argument"], _arguments(called["name"], connection))


def _arguments(command: str, connection: ConsoleConnection) -> Iterator[Offer]:
    choices: dict[str, Callable[[], Iterable[str]]] = {
        "d": lambda: connection.get_catalog().tables,
        "model": lambda: connection.get_catalog().models,
        "models": lambda: connection.get_catalog().models,
        "f": favourites.names,
        "fd": favourites.names,
        "job": lambda: reversed([job.id for job in jobs()]),
        "format": lambda: TEXT_FORMATS,
        "estimators": lambda: MODELS.entries,
        "help": lambda: TOPICS,
    }
    return (Offer(name, "argument") for name in choices.get(command, tuple)())


def fitting_offers(word: str, offers_given: Iterable[Offer]) -> Iterator[Offer]:
    """Yield the offers that fit the typed word, best first; keywords in lower case if the word is."""
    ranked = [(rank, offer) for offer in offers_given if (rank := _rank(word, offer)) is not None]
    ranked.sort(key=lambda pair: pair[0])  # stable: else the order of the offers
    for _, offer in ranked:
        lower = offer.kind == "keyword" and word.islower()
        yield replace(offer, text=offer.text.lower()) if lower else offer


def _completions(word: str, offers_given: Iterable[Offer]) -> Iterator[Completion]:
    for offer in fitting_offers(word, offers_given):
        yield Completion(offer.text, -len(word), display_meta=offer.doc or offer.kind)


def _rank(word: str, offer: Offer) -> tuple[int, int] | None:
    """Rank an offer: it begins with the word, has a part that does, contains it, or has its letters in order.

    The last is finer: the closer the letters are, the better. Keywords are offered only for a typed beginning.
    """
    typed, text = word.casefold(), offer.text.casefold()
    if not typed:
        return None if offer.kind == "keyword" else (0, 0)
    if text == typed and offer.kind == "keyword":
        return None
    if text.startswith(typed):
        return 0, 0
    if offer.kind == "keyword":
        return None
    if any(part.startswith(typed) for part in _PARTS.split(text)):
        return 1, 0
    if len(typed) == 1:
        return None
    if typed in text:
        return 2, 0
    widths = [width for start in _starts(text) if (width := _width(typed, text, start))]
    return (3, min(widths)) if widths else None


def _starts(text: str) -> list[int]:
    """List the places where the parts of a name begin."""
    return [0, *(match.end() for match in _PARTS.finditer(text))]


def _width(typed: str, text: str, start: int) -> int:
    """Return the length of the text from `start` that has the typed letters in order; 0 if there is none."""
    if not text.startswith(typed[0], start):
        return 0
    at = start
    for letter in typed[1:]:
        at = text.find(letter, at + 1)
        if at < 0:
            return 0
    return at + 1 - start
