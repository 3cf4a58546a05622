"""Random tables as data, which a failing check can make smaller, and the SQL that makes them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from tests.relations.kinds import KINDS, Dialect, kind_of, literal, quoted

POSITION = "pos"  # column that numbers the rows of a table in a database; it is no part of the data
LABEL = "y"
ODD_NAMES = (
    "a b",
    'quo"te',
    "back`tick",
    "it's",
    "größe",
    "order",
    "select",
    "UPPER",
    "x.y",
    "1st",
    "a-b",
    "per%cent",
    "{brace}",
    "日本",
    "label",
    "f0",
    "dense",
    "a" * 60,
)


@dataclass(frozen=True)
class Column:
    """kind: a key of KINDS. values: None is NULL."""

    name: str
    kind: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def rows(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def take(self, positions: Sequence[int]) -> Table:
        return Table(
            tuple(
                replace(column, values=tuple(column.values[at] for at in positions))
                for column in self.columns
            )
        )

    def select(self, names: Sequence[str]) -> Table:
        return Table(tuple(self[name] for name in names))

    def drop(self, name: str) -> Table:
        return Table(tuple(column for column in self.columns if column.name != name))

    def rename(self, names: dict[str, str]) -> Table:
        return Table(
            tuple(replace(column, name=names.get(column.name, column.name)) for column in self.columns)
        )

    def replace(self, name: str, change: Callable[[Any], Any]) -> Table:
        """Change the values of a column that are not NULL."""
        return self.put(
            replace(self[name], values=tuple(None if v is None else change(v) for v in self[name].values))
        )

    def put(self, new: Column) -> Table:
        """Replace the column of this name, or add one."""
        if new.name not in self.names:
            return Table((*self.columns, new))
        return Table(tuple(new if column.name == new.name else column for column in self.columns))

    def arrow(self) -> pa.Table:
        return pa.table({c.name: pa.array(c.values, kind_of(c.kind).arrow) for c in self.columns})

    def statements(self, name: str, dialect: Dialect) -> list[str]:
        """The SQL that makes the table, with the numbers of its rows beside them."""
        types = "".join(
            f", {quoted(c.name, dialect)} {kind_of(c.kind).type_in(dialect)}" for c in self.columns
        )
        made = [f"CREATE TABLE {name} ({POSITION} INTEGER{types})"]
        rows = [
            f"({', '.join([str(at), *(literal(c.values[at], c.kind, dialect) for c in self.columns)])})"
            for at in range(self.rows)
        ]
        made += [
            f"INSERT INTO {name} VALUES {', '.join(rows[at : at + 500])}" for at in range(0, len(rows), 500)
        ]
        return made


SHAPES = ("plain", "tiny", "wide", "nulls", "duplicates", "skew", "extremes", "names")
FEATURES = ("number", "integer", "text", "boolean", "decimal", "day", "instant")


def draw_table(draw: Random, shape: str, kinds: Sequence[str], label: str, *, finite: bool = True) -> Table:
    """A table of features and a label that depends on them.

    shape: one of SHAPES. kinds: of features. label: "number", "classes", "yes or no" or "large", numbers whose size
    exceeds their differences by far. finite: without infinities.
    """
    rows = draw.randint(1, 15) if shape == "tiny" else draw.randint(60, 240)
    count = draw.randint(25, 50) if shape == "wide" else draw.randint(1, 5)
    chosen = list(kinds) if count >= len(kinds) else draw.sample(list(kinds), count)
    chosen += [draw.choice(kinds) for _ in range(count - len(chosen))]
    names = draw.sample(ODD_NAMES, min(count, len(ODD_NAMES))) if shape == "names" else []
    names += [f"c{at}" for at in range(count - len(names))]
    columns = [
        Column(name, kind, _values(draw, kind, rows, shape, finite))
        for name, kind in zip(names, chosen, strict=True)
    ]
    table = Table((*columns, Column(LABEL, *_label(draw, columns, rows, label, shape))))
    if shape == "duplicates":
        few = draw.randint(1, 10)
        table = table.take([draw.randrange(min(few, rows)) for _ in range(rows)])
    return table


def _values(draw: Random, kind: str, rows: int, shape: str, finite: bool) -> tuple[Any, ...]:
    known = KINDS[kind]
    if shape == "nulls":
        share, extremes = draw.choice((0.3, 0.9, 1.0)), 0.0
        if draw.random() < 0.5:  # one value, or NULL: the flag of a LEFT JOIN
            value = known.value(draw)
            return tuple(None if draw.random() < 0.5 else value for _ in range(rows))
    else:
        share, extremes = draw.choice((0.0, 0.0, 0.05)), 0.1 if shape == "extremes" else 0.0
    if shape == "skew":
        values = [known.value(draw) for _ in range(3)]
        return tuple(values[min(2, int(draw.expovariate(2)))] for _ in range(rows))
    return tuple(
        None
        if draw.random() < share
        else _extreme(draw, kind, finite)
        if extremes and draw.random() < extremes
        else known.value(draw)
        for _ in range(rows)
    )


def _extreme(draw: Random, kind: str, finite: bool) -> Any:
    if kind == "number" and not finite and draw.random() < 0.3:
        return draw.choice((float("inf"), float("-inf"), float("nan")))
    return KINDS[kind].extreme(draw)


def _label(
    draw: Random, columns: Sequence[Column], rows: int, label: str, shape: str
) -> tuple[str, tuple[Any, ...]]:
    """Kind and values of the label."""
    signals = [sum(_signal(column.values[at]) for column in columns[:6]) for at in range(rows)]
    if label == "large":
        return "integer", tuple(1_700_000_000 + round(signal) + draw.randrange(5) for signal in signals)
    if label == "number":
        return "number", tuple(round(signal + draw.gauss(0, 1), 3) for signal in signals)
    middle = sorted(signals)[rows // 2] if shape != "skew" else sorted(signals)[-1 - rows // 40]
    if label == "yes or no":
        return "boolean", tuple(signal >= middle for signal in signals)
    return "text", tuple(
        "high" if signal > middle else "middle" if signal > middle - 3 else "low" for signal in signals
    )


def _signal(value: Any) -> float:
    if value is None:
        return -4.0
    if isinstance(value, bool):
        return 3.0 * value
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return max(-20.0, min(20.0, number)) if number == number else 0.0
    if isinstance(value, dt.date):
        return value.toordinal() % 30 / 10
    return len(value) % 7 + 0.5 * (sum(map(ord, value)) % 3)
