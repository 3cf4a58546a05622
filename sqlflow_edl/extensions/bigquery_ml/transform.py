"""TRANSFORM of BigQuery ML's CREATE MODEL, as the text of a COLUMN clause.

    TRANSFORM(ML.STANDARD_SCALER(age) OVER () AS age, EXTRACT(MONTH FROM born) AS born, income)

What stands for something else here is written over it in as many characters, so that places stay. Functions that have
no exact counterpart are errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import combinations_with_replacement, takewhile
from typing import Any

from edl.errors import Span, StatementSyntaxError, did_you_mean
from sqlflow_edl.syntax.ast import Name
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.lexer import Token, name_value, sql_tokens
from sqlflow_edl.syntax.predict_calls import find_closing, replace_parts


@dataclass(frozen=True, slots=True)
class _Encoder:
    """Function of BigQuery ML: its name in COLUMN, the number of its arguments, and how it is written."""

    ours: str
    arguments: int
    form: str


_ENCODERS: Mapping[str, _Encoder] = {
    "STANDARD_SCALER": _Encoder("STANDARDIZE", 1, "ML.STANDARD_SCALER(x) OVER ()"),
    "MAX_ABS_SCALER": _Encoder("STANDARDIZE", 1, "ML.MAX_ABS_SCALER(x) OVER ()"),
    "ROBUST_SCALER": _Encoder("STANDARDIZE", 1, "ML.ROBUST_SCALER(x) OVER ()"),
    "MIN_MAX_SCALER": _Encoder("NORMALIZE", 1, "ML.MIN_MAX_SCALER(x) OVER ()"),
    "BUCKETIZE": _Encoder("BUCKET", 2, "ML.BUCKETIZE(x, [1, 2])"),
    "QUANTILE_BUCKETIZE": _Encoder("BUCKETIZE", 2, "ML.QUANTILE_BUCKETIZE(x, 5) OVER ()"),
    "ONE_HOT_ENCODER": _Encoder("ONE_HOT", 1, "ML.ONE_HOT_ENCODER(x) OVER ()"),
    "LABEL_ENCODER": _Encoder("VOCABULARIZE", 1, "ML.LABEL_ENCODER(x) OVER ()"),
    "HASH_BUCKETIZE": _Encoder("HASH", 2, "ML.HASH_BUCKETIZE(x, 100)"),
    "IMPUTER": _Encoder("IMPUTE", 2, "ML.IMPUTER(x, 'median') OVER ()"),
    "FEATURE_CROSS": _Encoder("CROSS", 1, "ML.FEATURE_CROSS(STRUCT(a, b))"),
}
# other functions of BigQuery ML
_OTHERS = ("NGRAMS", "NORMALIZER")
_SCALERS = ("MAX_ABS_SCALER", "ROBUST_SCALER")  # that STANDARDIZE stands for
_WORDS = ("BAG_OF_WORDS", "MULTI_HOT_ENCODER", "TF_IDF")
_SPLITS = ("SPLIT", "STRING_SPLIT")
_MOST_WORDS = 1000  # of a vocabulary without a size
_MOST_DEGREES = 4
_CROSSES = 2  # columns
_CROSSED = "CROSS(size=900,keys=["  # not longer than ML.FEATURE_CROSS(STRUCT(
_IMPUTED = ("mean", "median", "most_frequent")
_PARTS = {
    "YEAR": "YEAR",
    "MONTH": "MONTH",
    "DAY": "DAY",
    "DAYOFWEEK": "WEEKDAY",
    "HOUR": "HOUR",
    "MINUTE": "MINUTE",
}
# functions of expressions -> functions of COLUMN
_FUNCTIONS = {
    **{name: name for name in ("LN", "EXP", "SQRT", "ABS", "LEAST", "GREATEST", "COALESCE", "IFNULL")},
    "LOG": "LN",  # LOG of a column is log(1 + x) in COLUMN
}
_INSTEAD = "compute it in the SELECT; sqlflow help bigquery-ml lists what TRANSFORM takes"
_Edit = tuple[Span, str]  # of the whole text


@dataclass(frozen=True, slots=True)
class TransformItems:
    """TRANSFORM read as items of COLUMN, in as many characters.

    computed: names of columns that are no features, such as the label, -> the expressions for them. warnings: what
    differs. moved: places of the last items, which stand elsewhere in the text. without: columns of * EXCEPT.
    """

    items: str
    computed: Mapping[str, str]
    warnings: Sequence[str]
    moved: Sequence[Span] = ()
    without: Sequence[Name] = ()


@dataclass(frozen=True, slots=True)
class _TransformReader:
    """Findings: edits, items that need more characters than they have, computed columns, warnings."""

    text: str
    edits: list[_Edit] = field(default_factory=list)
    appended: list[str] = field(default_factory=list)
    moved: list[Span] = field(default_factory=list)
    computed: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    without: list[Name] = field(default_factory=list)

    def slice(self, tokens: Sequence[Token]) -> str:
        return self.text[tokens[0].start : tokens[-1].end]


def read_transform(text: str, span: Span, others: Collection[str], dialect: Dialect) -> TransformItems:
    """Read the items between the parentheses.

    others: columns that are no features, such as the label, in lower case. They are left out, and so are aliases, which
    no other item can use. Raises StatementSyntaxError, with the place, for what has no counterpart.
    """
    inside = list(takewhile(lambda part: part.start < span.end, sql_tokens(text, span.start, dialect)))
    comments = [_span(part) for part in inside if part.kind == "comment"]
    reading = _TransformReader(replace_parts(text, [(of, " " * (of.end - of.start)) for of in comments]))
    items = [part for part in split_at_commas([part for part in inside if part.kind != "comment"]) if part]
    left = 0
    for place, item in enumerate(items, 1):
        end = items[place][0].start if place < len(items) else span.end
        if _is_left_out(item, others, reading):
            reading.edits.append((Span(item[0].start, end), ""))
        elif appended := _longer_items(item, reading):
            reading.edits.append((Span(item[0].start, end), ""))
            reading.appended.extend(appended)
            reading.moved.extend([Span(item[0].start, item[-1].end)] * len(appended))
        else:
            left += 1
            reading.edits.extend(_item(item, others, reading))
    if not left and not reading.appended:
        raise StatementSyntaxError("TRANSFORM lists no features", span=span, hint="write TRANSFORM(*)")
    edits = sorted(reading.edits, key=lambda edit: edit[0].start)
    placed = [(of.shift(-span.start), instead.ljust(of.end - of.start)) for of, instead in edits]
    rest = replace_parts(reading.text[span.start : span.end], placed)
    joined = ", ".join(reading.appended)
    is_list = bool(left) and not rest.rstrip().endswith(",")
    return TransformItems(
        f"{rest}{', ' if is_list and joined else ''}{joined}",
        reading.computed,
        reading.warnings,
        reading.moved,
        reading.without,
    )


def _is_left_out(item: Sequence[Token], others: Collection[str], reading: _TransformReader) -> bool:
    """Return True for a column that is no feature; note the expression of a computed one."""
    name = name_value(item[-1].text)
    if name.casefold() not in others:
        return False
    if len(item) == 1:
        return True
    if len(item) < 3 or item[-2].word != "AS":
        return False
    read = {name_value(token.text).casefold() for token in item[:-2] if token.kind in ("word", "name")}
    if name.casefold() in read or "ML" in {token.word for token in item}:
        hint = "compute it in the SELECT, or give it another name than its column"
        raise _error(f"{item[-1].text} is no feature and stays as it is", item, hint)
    reading.computed[name] = reading.slice(item[:-2])
    return True


def _longer_items(item: Sequence[Token], reading: _TransformReader) -> list[str]:
    """Return items of COLUMN for a function with several features, or a longer form; empty for other items."""
    if len(item) > 2 and item[-2].word == "AS":
        item = item[:-2]
    if item[0].text == "*" and len(item) > 4 and item[1].word in ("EXCEPT", "EXCLUDE"):
        tokens = [token for token in item[3:-1] if token.kind in ("word", "name")]
        names = [name_value(token.text) for token in tokens]
        reading.without.extend(
            Name((name,), name, Span(token.start, token.end))
            for name, token in zip(names, tokens, strict=True)
        )
        return ["'(?!(?i:" + "|".join(map(re.escape, names)) + ")$).*'"]
    function = item[2].word if len(item) > 4 and item[0].word == "ML" else ""
    if function == "POLYNOMIAL_EXPAND":
        return _powers(item, reading)
    if function in _WORDS:
        return [_words(item, function, reading)]
    return []


def _powers(item: Sequence[Token], reading: _TransformReader) -> list[str]:
    """Return the products of the columns of ML.POLYNOMIAL_EXPAND(STRUCT(x, y), 2) up to its degree."""
    form = "write ML.POLYNOMIAL_EXPAND(STRUCT(x, y), 2)"
    struct, *rest = split_at_commas(item[4:-1])
    degree = int(rest[0][0].text) if rest and rest[0][0].text.isdecimal() else 2 if not rest else 0
    if len(struct) < 4 or struct[0].word != "STRUCT" or not 1 <= degree <= _MOST_DEGREES:
        raise _error(f"ML.{item[2].text} takes other arguments here", item, form)
    columns = [reading.slice(_without_alias(part)) for part in split_at_commas(struct[2:-1]) if part]
    return [
        " * ".join(product)
        for count in range(1, degree + 1)
        for product in combinations_with_replacement(columns, count)
    ]


def _without_alias(part: Sequence[Token]) -> Sequence[Token]:
    return part[:-2] if len(part) > 2 and part[-2].word == "AS" else part


def _words(item: Sequence[Token], function: str, reading: _TransformReader) -> str:
    """Return the words of a text as a list of categories: ML.BAG_OF_WORDS(SPLIT(x, ' '), 1000) OVER ()."""
    form = f"write ML.{function}(SPLIT(x, ' '), 1000) OVER ()"
    end = find_closing(item, 3)
    arguments = split_at_commas(item[4:end]) if end else []
    split = arguments[0] if arguments else []
    parts = split_at_commas(split[2:-1]) if len(split) > 3 and split[0].word in _SPLITS else []
    if not parts or len(parts) > 2 or not all(parts) or len(parts[0]) != 1:
        raise _error(f"ML.{function} takes other arguments here", item, form)
    delimiter = reading.slice(parts[1]) if len(parts) > 1 else "','"
    size = reading.slice(arguments[1]) if len(arguments) > 1 else str(_MOST_WORDS)
    if not size.isdecimal():
        raise _error(f"ML.{function} takes other arguments here", item, form)
    if function == "TF_IDF":
        reading.warnings.append("ML.TF_IDF is ML.BAG_OF_WORDS here: a word counts the same in each text")
    return f"ONE_HOT(VOCABULARIZE({reading.slice(parts[0])}, {size}, delimiter={delimiter}))"


def move_to(value: Any, span: Span) -> Any:
    """Return a part of a statement with all its places replaced by one."""
    if isinstance(value, Span):
        return span
    if isinstance(value, tuple):
        return tuple(move_to(part, span) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: move_to(getattr(value, one.name), span) for one in fields(value)})
    return value


def split_at_commas(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split tokens at the commas outside of brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _item(item: Sequence[Token], others: Collection[str], reading: _TransformReader) -> Iterator[_Edit]:
    """Yield the edits of an item that is not left out."""
    if item[0].text == "*" and len(item) > 1:
        raise _error("TRANSFORM takes * and * EXCEPT (x) here", item[1:], "write * EXCEPT (x)")
    if len(item) > 2 and item[-2].word == "AS":
        yield Span(item[-2].start, item[-1].end), ""
        item = item[:-2]
    yield from _calls(item, reading)


def _calls(item: Sequence[Token], reading: _TransformReader) -> Iterator[_Edit]:
    """Yield the edits of the calls in an item."""
    at = 0
    while at < len(item):
        is_call = item[at].kind == "word" and at + 1 < len(item) and item[at + 1].text == "("
        if item[at].word == "ML" and [token.text for token in item[at + 1 : at + 4 : 2]] == [".", "("]:
            edits, at = _encoder(item, at, reading)
            yield from edits
        elif item[at].word == "EXTRACT" and is_call:
            yield _part(item, at)
            at += 4
        elif item[at].word == "OVER" and is_call:
            if item[at + 2].text != ")":
                raise _error("OVER has nothing between its parentheses here", item[at:], "write OVER ()")
            yield Span(item[at].start, item[at + 2].end), ""
            at += 3
        elif is_call:
            name = _FUNCTIONS.get(item[at].word)
            if name is None:
                raise _error(f"TRANSFORM has no {item[at].text} here", item[at : at + 1], _INSTEAD)
            yield _span(item[at]), name
            at += 2
        else:
            at += 1


def _encoder(item: Sequence[Token], at: int, reading: _TransformReader) -> tuple[list[_Edit], int]:
    """Return the edits of a call of ML.…, and the position where its arguments begin."""
    name, end = item[at + 2], find_closing(item, at + 3)
    encoder = _ENCODERS.get(name.word)
    if encoder is None or end is None:
        near = None if name.word in _OTHERS else did_you_mean(name.word, list(_ENCODERS))
        raise _error(f"TRANSFORM has no ML.{name.text} here", item[at : at + 3], near or _INSTEAD)
    arguments = split_at_commas(item[at + 4 : end])
    if name.word in _SCALERS:
        reading.warnings.append(
            f"ML.{name.word} is {encoder.ours} here: another scale of the column, which the weights of a model balance"
        )
    if len(arguments) != encoder.arguments or not all(arguments):
        raise _error(
            f"ML.{name.text} takes other arguments here", item[at : end + 1], f"write {encoder.form}"
        )
    edits = [(Span(item[at].start, name.end), encoder.ours)]
    inside = at + 4
    if name.word == "FEATURE_CROSS":
        struct = arguments[0]
        if (
            struct[0].word != "STRUCT"
            or struct[-1].text != ")"
            or len(split_at_commas(struct[2:-1])) != _CROSSES
        ):
            raise _error(
                "ML.FEATURE_CROSS crosses two columns here", item[at : end + 1], f"write {encoder.form}"
            )
        edits = [(Span(item[at].start, struct[1].end), _CROSSED), (_span(struct[-1]), "]")]
        inside += 2
    if name.word == "IMPUTER":
        [*_, how] = arguments[1]
        strategy = how.text.strip("'\"").casefold()
        if strategy not in _IMPUTED:
            raise _error(f"ML.IMPUTER has no strategy {how.text} here", [how], f"write {encoder.form}")
        edits.append((_span(how), f" {strategy}"))
    return edits, inside


def _part(item: Sequence[Token], at: int) -> _Edit:
    """Return the edit of `EXTRACT(MONTH FROM`."""
    part, word = (*item[at + 2 : at + 4], item[-1], item[-1])[:2]
    if part.word not in _PARTS or word.word != "FROM":
        hint = f"{', '.join(_PARTS)} are possible, such as EXTRACT(MONTH FROM x)"
        raise _error(f"EXTRACT has no part {part.text} here", [part], hint)
    return Span(item[at].start, word.end), f"{_PARTS[part.word]}("


def _span(token: Token) -> Span:
    return Span(token.start, token.end)


def _error(message: str, tokens: Sequence[Token], hint: str) -> StatementSyntaxError:
    return StatementSyntaxError(message, span=Span(tokens[0].start, tokens[-1].end), hint=hint)
