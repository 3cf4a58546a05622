"""Advice on conditions: values that no row has, comparisons with NULL, literals that are none of the column's type."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from edl.errors import Advice, SourceError, Span, nearest
from sqlflow_edl.analysis.checks.query_errors import NoRowsError
from sqlflow_edl.session.advice.columns import text_advice
from sqlflow_edl.session.advice.looks import Look, list_texts, text

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d", "%d.%m.%y")
_CAST_OF = re.compile(r"TRY_CAST\((.+?) AS DOUBLE\)")
_VALUE = re.compile(r"[\"'](.*?)[\"']")
_RAISED = re.compile(r"onver|date field|timestamp field|invalid input|out of range", re.IGNORECASE)
_MOST_SHOWN = 5
_BEHIND_WHERE = ("group", "having", "qualify", "order", "limit", "offset", "windows")


def advise_no_rows(error: NoRowsError, look: Look) -> None:
    """Say which condition no row meets, and which values its column has."""
    if look.tree is None:
        return
    conditions = [*look.conditions()]
    if not conditions:
        if not look.rows(look.probe("1 AS n", "", "LIMIT 1")):
            error.hint = f"{look.table or 'its table'} is empty"
        elif place := _no_limit(look):
            error.hint = Advice(f"leave {look.text(place)} out", "", place)
            error.span = place
        return
    wrong = next((condition for condition in conditions if not look.has_rows(look.sql(condition))), None)
    if wrong is None:
        error.hint = f"no row meets all of: {', '.join(map(look.sql, conditions))}"
        return
    advice = (
        _null(wrong, look)
        or _label_value(wrong, look)
        or _value(wrong, look)
        or _pattern(wrong, look)
        or _range(wrong, look)
    )
    if advice is not None:
        error.hint = advice
        error.span = advice.span if isinstance(advice, Advice) and advice.span else error.span


def _no_limit(look: Look) -> Span | None:
    """Return the place of LIMIT 0 in the program."""
    for limit, number in itertools.pairwise(look.tokens):
        if limit.word == "LIMIT" and number.text == "0":
            return look.locate(Span(limit.start, number.end))
    return None


def _null(condition: exp.Expr, look: Look) -> str | None:
    """`plan = NULL`."""
    from sqlglot import exp

    if not isinstance(condition, exp.EQ | exp.NEQ) or not isinstance(condition.expression, exp.Null):
        return None
    is_equal = isinstance(condition, exp.EQ)
    column, verb = look.sql(condition.this), "IS NULL" if is_equal else "IS NOT NULL"
    instead = f"{column} {verb}"
    why = f"a comparison with NULL is never true: write {instead}"
    place = _find_comparison(look, "NULL", column)
    if not look.has_rows(instead):
        if not is_equal:
            return f"{why}; but every {column} is NULL here"
        why += f"; but no {column} is NULL here, and IS NOT NULL takes all rows"
        return Advice(why, f"{column} IS NOT NULL", place) if place else why
    return Advice(why, instead, place) if place else why


def _find_comparison(look: Look, last: str, column: str) -> Span | None:
    """Return the place of a comparison: a column, an operator and the word `last`; None if not one is found."""
    places = []
    for at, token in enumerate(look.tokens):
        if token.text.upper() != last.upper():
            continue
        first = at - 1
        while first > 0 and look.tokens[first].kind == "symbol" and look.tokens[first].text in "=<>!":
            first -= 1
        if first < at - 1 and column.endswith(look.tokens[first].text):
            begin = look.tokens[first].end - len(column)
            if look.select[begin : look.tokens[first].end] == column:
                places.append(look.locate(Span(begin, token.end)))
    return places[0] if len(places) == 1 else None


def _find_compared(condition: exp.Expr) -> Iterator[tuple[exp.Column, exp.Literal]]:
    """Yield the column and each literal of `x = 'a'`, `x IN ('a', 'b')` and other comparisons."""
    from sqlglot import exp

    if isinstance(condition, exp.In):
        sides = [(condition.this, item) for item in condition.expressions]
    elif isinstance(condition, exp.Between):
        sides = [(condition.this, condition.args["low"]), (condition.this, condition.args["high"])]
    elif isinstance(condition, exp.Binary):
        sides = [(condition.this, condition.expression), (condition.expression, condition.this)]
    else:
        sides = []
    for column, literal in sides:
        if isinstance(column, exp.Column) and isinstance(literal, exp.Literal):
            yield column, literal


def _label_value(condition: exp.Expr, look: Look) -> str | None:
    """`species = 'setsa'` LABEL species: any one value of the label leaves nothing to learn."""
    from sqlglot import exp

    labels = {name.parts[-1].casefold() for name in look.statement.labels}
    if not isinstance(condition, exp.EQ) or not look.statement.trains:
        return None
    for column, _ in _find_compared(condition):
        if column.name.casefold() in labels:
            known = list_texts(look.values(column.name), _MOST_SHOWN)
            hint = f"{column.name}, the label, is {known}: leave the condition out, for one class teaches nothing"
            where = [token for token in look.tokens if token.word == "WHERE"]
            place = look.locate(Span(where[0].start, look.tokens[-1].end)) if len(where) == 1 else None
            is_last = place is not None and [*look.conditions()] == [condition] and not _has_more(look)
            return Advice(hint, "", place) if place and is_last else hint
    return None


def _has_more(look: Look) -> bool:
    """Return True if the query goes on behind its condition."""
    return look.tree is not None and any(look.tree.args.get(part) for part in _BEHIND_WHERE)


def _value(condition: exp.Expr, look: Look) -> str | None:
    """`plan = 'Basic'`, where the values are basic and pro."""
    from sqlglot import exp

    if not isinstance(condition, exp.EQ | exp.In):
        return None
    for column, literal in _find_compared(condition):
        kind = _type(look, column.name)
        if kind is None or not literal.is_string:
            continue
        values, literal_text = look.values(column.name), literal.name
        if not values:
            return f"{column.name} is always NULL"
        near = _same_date(literal_text, values) or _near(literal_text, values)
        shown = [*([near] if near else []), *(value for value in values if value != near)]
        hint = f"{column.name} is {list_texts(shown, _MOST_SHOWN)}"
        place = look.only(text(literal_text))
        return Advice(hint, text(shown[0]), place) if place else hint
    return None


def _near(literal_text: str, values: list[str]) -> str | None:
    return nearest(literal_text.strip(), values) or next(
        (value for value in values if literal_text.strip().casefold() in value.casefold()), None
    )


def _same_date(literal_text: str, values: list[str]) -> str | None:
    """Return the date that was written as the column writes dates, if it has it."""
    if (date := _date(literal_text)) is None:
        return None
    return next((candidate for form in _FORMATS if (candidate := date.strftime(form)) in values), None)


def _date(date_text: str) -> datetime | None:
    for form in _FORMATS:
        with suppress(ValueError):
            return datetime.strptime(date_text.strip(), form)
    return None


def _pattern(condition: exp.Expr, look: Look) -> str | None:
    """`plan LIKE 'B%'`: case counts."""
    from sqlglot import exp

    if not isinstance(condition, exp.Like) or look.compiler.dialect not in (
        "duckdb",
        "postgres",
        "snowflake",
    ):
        return None
    instead = look.sql(exp.ILike(this=condition.this, expression=condition.expression))
    place = next((look.locate(token) for token in look.tokens if token.word == "LIKE"), None)
    if place is None or not look.has_rows(instead):
        values = look.values(condition.this.name) if isinstance(condition.this, exp.Column) else []
        return f"{condition.this.name} is {list_texts(values, _MOST_SHOWN)}" if values else None
    return Advice(f"LIKE tells capitals from small letters: write {instead}", "ILIKE", place)


def _range(condition: exp.Expr, look: Look) -> str | None:
    """`tenure > 1000`, where the largest is 60."""
    for column, literal in _find_compared(condition):
        name = look.name(column.name)
        extremes = look.rows(look.probe(f"MIN({name}) AS a, MAX({name}) AS b"))
        if not extremes or None in extremes[0]:
            return f"{column.name} is always NULL"
        least, most = extremes[0]
        hint = f"{column.name} is from {least} to {most}"
        place = look.only(text(literal.name) if literal.is_string else literal.name)
        middle = _median_literal(look, column.name)
        return Advice(f"{hint}: write, for example, {middle}", middle, place) if place and middle else hint
    return None


def _median_literal(look: Look, column: str) -> str:
    """Return a value of the column near its middle, as a literal; empty if it has none."""
    name = look.name(column)
    count = look.rows(look.probe("COUNT(*) AS n", f"{name} IS NOT NULL"))
    middle = count[0][0] // 2 if count else 0
    rows = look.rows(look.probe(name, f"{name} IS NOT NULL", f"ORDER BY {name} LIMIT 1 OFFSET {middle}"))
    if not rows:
        return ""
    value = rows[0][0]
    return str(value) if isinstance(value, int | float) else text(str(value))


def _type(look: Look, column: str) -> pa.DataType | None:
    name = look.find_column(column)
    return look.columns.field(name).type if name and look.columns is not None else None


# Errors of the database ------------------------------------------------------------------------------------


def advise_literal(error: SourceError, look: Look) -> None:
    """Say what the column of a literal takes that the database could not convert, or what a text holds."""
    if error.advice is not None:
        match = _CAST_OF.search(error.advice.instead)
        column = look.find_column(match[1].strip('"').rpartition(".")[2]) if match else None
        if column and error.span and (better := text_advice(look, error.advice, column, error.span)):
            error.hint = better
        return
    value = _VALUE.search(error.message)
    if value is None or not _RAISED.search(error.message):
        return
    for condition in look.conditions():
        for compared, literal in _find_compared(condition):
            if literal.is_string and literal.name == value[1]:
                _advise_literal(error, look, compared.name, literal.name)
                return


def _advise_literal(error: SourceError, look: Look, column: str, literal_text: str) -> None:
    import pyarrow.types as types

    kind = _type(look, column)
    place = look.only(text(literal_text))
    if kind is None or place is None:
        return
    error.span = place
    if types.is_temporal(kind):
        date = _date(literal_text)
        instead = text(f"{date:%Y-%m-%d}") if date else _median_literal(look, column)
        why = f"{column} is a date, which is written {instead}"
    elif types.is_boolean(kind):
        instead = (
            "FALSE" if literal_text.casefold() in ("no", "n", "nein", "non", "false", "0", "off") else "TRUE"
        )
        why = f"{column} is a boolean: TRUE or FALSE"
    else:
        instead = _median_literal(look, column)
        why = f"{column} is a number: write, for example, {instead}"
    error.hint = Advice(why, instead, place) if instead else why
