"""`ALTER MODEL [IF EXISTS] name RENAME TO new_name` and `SET OPTIONS(description = '…', …)` of BigQuery ML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edl.errors import Advice, Span, SQLFlowError, StatementSyntaxError, raise_all
from edl.models.registry.records import split_reference
from sqlflow_edl.extensions.bigquery_ml.create_model import find_parenthesis
from sqlflow_edl.extensions.bigquery_ml.model_facts import read_fact
from sqlflow_edl.extensions.bigquery_ml.transform import split_at_commas
from sqlflow_edl.syntax.ast import Attribute, Name, Statement
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.foreign_statements import ALTER_MODEL, read_model_name
from sqlflow_edl.syntax.lexer import Token, code_tokens, with_hash_comments

_EXAMPLE = "write RENAME TO new_name, or SET OPTIONS(description = 'what it predicts')"


def read_alter_model(text: str, span: Span, dialect: Dialect) -> Statement:
    """Return ALTER MODEL. span: of the statement in the program's text.

    Raises SQLFlowError, with the place, for options that models do not have.
    """
    head = ALTER_MODEL.match(text, span.start)
    if head is None:
        raise RuntimeError("the statement alters no model")
    model = read_model_name(head)
    name, selector = split_reference(str(model))
    if selector is not None:
        raise StatementSyntaxError(
            f"{model} is a version, and a model is renamed with all its versions",
            span=model.span,
            hint=Advice(f"write ALTER MODEL {name}", name),
        )
    statement = Statement(
        "rename_model",
        text=text[span.start : span.end],
        span=span,
        model=model,
        if_exists=bool(head["absent"]),
    )
    if head["options"]:
        end = find_parenthesis(text, head.end() - 1, span.end, dialect)
        tokens = code_tokens(text[:end], head.end(), with_hash_comments(dialect))
        place = Span(head.start("options"), head.end("options"))
        options = _read_options(list(tokens), model, place)
        return replace(statement, kind="set_facts", attributes=options)
    new_name = read_model_name(head, "new_name")
    if rest := text[head.end() : span.end].strip():
        place = Span(text.index(rest, head.end()), span.end)
        raise StatementSyntaxError(f"unexpected {rest} behind the new name", span=place, hint="leave it out")
    return replace(statement, into=(new_name,))


def _read_options(tokens: Sequence[Token], model: Name, place: Span) -> tuple[Attribute, ...]:
    """Return each option with its value as a text; NULL, which removes it, is empty. Raises all errors together."""
    options: dict[str, Attribute] = {}
    errors: list[SQLFlowError] = []
    for tokens_of_option in split_at_commas(list(tokens)) if tokens else ():
        try:
            option = read_fact(tokens_of_option, model)
            if option.key in options:
                raise StatementSyntaxError(
                    f"{option.key} is given twice", span=option.key_span, hint="keep one of them"
                )
            options[option.key] = option
        except SQLFlowError as error:
            errors.append(error)
    if not options and not errors:
        errors.append(StatementSyntaxError("the options are empty", span=place, hint=_EXAMPLE))
    raise_all(errors)
    return tuple(options.values())
