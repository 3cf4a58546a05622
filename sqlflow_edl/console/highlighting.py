"""SQL in colours, with the words of the extended clauses as keywords."""

from __future__ import annotations

from prompt_toolkit.styles import BaseStyle, Style, merge_styles, style_from_pygments_cls
from pygments.lexer import inherit
from pygments.lexers.sql import SqlLexer
from pygments.styles import get_style_by_name
from pygments.token import Keyword

from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.split import VERBS

_MODELS = ("MODEL", "MODELS", "SHOW", "DESCRIBE")


class ExtendedSqlLexer(SqlLexer):
    """Words only: it knows nothing of places, as SqlLexer itself does not."""

    tokens = {  # noqa: RUF012 - what Pygments reads
        "root": [
            (rf"(?i)\b(?:{'|'.join((*VERBS, *sorted(CLAUSES), *_MODELS))})\b", Keyword),
            inherit,
        ]
    }


STYLE: BaseStyle = merge_styles(
    [
        style_from_pygments_cls(get_style_by_name("default")),
        Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack"}),
    ]
)
