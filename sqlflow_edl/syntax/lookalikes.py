"""Statements of other systems, and misspelt extended ones, which the splitter takes for ordinary SQL.

The database decides first: a statement that it accepts is run. If it refuses one, `lookalike` suggests what to write
instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import Span, StatementSyntaxError, nearest
from sqlflow_edl.syntax.lexer import Token

_TRAIN = "train one with SELECT … FROM … TO TRAIN DNNClassifier LABEL my_column INTO my_model"
# first two words of a statement -> its hint
_HINTS = {
    ("CREATE", "MODEL"): _TRAIN,
    ("FIT", "MODEL"): _TRAIN,
    ("TRAIN", "MODEL"): _TRAIN,
    (
        "ALTER",
        "MODEL",
    ): "write SET MODEL m ACTIVE 2 to use another version, or train a new one INTO the same name",
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
FEW = 5  # tokens needed to decide


def lookalike(tokens: Sequence[Token]) -> StatementSyntaxError | None:
    """Return the error for a statement that the database refuses, or None if it is like no extended statement.

    tokens: the first `FEW` of the statement, without comments.
    """
    words = [token for token in tokens if token.word not in _BETWEEN]
    if len(words) < 2 or words[0].word not in _FIRST | set(_SECOND):
        return None
    first, second = words[0], words[1]
    place = Span(first.start, second.end)
    written = f"{first.word} {second.text.upper()}"
    if hint := _HINTS.get((first.word, second.word)):
        return StatementSyntaxError(f"{written} is not a statement", span=place, hint=hint)
    near = nearest(second.word, _SECOND.get(first.word, ())) if second.word else None
    named = len(words) > 2 and words[2].kind in ("word", "name") and words[2].word != "LIKE"
    if near is None or near == second.word or named != (near != "MODELS"):  # SHOW modes describes a table
        return None
    hint = _HINTS.get((first.word, near)) or f"did you mean {first.word} {near}?"
    return StatementSyntaxError(f"{written} is not a statement", span=place, hint=hint)
