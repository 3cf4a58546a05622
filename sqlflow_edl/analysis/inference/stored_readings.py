"""Readings of CSV columns that a model is trained with, and their use for its later rows.

A column of a CSV file has the type that all its values have. Other rows may suggest another one: a code that was all
digits, a date that does not tell the day from the month. So the rows of a model are read as its training rows were, or
the first value that does not fit is an error.

The schema of the training query tells the reading of most columns. `differing` are the others, which the JobSpec keeps:
columns of another form than the plain one, and columns that the query only computes with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import msgspec
import pyarrow as pa

from edl import spec
from edl.data import TextSource
from edl.data.files import csv_readings

_TEXT_FILES = ("csv:", "excel:")  # schemes of files in which types are found from texts


def differing_query(readings: Mapping[str, str], query: spec.Query) -> spec.Query:
    """Return the query with the readings that its schema does not tell."""
    types = _types(query)
    changed = {
        name: reading
        for name, reading in readings.items()
        if types.get(name.casefold()) != reading
        and (name.casefold() in types or _mentions(query.select, name))
    }
    return msgspec.structs.replace(query, readings=changed) if changed else query


def apply(
    source: TextSource,
    trained: spec.Query,
    columns: Collection[str],
    select: str,
    schema: Callable[[], pa.Schema],
) -> None:
    """Let the source read the columns of a query as a model's training rows were read.

    `columns`: those that the model reads. `schema`: of the query `select`. Raises SourceError for a value that does
    not fit.
    """
    source.read_as({})
    names = {name.casefold() for name in columns}
    present = {
        name: reading
        for name, reading in source.readings.items()
        if name.casefold() in names or _mentions(select, name)
    }
    stated = _stated_readings(trained, present)
    readings = {**_readings_of_schema(trained, present), **stated}
    readings = {name: reading for name, reading in readings.items() if present[name] != reading}
    misfits = source.misfits(readings)
    for name, error in misfits.items():
        if name in stated:
            error.hint = _hint(trained)
            raise error
        del readings[name]
    source.read_as(readings)
    for name, error in misfits.items():
        if not csv_readings.are_alike(present[name], _readings_of_schema(trained, present)[name]):
            types = {field.name.casefold(): str(field.type) for field in schema()}
            in_query = csv_readings.OF_TYPES.get(types.get(name.casefold(), ""))
            if in_query == present[name].partition(" ")[0]:  # so that it probably is the column of the file
                error.hint = _hint(trained)
                raise error


def _hint(trained: spec.Query) -> str:
    options = trained.source.partition("?")[2] if trained.source.startswith(_TEXT_FILES) else ""
    if options:
        return f"the training rows were read with ?{options}: add that to the source, or correct the value"
    return "correct the value, leave out its row, or train the model again"


def _stated_readings(trained: spec.Query, present: Mapping[str, str]) -> dict[str, str]:
    """Return the readings that the model keeps, of the columns found."""
    kept = trained.readings or {}
    by_name = {name.casefold(): reading for name, reading in kept.items()}
    return {name: by_name[name.casefold()] for name in present if name.casefold() in by_name}


def _readings_of_schema(trained: spec.Query, present: Mapping[str, str]) -> dict[str, str]:
    """Return the readings that the schema of the training tells.

    Of a model of another database only texts: its numbers may come from any type. A column that is not in the schema
    of a model which keeps no readings was read in the plain form.
    """
    types, is_csv = _types(trained), trained.source.startswith(_TEXT_FILES)
    told = {}
    for name, reading in present.items():
        kind = types.get(name.casefold())
        if kind is not None and (is_csv or kind == csv_readings.TEXT):
            told[name] = kind
        elif kind is None and is_csv and not trained.readings and not csv_readings.is_plain(reading):
            told[name] = csv_readings.TEXT
    return told


def _types(query: spec.Query) -> dict[str, str]:
    """Map columns of the query, in lower case, to the plain readings of their types."""
    kinds = {field.name.casefold(): csv_readings.OF_TYPES.get(field.type) for field in query.schema}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _mentions(select: str, name: str) -> bool:
    """Return True if the name occurs in the text of the query."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", select, re.IGNORECASE) is not None
