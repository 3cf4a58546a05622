"""Facts for people that a model keeps: `description`, `labels` and others of CREATE MODEL and ALTER MODEL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from edl.errors import Span, StatementSyntaxError, did_you_mean
from sqlflow_edl.extensions.bigquery_ml.transform import split_at_commas
from sqlflow_edl.syntax.ast import Attribute, Constant, Name
from sqlflow_edl.syntax.lexer import Token, string_value


def facts_among(tokens: Sequence[Token], model: Name) -> Iterator[Attribute]:
    """Yield the facts among the options of CREATE MODEL; NULL gives none. Raises StatementSyntaxError for a wrong one.

    `labels` are pairs here; without them they name the label of a training.
    """
    for option in split_at_commas(list(tokens)) if tokens else ():
        key = option[0].text.casefold()
        if key in _READERS and (key != "labels" or is_pairs(option[2:])):
            fact = read_fact(option, model)
            if isinstance(fact.value, Constant) and fact.value.value:
                yield fact


def is_pairs(value: Sequence[Token]) -> bool:
    """Return True for labels of a model, pairs of texts: [('team', 'sales')]."""
    return [token.text for token in value[:2]] == ["[", "("]


def read_fact(tokens: Sequence[Token], model: Name) -> Attribute:
    """Return an option `name = value` with its value as a text; NULL, which removes it, is empty.

    Raises StatementSyntaxError with the place.
    """
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
