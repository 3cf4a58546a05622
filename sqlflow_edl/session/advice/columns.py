"""Advice on columns: not selected but there, missing for the model, of another type, texts in place of numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edl.errors import Advice, Span
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks import text_expressions
from sqlflow_edl.analysis.checks.query_errors import (
    MissingColumnsError,
    MissingLabelError,
    NeedlessLabelError,
    NoLabelOptionError,
    TextLabelError,
    TextOperandError,
    UnfitColumnError,
    UnknownColumnError,
)
from sqlflow_edl.analysis.checks.text_readings import NumberReading, read_texts
from sqlflow_edl.analysis.statistics.fitting import ValueCounts
from sqlflow_edl.session.advice.looks import Look, list_texts, text
from sqlflow_edl.syntax.keywords import CLAUSES
from sqlflow_edl.syntax.lexer import code_tokens
from sqlflow_edl.syntax.lookalikes import WithoutOptionsError, one_line
from sqlflow_edl.syntax.queries import end_of_items, with_expression, without_item
from sqlflow_edl.syntax.rewrites import LABEL_NAME

if TYPE_CHECKING:
    import pyarrow as pa

_SELECTED_BY_TRAINING = "the training selected "  # before an expression and the name of its column
_NUMBER_INSIDE = re.compile(r"[^\d-]*\d+(?:\.\d+)?\D*")
_INSIDE = "[0-9]+([.][0-9]+)?"
# types of Arrow -> of a cast
_CASTS = (
    ("int|uint|bool", "BIGINT"),
    ("float|double|decimal", "DOUBLE"),
    ("date", "DATE"),
    ("timestamp", "TIMESTAMP"),
    ("string", "VARCHAR"),
)


def advise_unselected(error: UnknownColumnError, look: Look) -> None:
    """Say that the table has the column, and add it to the SELECT."""
    column = look.find_column(error.column)
    end = end_of_items(look.select, look.dialect)
    if column and end is not None:
        error.hint = _selects(look, [column], end)


def advise_label_option(error: NoLabelOptionError, look: Look) -> None:
    """Add the option input_label_cols."""
    statement, names = look.statement, look.query_schema
    tokens = [*code_tokens(statement.text, 0, look.dialect)]
    at = next((at for at, token in enumerate(tokens) if token.word == "OPTIONS"), None)
    if at is None or names is None:
        return
    depth, end = 0, at
    for end in range(at + 1, len(tokens)):
        depth += tokens[end].nesting
        if depth == 0:
            break
    comma = ", " if end > at + 2 else ""
    option = f"input_label_cols = ['{likely_label(names)}']"
    place = Span(tokens[end].start, tokens[end].start).shift(statement.span.start)
    error.message = "the options name no label, and the query has no column label"
    error.span = Span(tokens[at].start, tokens[at].end).shift(statement.span.start)
    error.hint = Advice(
        f"write {option}, or another column that is to be predicted", f"{comma}{option}", place
    )


def advise_without_options(error: WithoutOptionsError, look: Look) -> None:
    """CREATE MODEL m AS SELECT …: the short form trains the best model."""
    text = look.statement.text
    begin = next((token.end for token in code_tokens(text, 0, look.dialect) if token.word == "AS"), None)
    if begin is None:
        return
    select = text[begin:].strip()
    label = expressions.argument(likely_label(look.compiler.source.schema(select)))
    error.hint = (
        f"the short form needs no model type, only the column that is to be predicted, such as {label}"
    )
    error.corrected = one_line(f"{select} LABEL {label} INTO {error.model}", look.dialect)


def advise_label(error: MissingLabelError, look: Look) -> None:
    """Name the column that is probably predicted, and the others of the query."""
    if look.query_schema is None:
        return
    label = look.name(likely_label(look.query_schema))
    columns = ", ".join(map(look.name, look.query_schema.names[:12]))
    hint = f"name {error.names}, such as LABEL {label}; the query has {columns}"
    tokens = code_tokens(look.statement.text, 0, look.dialect)
    into = [token.start for token in tokens if token.word == "INTO"][-1:]
    at = into[0] if into else len(look.statement.text)
    instead = f"LABEL {label} " if into else f" LABEL {label}"
    error.hint = Advice(hint, instead, Span(at, at).shift(look.statement.span.start))


def advise_needless_label(error: NeedlessLabelError, look: Look) -> None:
    """Leave LABEL out, and its column out of the SELECT."""
    statement, label = look.statement, look.statement.labels[0]
    text, start = statement.text, statement.span.start
    clause = [
        token
        for token in code_tokens(text, 0, look.dialect)
        if token.word in ("LABEL", "TARGET") and token.end + start <= label.span.start
    ]
    select = without_item(look.select, look.name(str(label)), look.dialect)
    if not clause or select is None or statement.select_span is None or len(statement.labels) > 1:
        return
    behind = text[statement.select_span.end - start : clause[-1].start].rstrip()
    rest = text[label.span.end - start :].lstrip()
    hint = f"leave LABEL {label} out, and out of the SELECT: {select}"
    error.hint = Advice(hint, " ".join(filter(None, (select + behind, rest))), statement.span)


def likely_label(columns: pa.Schema) -> str:
    """Return the column that is probably predicted: one with such a name, the last boolean, or the last."""
    import pyarrow.types as types

    names = [field.name for field in columns if LABEL_NAME.match(field.name)]
    booleans = [field.name for field in columns if types.is_boolean(field.type)]
    return str([*list(columns.names)[-1:], *booleans[-1:], *names[-1:]][-1])


def _selects(look: Look, columns: list[str], end: int) -> Advice:
    has = f"{look.table or 'the table'} has {'it' if len(columns) == 1 else 'them'}"
    named = ", ".join(map(look.name, columns))
    return Advice(f"{has}: select {named}, too", f", {named}", Span(end, end).shift(look.start))


def _place(look: Look) -> Span:
    return Span(0, len(look.select)).shift(look.start)


def advise_missing(error: MissingColumnsError, look: Look) -> None:
    """Add the columns that the tables have; say which are nowhere, with NULL in their place."""
    present = {column: column_found for column in error.types if (column_found := look.find_column(column))}
    end = end_of_items(look.select, look.dialect)
    if end is None or look.columns is None or error.advice is not None:
        return
    if (hint := error.hint or "").startswith(_SELECTED_BY_TRAINING) and not present:
        if len(error.types) == 1:
            item = hint.removeprefix(_SELECTED_BY_TRAINING)
            error.hint = Advice(hint, f", {item}", Span(end, end).shift(look.start))
    elif len(present) == len(error.types):
        error.hint = _selects(look, [*present.values()], end)
    elif error.is_label:
        error.hint = _advise_prediction(look, *error.types)
    else:
        items = [
            look.name(present[column]) if column in present else _null(kind, look.name(column))
            for column, kind in error.types.items()
        ]
        lacks = ", ".join(map(look.name, (column for column in error.types if column not in present)))
        hint = (
            f"{look.table or 'the table'} has no {lacks}; with NULL the model predicts as for unknown values"
        )
        error.hint = Advice(hint, f", {', '.join(items)}", Span(end, end).shift(look.start))


def _advise_prediction(look: Look, label: str) -> str:
    """Return the hint for rows without the label: they can only be predicted."""
    hint = f"{look.table or 'the table'} has no {look.name(label)} to compare predictions with; PREDICT needs none"
    statement = look.statement
    if statement.model is None or statement.select_span is None:
        return hint
    clauses = Span(statement.select_span.end, statement.span.end)
    return Advice(hint, f" TO PREDICT USING {expressions.model(str(statement.model))}", clauses)


def _null(kind: str, name: str) -> str:
    return f"CAST(NULL AS {_cast(kind) or 'DOUBLE'}) AS {name}"


def _cast(kind: str) -> str:
    return next((cast for pattern, cast in _CASTS if re.match(pattern, kind)), "")


def advise_unfit(error: UnfitColumnError, look: Look) -> None:
    """Write the cast to the type of the training, or the expression that made the column there."""
    name, cast = look.name(error.column), _cast(error.wanted)
    expression = error.made[: -len(name)].rstrip()[: -len("AS")].rstrip() if error.made.endswith(name) else ""
    if not expression and cast:
        expression = (
            _number(look, error.column, cast) if cast in ("BIGINT", "DOUBLE") else f"CAST({name} AS {cast})"
        )
    replaced = with_expression(look.select, name, expression, look.dialect) if expression else None
    if replaced is None:
        return
    said = "the training selected" if error.made else "write"
    error.hint = Advice(f"{said} {replaced.item}", replaced.select, _place(look))


def _number(look: Look, column: str, cast: str) -> str:
    """Return the cast of a column to a number; of texts with a number inside, the cast of that number."""
    name = look.name(column)
    values = look.values_of_query(column)
    if expression := _read_numbers(look, column, values):
        return expression
    if look.compiler.dialect == "duckdb" and values and not any(map(_is_number, values)):
        if all(_NUMBER_INSIDE.fullmatch(value) for value in values):
            return f"CAST(regexp_extract({name}, '{_INSIDE}') AS {cast})"
        return ""
    return f"CAST({name} AS {cast})" if all(map(_is_number, values)) else f"TRY_CAST({name} AS {cast})"


def _read_numbers(look: Look, column: str, texts: list[str]) -> str:
    """Return the expression of the numbers with signs of money, of thousands and the like, empty for other texts."""
    reading = read_texts(ValueCounts(tuple(texts), (1,) * len(texts)))
    is_plain = not isinstance(reading, NumberReading) or (not reading.symbols and reading.decimal == ".")
    if is_plain or reading is None or reading.ambiguous:
        return ""
    return text_expressions.read_column(column, reading, look.compiler.dialect) or ""


def advise_text_label(error: TextLabelError, look: Look) -> None:
    """Select the numbers of a label of texts, where they are numbers."""
    values, name = look.values(error.column), look.name(error.column)
    expression = _read_numbers(look, error.column, values)
    if not expression and values and all(map(_is_number, values)):
        expression = f"CAST({name} AS DOUBLE)"
    replaced = with_expression(look.select, name, expression, look.dialect) if expression else None
    if replaced is not None:
        hint = f"its texts are numbers, such as {text(values[0])}: select {replaced.item}"
        error.hint = Advice(hint, replaced.select, _place(look))


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _have_digits(values: list[str]) -> bool:
    return any(character.isdigit() for value in values for character in value)


def advise_text_operand(error: TextOperandError, look: Look) -> None:
    """Say what a text of COLUMN holds: categories are a feature as they are."""
    values = look.values(error.column)
    place = _item(look, error.span)
    if not values or place is None:
        return
    name = look.name(error.column)
    if not any(map(_is_number, values)):
        if _have_digits(values):  # dates, lists of numbers
            return
        error.hint = Advice(
            f"{error.column} holds categories, such as {list_texts(values, 3)}: write {name} alone",
            name,
            place,
        )
        return
    replaced = with_expression(look.select, name, f"TRY_CAST({name} AS DOUBLE)", look.dialect)
    if replaced is not None:
        hint = f"its texts are numbers: select {replaced.item}"
        error.hint = Advice(hint, replaced.select, _place(look))


def _item(look: Look, span: Span | None) -> Span | None:
    """Return the place of the item of a clause around a place, or None."""
    if span is None or look.statement.select_span is None:
        return None
    begin = look.statement.select_span.end - look.statement.span.start
    text, offset = look.statement.text, look.statement.span.start
    first = last = None
    depth = 0
    for token in code_tokens(text, begin, look.dialect):
        depth -= token.nesting < 0
        ends = depth == 0 and (token.text == "," or token.word in CLAUSES or token.kind == "semicolon")
        if ends and token.start + offset >= span.end:
            break
        if ends:
            first = None
        else:
            first = token.start if first is None else first
            last = token.end
        depth += token.nesting > 0
    return Span(first, last).shift(offset) if first is not None and last is not None else None


def text_advice(look: Look, advice: Advice, column: str, place: Span) -> Advice | None:
    """Return the advice on a text with which the query computes, by its values; None if its cast is right.

    advice: with the cast. place: in the program, of the expression.
    """
    values = look.values(column)
    if not values or any(map(_is_number, values)):
        return None
    name = look.name(column)
    if look.compiler.dialect == "duckdb" and all(_NUMBER_INSIDE.fullmatch(value) for value in values):
        number = f"CAST(regexp_extract({name}, '{_INSIDE}') AS DOUBLE)"
        instead = re.sub(rf"TRY_CAST\({re.escape(column)} AS DOUBLE\)", lambda _: number, advice.instead)
        return Advice(f"{column} is a text such as {list_texts(values, 1)}: write {instead}", instead, place)
    if _have_digits(values):
        return None
    return Advice(
        f"{column} holds categories, such as {list_texts(values, 3)}: use {name} itself", name, place
    )
