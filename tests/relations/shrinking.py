"""Smaller inputs that still fail: fewer rows, columns and options, and simpler values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.relations.kinds import kind_of
from tests.relations.registry import Input
from tests.relations.tables import LABEL, Column, Table

Fails = Callable[[Input], bool]


def shrunk(found: Input, fails: Fails, seconds: float = 60.0) -> Input:
    """Make an input smaller as long as `fails` is true of it, for at most these seconds."""
    deadline = time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < deadline:
        changed = False
        for candidates in (_fewer_rows, _fewer_columns, _fewer_options, _simpler_columns, _plainer_names):
            for smaller in _steps(candidates, found, fails, deadline):
                found, changed = smaller, True
    return found


def _steps(
    candidates: Callable[[Input], Iterator[Input]], found: Input, fails: Fails, deadline: float
) -> Iterator[Input]:
    """Each smaller input that fails, from the last of which the next candidates are made."""
    tried = True
    while tried:
        tried = False
        for smaller in candidates(found):
            if time.monotonic() > deadline:
                return
            if fails(smaller):
                found, tried = smaller, True
                yield smaller
                break


def _fewer_rows(found: Input) -> Iterator[Input]:
    """Leave out halves, quarters, … of the rows, at last each one."""
    rows, size = found.table.rows, found.table.rows // 2
    while size:
        for first in range(0, rows, size):
            kept = [*range(first), *range(first + size, rows)]
            if kept:
                yield replace(found, table=found.table.take(kept))
        size //= 2 if rows <= 32 or size > rows // 16 else size  # single rows of few only


def _fewer_columns(found: Input) -> Iterator[Input]:
    """Leave out halves of the features, then each one."""
    names = [name for name in found.table.names if name != LABEL]
    if len(names) > 3:
        for part in (names[: len(names) // 2], names[len(names) // 2 :]):
            yield replace(found, table=Table(tuple(c for c in found.table.columns if c.name not in part)))
    if len(names) > 1:
        for name in names:
            yield replace(found, table=found.table.drop(name))


def _fewer_options(found: Input) -> Iterator[Input]:
    if found.train is None:
        return
    for option in found.train.options:
        kept = tuple(each for each in found.train.options if each != option)
        yield replace(found, train=replace(found.train, options=kept))
    if found.train.items:
        yield replace(found, train=replace(found.train, items=()))


def _simpler_columns(found: Input) -> Iterator[Input]:
    """Give a column the same simple value everywhere, then simple values in place of odd ones."""
    for column in found.table.columns:
        simple = kind_of(column.kind).simple
        if not simple:
            continue
        for values in ((simple[0],) * len(column.values), _simplified(column), _rounded(column)):
            if values != column.values and _weight(values) < _weight(column.values):
                yield replace(found, table=found.table.put(replace(column, values=values)))


def _simplified(column: Column) -> tuple[object, ...]:
    """Map the distinct values, in the order in which they come, to simple ones."""
    simple = kind_of(column.kind).simple
    known: dict[str, object] = {}
    for value in column.values:
        if value is not None and repr(value) not in known:
            known[repr(value)] = simple[min(len(known), len(simple) - 1)]
    return tuple(None if value is None else known[repr(value)] for value in column.values)


def _rounded(column: Column) -> tuple[object, ...]:
    if column.kind != "number":
        return column.values
    return tuple(round(v, 0) if v is not None and abs(v) < 1e6 else v for v in column.values)


def _weight(values: tuple[object, ...]) -> tuple[int, int]:
    """Order of simplicity: distinct values, then the length of their texts."""
    return len(set(map(repr, values))), sum(map(len, map(repr, values)))


def _plainer_names(found: Input) -> Iterator[Input]:
    """Name one column c0, c1, …"""
    for at, name in enumerate(found.table.names):
        if name not in (LABEL, f"c{at}") and f"c{at}" not in found.table.names:
            yield replace(found, table=found.table.rename({name: f"c{at}"}))
