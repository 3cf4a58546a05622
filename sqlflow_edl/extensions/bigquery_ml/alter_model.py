"""`ALTER MODEL [IF EXISTS] name RENAME TO new_name` and `SET OPTIONS(description = '…', …)` of BigQuery ML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from edl.errors import Advice, Span, SQLFlowError, StatementSyntaxError, did_you_mean, raise_all
from edl.models.registry.records import split_reference
from sqlflow_edl.extensions.bigquery_ml.create_model import find_parenthesis
from sqlflow_edl.extensions.bigquery_ml.transform import split_at_commas
from sqlflow_edl.syntax.ast import Attribute, Constant, Name, Statement
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.foreign_statements import ALTER_MODEL, read_model_name
from sqlflow_edl.syntax.lexer import Token, code_tokens, string_value, with_hash_comments

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
            option = _read_option(tokens_of_option, model)
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


def _read_option(tokens: Sequence[Token], model: Name) -> Attribute:
    name, equals, value = tokens[0], tokens[1:2], tokens[2:]
    key, key_span = name.text.casefold(), Span(name.start, name.end)
    if key in _ABSENT:
        message, hint = _ABSENT[key]
        raise StatementSyntaxError(message, span=key_span, hint=hint.format(model=model))
    if key not in _READERS:
        raise StatementSyntaxError(
            f"unknown option {name.text}", span=key_span, hint=did_you_mean(key, [*_READERS], list_up_to=9)
        )
    usage = _USAGES[key]
    if [token.text for token in equals] != ["="] or not value:
        raise StatementSyntaxError(f"{name.text} has no value", span=key_span, hint=f"write {usage}")
    span = Span(value[0].start, value[-1].end)
    content = "" if [token.text.casefold() for token in value] == ["null"] else _READERS[key](value)
    if content is None:
        raise StatementSyntaxError(f"{name.text} has another form", span=span, hint=f"write {usage}")
    return Attribute(key, Constant(content, span), key_span)


def _read_text(value: Sequence[Token]) -> str | None:
    return string_value(value[0].text) if len(value) == 1 and _is_string(value[0]) else None


def _read_labels(value: Sequence[Token]) -> str | None:
    """Return pairs of a key and a value: of [('team', 'sales'), ('trial', '')] the text `team: sales, trial`."""
    words = [token for token in value if token.text not in "[](),"]
    symbols = "".join(token.text if token.text in "[]()," else "s" for token in value)
    if not re.fullmatch(r"\[(\(s,s\),?)*\]", symbols) or not all(map(_is_string, words)):
        return None
    texts = [string_value(token.text) for token in words]
    return ", ".join(
        f"{key}: {label}" if label else key for key, label in zip(texts[::2], texts[1::2], strict=True)
    )


_UNITS = {"minute": "minutes", "hour": "hours", "day": "days", "week": "weeks"}
_LATER = re.compile(
    r"(?:timestamp|datetime)_add\(current_(?:timestamp|datetime)(?:\(\))?,interval(\d+)(minute|hour|day|week)\)"
)


def _read_time(value: Sequence[Token]) -> str | None:
    """Return a time in UTC, of TIMESTAMP '2030-01-01' or TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)."""
    joined = "".join(token.text for token in value).casefold()
    if later := _LATER.fullmatch(joined):
        time = datetime.now(UTC) + timedelta(**{_UNITS[later[2]]: int(later[1])})
    else:
        [*words, last] = value
        if not _is_string(last) or [token.text.casefold() for token in words] not in (
            [],
            ["timestamp"],
            ["datetime"],
        ):
            return None
        try:
            time = datetime.fromisoformat(re.sub(r"\s*UTC$", "+00:00", string_value(last.text)))
        except ValueError:
            return None
        time = time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _is_string(token: Token) -> bool:
    return token.text[:1] in ("'", '"')


_READERS = {
    "description": _read_text,
    "friendly_name": _read_text,
    "labels": _read_labels,
    "expiration_timestamp": _read_time,
}
_USAGES = {
    "description": "description = 'what it predicts'",
    "friendly_name": "friendly_name = 'a name'",
    "labels": "labels = [('team', 'sales')]",
    "expiration_timestamp": "expiration_timestamp = TIMESTAMP '2030-01-01'",
}
# option -> what is not here, and what does the same
_ABSENT = {
    "kms_key_name": ("models are stored as the data source stores its tables", "encrypt the data source"),
    "vertex_ai_model_version_aliases": (
        "models have tags, which name a version, in place of aliases",
        "write SET MODEL {model} TAG my_tag 1",
    ),
}
