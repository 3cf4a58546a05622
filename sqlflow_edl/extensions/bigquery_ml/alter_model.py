"""`ALTER MODEL [IF EXISTS] name RENAME TO new_name` of BigQuery ML. `SET OPTIONS(…)` names what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from edl.errors import Advice, Span, SQLFlowError, StatementSyntaxError, did_you_mean, raise_all
from edl.models.registry.records import split_reference
from sqlflow_edl.extensions.bigquery_ml.create_model import find_parenthesis, read_options
from sqlflow_edl.syntax.ast import Attribute, Name, Statement
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.foreign_statements import ALTER_MODEL, read_model_name

_EXAMPLE = "write RENAME TO new_name"


def read_alter_model(text: str, span: Span, dialect: Dialect) -> Statement:
    """Return ALTER MODEL … RENAME TO. span: of the statement in the program's text.

    Raises SQLFlowError, with the place, for SET OPTIONS: models have no options that can be changed.
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
    if head["options"]:
        end = find_parenthesis(text, head.end() - 1, span.end, dialect)
        options = read_options(text, span, Span(head.end(), end), dialect)
        place = Span(head.start("options"), head.end("options"))
        raise_all(_refuse_options(options, model, span, place))
    new_name = read_model_name(head, "new_name")
    if rest := text[head.end() : span.end].strip():
        place = Span(text.index(rest, head.end()), span.end)
        raise StatementSyntaxError(f"unexpected {rest} behind the new name", span=place, hint="leave it out")
    return Statement(
        "rename_model",
        text=text[span.start : span.end],
        span=span,
        model=model,
        into=(new_name,),
        if_exists=bool(head["absent"]),
    )


def _refuse_options(options: Sequence[Attribute], model: Name, span: Span, place: Span) -> list[SQLFlowError]:
    """Return an error for each option, with what does the same here."""
    if not options:
        return [StatementSyntaxError("the options are empty", span=place, hint=_EXAMPLE)]
    errors: list[SQLFlowError] = []
    for option in options:
        key = option.key.casefold()
        if key not in _OPTIONS:
            hint = did_you_mean(key, list(_OPTIONS))
            errors.append(
                StatementSyntaxError(f"unknown option {option.key}", span=option.key_span, hint=hint)
            )
            continue
        message, hint = _OPTIONS[key]
        instead = _WRITE[key](model) if key in _WRITE else ""
        hint = f"{hint} {instead}" if instead and len(options) > 1 else hint
        advice = Advice(f"{hint} {instead}", instead, span) if instead and len(options) == 1 else hint
        errors.append(StatementSyntaxError(message, span=option.key_span, hint=advice))
    return errors


def _write_tag(model: Name) -> str:
    return f"SET MODEL {model} TAG my_tag 1"


def _write_statement(model: Name) -> str:
    return f"SHOW TRAIN {model}"


_COMMENT = "models keep no description, but the comments of the statement that trains them"
_EXPIRES = "models do not expire"
# option -> what is not here, and what does the same
_OPTIONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("description", "friendly_name"), (_COMMENT, "comments are shown by")),
    "labels": ("models have tags, which name a version, in place of labels", "write"),
    "expiration_timestamp": (
        _EXPIRES,
        "write DROP MODEL in a statement on a schedule, see sqlflow help scheduling",
    ),
    "kms_key_name": ("models are stored as the data source stores its tables", "encrypt the data source"),
    "vertex_ai_model_version_aliases": (
        "models have tags, which name a version, in place of aliases",
        "write",
    ),
}
_WRITE: Mapping[str, Callable[[Name], str]] = {
    **dict.fromkeys(("description", "friendly_name"), _write_statement),
    **dict.fromkeys(("labels", "vertex_ai_model_version_aliases"), _write_tag),
}
