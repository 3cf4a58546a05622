"""Statements of other systems: an extension reads each as one of ours.

A reader is a function of the program's text, the place of the statement in it, and the dialect. It returns a
`Statement`, or raises SQLFlowError with the place of what has no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from edl.errors import Span
from edl.extension_loader import defer
from sqlflow_edl.syntax.ast import Name, Statement
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.lexer import name_value

Reader = Callable[[str, Span, Dialect], Statement]

GAP = r"(?:\s|(?:--|\#)[^\n]*|/\*.*?\*/)"  # white space and comments
# CREATE MODEL of BigQuery ML
CREATE_MODEL = re.compile(
    rf"{GAP}*CREATE{GAP}+(?:OR{GAP}+REPLACE{GAP}+)?MODEL{GAP}+(?P<absent>IF{GAP}+NOT{GAP}+EXISTS{GAP}+)?"
    rf"(?P<name>`[^`]+`|\"[^\"]+\"|[\w.\-]+?){GAP}*(?P<columns>INPUT{GAP}*\([^()]*\){GAP}*(?:OUTPUT{GAP}*\([^()]*\){GAP}*)?)?"
    rf"(?P<word>OPTIONS|TRANSFORM){GAP}*\(",
    re.IGNORECASE | re.DOTALL,
)
# EXPORT MODEL of BigQuery ML
EXPORT_MODEL = re.compile(
    rf"{GAP}*EXPORT{GAP}+MODEL{GAP}+(?P<name>`[^`]+`|\"[^\"]+\"|[\w.\-]+?){GAP}*(?P<word>OPTIONS){GAP}*\(",
    re.IGNORECASE | re.DOTALL,
)

# ALTER MODEL of BigQuery ML
ALTER_MODEL = re.compile(
    rf"{GAP}*ALTER{GAP}+MODEL{GAP}+(?P<absent>IF{GAP}+EXISTS{GAP}+)?(?P<name>`[^`]+`|\"[^\"]+\"|[\w.\-@]+)"
    rf"{GAP}*(?:(?P<options>SET{GAP}+OPTIONS){GAP}*\(|RENAME{GAP}+TO{GAP}+"
    r"(?P<new_name>`[^`]+`|\"[^\"]+\"|[\w.\-@]+))",
    re.IGNORECASE | re.DOTALL,
)


def read_model_name(match: re.Match[str], group: str = "name") -> Name:
    """Return the model that a group of a match names; the dots inside of quotes separate its parts, too."""
    text, place = match[group], Span(match.start(group), match.end(group))
    return Name(tuple((name_value(text) if text[0] in '`"' else text).split(".")), text, place)


class ForeignStatement(NamedTuple):
    """Beginning of the statement, and the function of an extension that reads it."""

    beginning: re.Pattern[str]
    module: str
    function: str


FOREIGN_STATEMENTS = (
    ForeignStatement(ALTER_MODEL, "sqlflow_edl.extensions.bigquery_ml.alter_model", "read_alter_model"),
    ForeignStatement(CREATE_MODEL, "sqlflow_edl.extensions.bigquery_ml.create_model", "read_create_model"),
    ForeignStatement(EXPORT_MODEL, "sqlflow_edl.extensions.bigquery_ml.export_model", "read_export_model"),
)


def find_reader(statement: str) -> Reader | None:
    """Return what reads a statement, or None if it is of no other system."""
    for foreign in FOREIGN_STATEMENTS:
        if foreign.beginning.match(statement):
            return defer(foreign.module, foreign.function)
    return None
