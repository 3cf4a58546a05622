"""Errors that a user can cause, each with a place, an expectation and a hint.

`SQLFlowError` is the base of all errors that are displayed without a traceback; one renderer
(`sqlflow_edl.errors.render`) prints them for the console, the notebook and plain text. A place is a `Span` of 0-based
offsets into the text of the program; the renderer turns it into line, column and caret.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a program's text."""

    start: int
    end: int

    def shift(self, by: int) -> Span:
        return Span(self.start + by, self.end + by)


class Advice(str):
    """Hint with the text that mends an error.

    `instead` stands in place of `span`, by default of the error's place; a `span` is one of the program's text.
    """

    __slots__ = ("instead", "span")
    instead: str
    span: Span | None

    def __new__(cls, hint: str, instead: str = "", span: Span | None = None) -> Advice:
        advice = super().__new__(cls, hint)
        advice.instead, advice.span = instead, span
        return advice


class SQLFlowError(Exception):
    """Error with a message for users.

    `message` states the problem, a sentence without a final period. `hint` is the remedy. `span` is the place in the
    program's text, or None. `corrected` is the whole statement with the remedy in its place, or empty.
    """

    code = "error"
    corrected = ""
    advice: Advice | None = None  # the hint, if it has a text that mends the error

    def __init__(self, message: str, *, span: Span | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self._hint: str | None = None
        self.hint = hint

    @property
    def hint(self) -> str | None:
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        if isinstance(hint, Advice):
            self.advice = hint
        elif hint != self._hint:
            self.advice = None
        self._hint = None if hint is None else str(hint)

    @property
    def report(self) -> str:
        """Message and hint as the lines that a process writes when it fails."""
        return f"error: {self.message}" + (f"\nhint: {self.hint}" if self.hint else "")

    def add_hint(self, hint: str) -> None:
        """Add a remedy after the one that there is."""
        self._hint = f"{self._hint}; {hint}" if self._hint else str(hint)


class StatementSyntaxError(SQLFlowError):
    """The text is not a statement of the language."""

    code = "syntax"


class SemanticError(SQLFlowError):
    """The statement is well formed but invalid: unknown column, model, attribute; wrong type or range."""

    code = "semantic"


class SourceError(SQLFlowError):
    """The data source rejects a request or cannot be reached, or its data cannot be used."""

    code = "source"


class UnfitValueError(SourceError):
    """A column of a query holds a value that its type cannot hold.

    `columns` are all such columns that are known, each with the message and the hint of the error of reading it.
    """

    def __init__(self, message: str, *, column: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.columns = {column: (message, hint or "")}

    @classmethod
    def of(cls, columns: Mapping[str, tuple[str, str]]) -> Self:
        """Return the error of the first column, which names all."""
        column, (message, hint) = next(iter(columns.items()))
        error = cls(message, column=column, hint=hint)
        error.columns = dict(columns)
        return error


class JobError(SQLFlowError):
    """Training, prediction or evaluation failed at run time."""

    code = "runtime"


class UserCodeError(JobError):
    """A function of the program, or of a user's module, raised an exception.

    `traceback` is its text with only the frames of users' files, empty if there are none. The cause with all frames
    is `__cause__` in the process that raised it, and in its log.
    """

    code = "program"

    def __init__(
        self, message: str, *, span: Span | None = None, hint: str | None = None, traceback: str = ""
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.traceback = traceback


class ClusterError(SQLFlowError):
    """Instances of a job cannot be started, reached or kept running."""

    code = "cluster"


class SpecError(SQLFlowError):
    """A stored JobSpec, archive or checkpoint has an unknown version or is damaged."""

    code = "spec"


class LaterVersionError(SpecError):
    """Stored file with a meaning that only a later version knows. `what` names it."""

    def __init__(self, message: str, *, what: str) -> None:
        super().__init__(message, hint="update sqlflow-edl")
        self.what = what


class DamagedError(SpecError):
    """A stored file is not as it was written. `checkpoint` is the name of its checkpoint, or empty."""

    def __init__(self, message: str, *, checkpoint: str = "") -> None:
        super().__init__(message)
        self.checkpoint = checkpoint


class ErrorList(SQLFlowError):  # noqa: N818 - several errors
    """Several errors of one statement, reported at once, in the order of their places."""

    def __init__(self, errors: Iterable[SQLFlowError]) -> None:
        flat = [
            inner
            for error in errors
            for inner in (error.errors if isinstance(error, ErrorList) else (error,))
        ]
        by_place = sorted(flat, key=lambda error: error.span.start if error.span else -1)
        self.errors: tuple[SQLFlowError, ...] = tuple(by_place)
        super().__init__("; ".join(error.message for error in self.errors))
        self.code = self.errors[0].code


def raise_all(errors: list[SQLFlowError]) -> None:
    """Raise nothing, the only error, or all of them as one."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ErrorList(errors)


NEAR_SHORT = 0.66  # of words of three letters, of which one may differ
NEAR = 0.72  # of difflib's ratio; at 0.6 time_limit is near priority, at 0.7 max_depth near max_steps


def nearest(word: str, candidates: Iterable[str], least: float = NEAR) -> str | None:
    """Return the known name most similar to `word`, ignoring case, or None if there is none.

    least: similarity, of a word of more than three letters.
    """
    by_folded = {name.casefold(): name for name in candidates}
    folded = word.casefold()
    matches = difflib.get_close_matches(
        folded, by_folded, n=1, cutoff=least if len(folded) > 3 else NEAR_SHORT
    )
    matches = matches or [
        name for name in by_folded if _abbreviates(name, folded) or _abbreviates(folded, name)
    ]
    return by_folded[matches[0]] if matches else None


def _abbreviates(short: str, long: str) -> bool:
    """Return True if `short` is a prefix of `long`, as auto of automatic."""
    return len(short) >= 4 and long.startswith(short)


def suggest_name(name: str) -> Advice:
    """Return the hint that the text at the place of the error is to be `name`."""
    return Advice(f"did you mean {name}?", name)


def did_you_mean(
    word: str, candidates: Iterable[str], *, list_up_to: int = 12, write: Callable[[str], str] = str
) -> str | None:
    """Return a hint with the most similar known name, or with all names if they are few.

    write: returns a name as it is typed, that is, in quotes where it needs them.
    """
    names = list(candidates)
    if near := nearest(word, names):
        return suggest_name(write(near))
    if names and len(names) <= list_up_to:
        return "known: " + ", ".join(map(write, names))
    return None
