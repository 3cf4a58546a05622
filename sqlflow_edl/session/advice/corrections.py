"""Corrected statements: what the tables, models and values of the source tell about the error of a statement.

An adviser per kind of error looks at the source and may replace the hint. If every error of the statement then has a
text that mends it, the whole statement with these texts is checked as any other, and shown only if it has no error.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from edl.errors import ErrorList, SourceError, SQLFlowError
from edl.models.registry.base import UnknownModelError
from sqlflow_edl.analysis.checks.query_errors import (
    MissingColumnsError,
    MissingLabelError,
    NeedlessLabelError,
    NoLabelOptionError,
    NoModelError,
    NoRowsError,
    OtherModelError,
    TextLabelError,
    TextOperandError,
    UnfitColumnError,
    UnknownArchitectureError,
    UnknownColumnError,
)
from sqlflow_edl.session.advice import columns, conditions, models
from sqlflow_edl.session.advice.looks import Look
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.program_check import ProgramCheck
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import dialect_named
from sqlflow_edl.syntax.lookalikes import WithoutOptionsError, correct_statement, one_line
from sqlflow_edl.syntax.parse import read_statements
from sqlflow_edl.syntax.predict_calls import calls_predict

_ADVISERS: tuple[tuple[type[SQLFlowError], Callable[..., None]], ...] = (
    (NeedlessLabelError, columns.advise_needless_label),
    (NoLabelOptionError, columns.advise_label_option),
    (UnknownColumnError, columns.advise_unselected),
    (MissingColumnsError, columns.advise_missing),
    (UnfitColumnError, columns.advise_unfit),
    (TextLabelError, columns.advise_text_label),
    (TextOperandError, columns.advise_text_operand),
    (MissingLabelError, columns.advise_label),
    (NoRowsError, conditions.advise_no_rows),
    (NoModelError, models.advise_no_model),
    (UnknownModelError, models.advise_unknown),
    (UnknownArchitectureError, models.advise_architecture),
    (OtherModelError, models.advise_other_model),
    (WithoutOptionsError, columns.advise_without_options),
    (SourceError, conditions.advise_literal),
)
# Sources to read rows from for advice. The other ones ask for money or start a job for each query.
LOOKED_AT = ("duckdb", "sqlite", "mysql", "postgres")


def add_correction(error: SQLFlowError, compiler: Compiler, statement: Statement) -> None:
    """Let the errors of a statement say what was meant, as far as the source tells."""
    errors = error.errors if isinstance(error, ErrorList) else (error,)
    if any(one_error.corrected for one_error in errors):
        return
    if compiler.source.has_open_transaction:  # a query that fails would undo it
        return
    look = Look(compiler, statement)
    for one_error in errors if compiler.source.dialect in LOOKED_AT else ():
        adviser = next((adviser for kind, adviser in _ADVISERS if isinstance(one_error, kind)), None)
        if adviser is not None:
            with suppress(SQLFlowError):  # the present error says enough
                adviser(one_error, look)
    text = correct_statement(error, statement.text, statement.span.start)
    if text is not None and _is_valid(text, compiler, statement):
        errors[-1].corrected = one_line(text, dialect_named(compiler.dialect))


def _is_valid(text: str, compiler: Compiler, statement: Statement) -> bool:
    """Return True if the text is one statement without an error that can be found before it runs."""
    with suppress(SQLFlowError):
        parsed = read_statements(text, compiler.dialect, advise=False)
        if len(parsed) != 1 or isinstance(parsed[0], SQLFlowError):
            return False
        if parsed[0].kind == "sql" != statement.kind:
            return False
        if ProgramCheck(compiler).problems(parsed) != [None]:
            return False
        has_calls = calls_predict(text)  # which the check of the program has read
        if parsed[0].kind == "sql" and compiler.source.finds_syntax_errors and not has_calls:
            return Look(compiler, parsed[0]).is_accepted()
        return True
    return False
