"""Commands that are meant by words that are none: a statement without -e, and verbs of statements."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from edl.data.url import SUFFIXES

_STATEMENT = re.compile(
    r"\s*(?:SELECT|FROM|WITH|TO|SHOW|DESCRIBE|CREATE|DROP|INSERT|TRAIN|PREDICT)\s", re.IGNORECASE
)
# verb -> what follows the query of a file
_CLAUSES = {
    "train": "LABEL my_label INTO my_model",
    "fit": "LABEL my_label INTO my_model",
    "predict": "TO PREDICT USING my_model",
    "evaluate": "TO EVALUATE my_model",
    "explain": "TO EXPLAIN my_model",
}


def is_statement(word: str) -> bool:
    """Return True for an argument that is SQL, and no file."""
    return _STATEMENT.match(word) is not None and not Path(word).exists()


def as_statement(text: str) -> str:
    """Return the command that runs a statement."""
    quoted = f'"{text}"' if not re.search(r'["$`\\!]', text) else shlex.quote(text)
    return f"sqlflow run -e {quoted}"


def command_meant(word: str, arguments: Sequence[str]) -> str:
    """Return the command for a word in the place of one, or empty. arguments: all that was typed."""
    if is_statement(word):
        return f"a statement follows -e: {as_statement(word)}"
    clauses = _CLAUSES.get(word.lower())
    if clauses is None:
        return ""
    rows = next(
        (argument for argument in arguments if argument.lower().endswith(tuple(SUFFIXES))), "customers.csv"
    )
    statement = f"SELECT * FROM '{rows}' {clauses}"
    return f"write {as_statement(statement)}"
