"""Syntax highlighting of SQL, with the keywords of the extended clauses."""

from __future__ import annotations

from prompt_toolkit.styles import BaseStyle, Style, merge_styles, style_from_pygments_cls
from pygments.lexer import inherit
from pygments.lexers.sql import SqlLexer
from pygments.styles import get_style_by_name
from pygments.token import Keyword

from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.split import VERBS

# beside the words of SQL
EXTENDED = (*VERBS, *sorted(CLAUSES), "APPEND", "TO", "MODEL", "MODELS", "SHOW", "DESCRIBE")


class ExtendedSqlLexer(SqlLexer):
    """SQL lexer with more keywords. It ignores context, as SqlLexer does."""

    tokens = {  # noqa: RUF012 - read by Pygments
        "root": [(rf"(?i)\b(?:{'|'.join(EXTENDED)})\b", Keyword), inherit]
    }


# The terminal's own colours, which suit its background, in place of fixed ones that are dim on a dark one.
_COLOURS = {
    "bottom-toolbar": "noreverse",
    "pygments.keyword": "bold ansigreen",
    "pygments.name.builtin": "ansigreen",
    "pygments.operator": "nobold fg:default",
    "pygments.literal.number": "fg:default",
    "pygments.literal.string": "ansired",
    "pygments.comment": "italic ansicyan",
}

STYLE: BaseStyle = merge_styles(
    [
        style_from_pygments_cls(get_style_by_name("default")),
        Style.from_dict(_COLOURS),
    ]
)
