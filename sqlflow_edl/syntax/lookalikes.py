"""Statements that were meant as others: of other systems, misspelt, or with clauses in another order.

The database decides first: a statement that it accepts is run. If it refuses one, `lookalike` says what to write in
place of a statement of another system, and `find_correction` finds the valid statement that a small change makes of
it: each change is tried, so that which words are keywords where is left to the parsers.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from edl.errors import ErrorList, Span, SQLFlowError, StatementSyntaxError, nearest
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.lexer import Token, code_tokens
from sqlflow_edl.syntax.rewrites import Rewrite, quoted_names, rewritings

_TRAIN = "train one with SELECT … FROM … TO TRAIN DNNClassifier LABEL my_column INTO my_model"
# first two words of a statement -> its hint
_HINTS = {
    ("FIT", "MODEL"): _TRAIN,
    ("TRAIN", "MODEL"): _TRAIN,
    (
        "ALTER",
        "MODEL",
    ): "write ALTER MODEL m RENAME TO n, or SET MODEL m ACTIVE 2 to use another version",
    (
        "EXPORT",
        "MODEL",
    ): "write EXPORT MODEL m OPTIONS(URI = 'm.onnx')",
    ("DELETE", "MODEL"): "write DROP MODEL",
    ("LIST", "MODELS"): "write SHOW MODELS",
    ("SHOW", "MODEL"): "write SHOW MODELS, or DESCRIBE MODEL and a name",
    ("DESCRIBE", "MODELS"): "write SHOW MODELS, or DESCRIBE MODEL and a name",
    ("DROP", "MODELS"): "write DROP MODEL and a name",
    ("SHOW", "JOBS"): "sqlflow jobs lists the jobs",
}
_FIRST = {first for first, _ in _HINTS}
# first word -> second words of extended statements
_SECOND = {
    "SHOW": ("MODELS", "TRAIN"),
    "DESCRIBE": ("MODEL",),
    "DESC": ("MODEL",),
    "DROP": ("MODEL",),
    "CREATE": ("MODEL",),
}
_BETWEEN = frozenset(("OR", "REPLACE", "TEMP", "TEMPORARY"))
FEW = 11  # tokens needed to decide, such as CREATE OR REPLACE MODEL IF NOT EXISTS a.b REMOTE

Refusal = Callable[[str], SQLFlowError | None]


class WithoutOptionsError(StatementSyntaxError):
    """CREATE MODEL has no OPTIONS."""

    def __init__(self, message: str, model: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(message, span=span, hint=hint)
        self.model = model


class Correction(NamedTuple):
    """Hint with the statement that was meant. place: of the only word that is another one, or None."""

    hint: str
    place: Span | None


_KEYWORDS = CLAUSES.union(
    re.findall(
        r"\w+",
        "SELECT FROM WHERE GROUP ORDER BY HAVING LIMIT OFFSET UNION ALL DISTINCT JOIN LEFT RIGHT INNER OUTER CROSS ON"
        " USING AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN THEN ELSE END WITH VALUES OVER PARTITION QUALIFY EXISTS"
        " CREATE TABLE VIEW INDEX SCHEMA DATABASE REPLACE TEMPORARY INSERT INTO UPDATE SET DELETE DROP ALTER ADD COLUMN"
        " RENAME TRUNCATE DESCRIBE EXPLAIN SHOW BEGIN COMMIT ROLLBACK"
        " TO TRAIN PREDICT EVALUATE MAXIMIZE MINIMIZE RUN APPEND",
    )
)
# what other systems say behind TO -> what is said here
_VERBS = {
    "FORECAST": ("PREDICT USING",),
    "INFER": ("PREDICT USING",),
    "CLASSIFY": ("PREDICT USING",),
    "SCORE": ("EVALUATE", "PREDICT USING"),
    "TEST": ("EVALUATE",),
    "VALIDATE": ("EVALUATE",),
    "FIT": ("TRAIN",),
    "LEARN": ("TRAIN",),
}
_MOVED = ("LABEL", "TARGET", "TO")  # clauses that INTO follows
_NOT_BEHIND_COMMA = frozenset((*_MOVED, "COLUMN", "INTO", "FROM", "WHERE", "GROUP", "ORDER"))
_BEFORE = 3  # words before the error that are tried: a misspelt keyword is read as an alias, and what follows is wrong
_ANYWHERE = 40  # words that are tried where the place of the error is not known
_NEAR = 0.6  # least similarity
_SIMILAR = 3  # keywords tried in the place of a word
_TRIES = 60  # of statements, in all
_ROUNDS = 3  # errors in one statement
LONGEST_CORRECTED = 1200  # characters of a statement
_EMPTY_WITH = re.compile(r"\bWITH\s+(?=(?:LABEL|INTO|COLUMN|USING|VALIDATE)\b|\Z)", re.IGNORECASE)
_QUOTES = "'\"`"
_PLAIN = re.compile(r"-?[\d.]|TRUE$|FALSE$|NULL$|,|$", re.IGNORECASE)  # what is no text in quotes
_LONGEST = 240  # characters of a statement in a hint
_AROUND = (60, 120)  # characters of a longer one, before and behind the change


def explain_lookalike(tokens: Sequence[Token]) -> StatementSyntaxError | None:
    """Return the error for a statement that the database refuses, or None if it is like no extended statement.

    tokens: the first `FEW` of the statement, without comments.
    """
    words = [token for token in tokens if token.word not in _BETWEEN]
    if len(words) < 2 or words[0].word not in _FIRST | set(_SECOND):
        return None
    first, second = words[0], words[1]
    place = Span(first.start, second.end)
    two_words = f"{first.word} {second.text.upper()}"
    if [word.word for word in words[:2]] == ["CREATE", "MODEL"] and "REMOTE" in [word.word for word in words]:
        what = "a remote model calls a service of Google's, and nothing is called from here"
        instead = "train a model on rows of yours, or import the file of one"
        return StatementSyntaxError(what, span=place, hint=instead)
    if (
        (first.word, second.word) == ("CREATE", "MODEL")
        and len(words) > 2
        and words[2].kind in ("word", "name")
    ):
        return _without_options(place, words[2].text)
    if hint := _HINTS.get((first.word, second.word)):
        return StatementSyntaxError(f"{two_words} is not a statement", span=place, hint=hint)
    near = nearest(second.word, _SECOND.get(first.word, ())) if second.word else None
    named = len(words) > 2 and words[2].kind in ("word", "name") and words[2].word != "LIKE"
    if near is None or near == second.word or named != (near != "MODELS"):  # SHOW modes describes a table
        return None
    hint = _HINTS.get((first.word, near)) or f"did you mean {first.word} {near}?"
    return StatementSyntaxError(f"{two_words} is not a statement", span=place, hint=hint)


def _without_options(place: Span, model: str) -> StatementSyntaxError:
    options = "OPTIONS(model_type = 'BOOSTED_TREE_CLASSIFIER', input_label_cols = ['my_label'])"
    return WithoutOptionsError(
        f"CREATE MODEL {model} names no model type and no label",
        model,
        span=place,
        hint=f"write CREATE MODEL {model} {options} AS SELECT …, or SELECT … LABEL my_label INTO {model}",
    )


# Small changes ----------------------------------------------------------------------------------------------


def find_rewriting(text: str, dialect: Dialect, refusal: Refusal, names: Sequence[str] = ()) -> str | None:
    """Return the hint with the statements that another system's statement or a frequent slip stands for, or None.

    names: columns that the statement may mean.
    """
    for change in rewritings(text, dialect, names):
        changed = change.apply(text)
        if refusal(changed) is None:
            return _hint([change], changed, dialect)
    return None


def find_quoted_names(text: str, dialect: Dialect, refusal: Refusal, names: Iterable[str]) -> str | None:
    """Return the hint with quotes around columns that are not one word, or None if that makes no valid statement."""
    change = quoted_names(text, dialect, names)
    if change is None or refusal(change.apply(text)) is not None:
        return None
    return _hint([change], change.apply(text), dialect)


def find_correction(
    text: str,
    dialect: Dialect,
    place: Span | None,
    refusal: Refusal,
    names: Callable[[], Iterable[str]] = tuple,
    tables: Callable[[], Iterable[str]] = tuple,
) -> Correction | None:
    """Return the hint with the statement that was meant, or None if no small change makes it a valid one.

    place: of the error that the statement has, if known. refusal: returns the error of a statement, or None if it is
    accepted. names, tables: return the columns and tables that it may mean.
    """
    if hint := find_quoted_names(text, dialect, refusal, names()):
        return Correction(hint=hint, place=None)
    quoted = _quoted_tables(text, dialect, {table.casefold() for table in tables()})
    if accepted := next((change for change in quoted if refusal(change.apply(text)) is None), None):
        return Correction(hint=_hint([accepted], accepted.apply(text), dialect), place=None)
    changes: list[Rewrite] = []
    tries = _TRIES
    for _ in range(_ROUNDS):
        further: tuple[int, Rewrite, str, Span] | None = None
        for change in _changes(text, dialect, place):
            tries -= 1
            if tries < 0:
                return None
            changed = change.apply(text)
            error = refusal(changed)
            if error is None:
                wrong = change.parts[0][0] if change.keyword and not changes else None
                return Correction(hint=_hint([*changes, change], changed, dialect), place=wrong)
            if place is None or error.span is None:
                continue
            left = len(changed) - error.span.start  # of the statement, behind its first error
            if left < (further[0] if further else len(text) - place.start):
                further = left, change, changed, error.span
        if further is None:
            return None
        _, change, text, place = further
        changes.append(change)
    return None


def _hint(changes: Sequence[Rewrite], statement: str, dialect: Dialect) -> str:
    shown = _excerpt(statement, changes[-1].parts[0][0].start, dialect)
    reasons = [change.why for change in changes if change.why]
    if keywords := [change.keyword for change in changes if change.keyword]:
        return f"{'; '.join([*reasons, 'did you mean ' + ', '.join(keywords)])}? {shown}"
    return f"{'; '.join(reasons)}: {shown}"


def _excerpt(statement: str, change: int, dialect: Dialect) -> str:
    """Return the statement in one line, without comments; of a long one the part around the change."""
    line, place = place_in_line(statement, change, dialect)
    if len(line) <= _LONGEST:
        return line
    first, last = line.find(" ", max(0, place - _AROUND[0])) + 1, place + _AROUND[1]
    return f"{'… ' * bool(first)}{line[first:last].strip()}{' …' * (last < len(line))}"


def _changes(text: str, dialect: Dialect, place: Span | None) -> Iterator[Rewrite]:
    """Yield the changes that may be meant, the likeliest first."""
    tokens = list(code_tokens(text, 0, dialect))
    yield from rewritings(text, dialect)
    yield from _moved_into(tokens, text)
    if place is None:
        tried: Sequence[int] = range(min(len(tokens), _ANYWHERE))
    else:
        wrong = next((at for at, token in enumerate(tokens) if token.end > place.start), len(tokens) - 1)
        tried = range(min(wrong + 1, len(tokens) - 1), max(-1, wrong - _BEFORE - 1), -1)
    for at in tried:
        yield from _without_comma(tokens, at)
        yield from _other_word(tokens, at)


def _quoted_tables(text: str, dialect: Dialect, tables: Collection[str]) -> Iterator[Rewrite]:
    """Yield the statement with quotes around a table whose name is a reserved word."""
    for token in code_tokens(text, 0, dialect):
        if token.kind == "word" and token.text.casefold() in tables:
            quote = '"' if dialect.double_quotes_name else "`"
            quoted = Rewrite(
                ((Span(token.start, token.end), f"{quote}{token.text}{quote}"),),
                why=f"{token.text} is a reserved word, and has quotes as a name",
            )
            yield quoted


def _other_word(tokens: Sequence[Token], at: int) -> Iterator[Rewrite]:
    """Yield the statement with a keyword in place of a word."""
    token = tokens[at]
    if not token.word.isalpha():
        return
    span = Span(token.start, token.end)
    if at and tokens[at - 1].word == "TO":
        for verb in _VERBS.get(token.word, ()):
            yield Rewrite(((span, verb),), why=f"{token.word} is written {verb}")
    if token.word not in _KEYWORDS:
        for keyword in difflib.get_close_matches(token.word, sorted(_KEYWORDS), _SIMILAR, _NEAR):
            yield Rewrite(((span, keyword),), keyword)


def _without_comma(tokens: Sequence[Token], at: int) -> Iterator[Rewrite]:
    """Yield the statement without a comma in front of a clause."""
    if at and tokens[at - 1].text == "," and tokens[at].word in _NOT_BEHIND_COMMA:
        comma = Span(tokens[at - 1].start, tokens[at - 1].end)
        yield Rewrite(((comma, ""),), why=f"leave out the comma before {tokens[at].word}")


def _moved_into(tokens: Sequence[Token], text: str) -> Iterator[Rewrite]:
    """Yield the statement with INTO behind the clauses that it precedes."""
    depth, into = 0, None
    for token in tokens:
        depth += token.nesting
        if depth == 0 and token.word == "INTO":
            into = token
        elif depth == 0 and into is not None and token.word in _MOVED:
            clause = text[into.start : token.start].rstrip(" \t\r\n,")
            end = tokens[-1].end
            parts = ((Span(into.start, token.start), ""), (Span(end, end), f" {clause}"))
            yield Rewrite(parts, why=f"put INTO behind {token.word}")
            return


# Advice of errors in its place ------------------------------------------------------------------------------


def correct_statement(error: SQLFlowError, text: str, start: int) -> str | None:
    """Return the statement with the advice of its errors, or None if one of them has none.

    text: the statement. start: its place in the program.
    """
    errors: Sequence[SQLFlowError] = error.errors if isinstance(error, ErrorList) else (error,)
    edits = sorted({edit for one in errors for edit in _edits(one, text, start)}, reverse=True)
    is_complete = all(one.advice is not None for one in errors)
    if not edits or not is_complete or len(text) > LONGEST_CORRECTED:
        return None
    if any(later[0] < earlier[1] for later, earlier in itertools.pairwise(edits)):
        return None  # two remedies for one place
    for first, last, instead in edits:
        text = text[:first] + instead + text[last:]
    return _EMPTY_WITH.sub("", text)


def _edits(error: SQLFlowError, text: str, start: int) -> list[tuple[int, int, str]]:
    advice = error.advice
    span = (advice.span or error.span) if advice else None
    if advice is None or span is None:
        return []
    first, last = span.start - start, span.end - start
    if not 0 <= first <= last <= len(text):
        return []
    instead, quote = advice.instead, text[first : first + 1]
    if quote == "[" and instead[:1] != "[":  # of a list: its values have no places of their own
        return [(first, last, f"[{instead}]")] if "," not in text[first:last] else []
    is_text = not _PLAIN.match(instead) and instead[:1] not in (*_QUOTES, "[")
    if quote and quote in _QUOTES and is_text:
        instead = f"{quote}{instead}{quote}"  # a text of the clauses, of which the hint names the value
    return [(first, last, instead)]


def one_line(statement: str, dialect: Dialect) -> str:
    """Return the statement in one line, without comments."""
    return place_in_line(statement, 0, dialect)[0]


def place_in_line(statement: str, place: int, dialect: Dialect) -> tuple[str, int]:
    """Return the statement in one line, without comments, and where the token at or before a place begins in it."""
    line, place_found, end = "", 0, None
    for token in code_tokens(statement, 0, dialect):
        line += " " if end is not None and token.start > end else ""
        place_found = len(line) if token.start <= place else place_found
        line += " ".join(token.text.split()) if token.kind != "string" else token.text
        end = token.end
    return line, place_found
