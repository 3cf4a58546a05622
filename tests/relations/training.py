"""Relations of trainings: the same rows and the same statement in another form give the same model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sqlflow_edl.syntax.layout import laid_out
from tests.relations.comparing import Pair, answer
from tests.relations.kinds import KINDS, quoted
from tests.relations.places import DATABASES, FILES
from tests.relations.registry import Case, Input, Pairs, relation, training_input
from tests.relations.statements import TREES
from tests.relations.tables import LABEL, ODD_NAMES, Column

NUMBERS = ("number", "integer", "decimal")


@relation(trains=True, sources=(*DATABASES, *FILES, "frame"))
def rows_permuted(case: Case) -> Pairs:
    """The same rows in another order give the same weights and figures."""
    order = case.draw.sample(range(case.table.rows), case.table.rows)
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train, case.source)),
        answer(lambda: case.place.fit(case.table.take(order), case.train, case.source)),
    )


@relation(trains=True)
def columns_renamed(case: Case) -> Pairs:
    """Other names of the columns, in the same places, give the same weights."""
    names = case.draw.sample(ODD_NAMES, min(len(ODD_NAMES), len(case.table.names)))
    new = dict(zip(case.table.names, names, strict=False))
    renamed, train = case.table.rename(new), replace(case.train.in_order, label=new.get(LABEL, LABEL))
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train.in_order, case.source, position=True)),
        answer(lambda: case.place.fit(renamed, train, case.source, position=True)),
    )


@relation(trains=True, shapes=("plain", "nulls", "extremes", "skew"))
def columns_quoted(case: Case) -> Pairs:
    """Plain names with and without quotation marks, and behind the name of the table, give the same model."""
    with case.place.stored(case.table, case.source) as (session, name):
        for form in (
            ", ".join(case.table.names),
            ", ".join(f"{name}.{quoted(each, session.dialect)}" for each in case.table.names),
        ):
            first = ", ".join(quoted(each, session.dialect) for each in case.table.names)
            yield Pair(
                *(
                    answer(lambda text=text: case.place.run_training(session, text, f"m_{name}"))
                    for text in (
                        case.train.text(f"SELECT {columns} FROM {name}", f"m_{name}", session.dialect)
                        for columns in (first, form)
                    )
                ),
                what=form,
            )
            return


@relation(trains=True)
def trained_again(case: Case) -> Pairs:
    """The statement of SHOW TRAIN gives the same model again."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = case.train.text(f"SELECT * FROM {name}", f"m_{name}", session.dialect)
        first = answer(lambda: case.place.run_training(session, text, f"m_{name}", keep=True))
        shown = text
        if isinstance(first, type(None)) or not hasattr(first, "weights"):
            yield Pair(first, answer(lambda: case.place.run_training(session, text, f"m_{name}")))
            return
        [result] = session.run(f"SHOW TRAIN m_{name}")
        shown = str(result.to_arrow()["statement"][0]) if result.reader is not None else result.message
        yield Pair(first, answer(lambda: case.place.run_training(session, shown, f"m_{name}")), what=shown)


@relation(trains=True)
def formatted(case: Case) -> Pairs:
    """The statement as `sqlflow fmt` lays it out gives the same model."""
    with case.place.stored(case.table, case.source) as (session, name):
        text = case.train.text(f"SELECT * FROM {name}", f"m_{name}", session.dialect)
        yield Pair(
            answer(lambda: case.place.run_training(session, text, f"m_{name}")),
            answer(lambda: case.place.run_training(session, laid_out(text, session.dialect), f"m_{name}")),
        )


@relation(trains=True, sources=("sqlite", "mysql", "postgres", "parquet", "frame"))
def another_source(case: Case) -> Pairs:
    """The same table in DuckDB and in another database, a Parquet file or a data frame gives the same model."""
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train, "duckdb")),
        answer(lambda: case.place.fit(case.table, case.train, case.source)),
    )


@relation(trains=True)
def constant_column(case: Case) -> Pairs:
    """A column of one value beside the others changes no weight."""
    kind = case.draw.choice(("number", "integer", "text", "boolean", "day"))
    value = KINDS[kind].value(case.draw)
    wider = case.table.put(Column("constant", kind, (value,) * case.table.rows))
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train.in_order, case.source, position=True)),
        answer(lambda: case.place.fit(wider, case.train.in_order, case.source, position=True)),
    )


# Columns of types that no feature can use, as expressions over the number of the row.
ODD_COLUMNS = {
    "duckdb": (
        "(pos % 7) * INTERVAL 1 DAY",
        "pos::HUGEINT * 100000000000000000000",
        "MAP {'a': pos}",
        "{'a': pos}",
        "pos::VARCHAR::BLOB",
        "uuid()",
        "TIME '10:00:00' + (pos % 60) * INTERVAL 1 MINUTE",
        "pos::BIT",
        "[[pos]]",
        "NULL",
    ),
    "sqlite": ("CAST(pos AS BLOB)", "NULL", "CASE WHEN pos % 2 THEN 'a' ELSE pos END"),
    "mysql": (
        "ST_PointFromText(CONCAT('POINT(', pos, ' 1)'))",
        "CAST(pos AS BINARY(8))",
        "SEC_TO_TIME(pos * 1000)",
        "NULL",
        "JSON_OBJECT('a', pos)",
    ),
    "postgres": (
        "(pos % 7) * INTERVAL '1 day'",
        "pos::money",
        "int4range(pos, pos + 5)",
        "decode(lpad(to_hex(pos), 8, '0'), 'hex')",
        "TIME '10:00' + (pos % 60) * INTERVAL '1 minute'",
        "point(pos, 1)",
        "jsonb_build_object('a', pos)",
        "('10.0.0.' || pos % 200)::inet",
        "pos::bit(8)",
        "NULL",
    ),
}


@relation(trains=True, shapes=("plain", "nulls", "duplicates", "extremes"), models=TREES)
def odd_column(case: Case) -> Pairs:
    """A column of a type that no feature can use, and that nothing names, changes no weight."""
    odd = case.draw.choice(ODD_COLUMNS[case.source])
    columns = ", ".join(quoted(each, case.source) for each in case.table.names)
    train = case.train.in_order
    yield Pair(
        answer(lambda: case.place.fit(case.table, train, case.source, position=True)),
        answer(
            lambda: case.place.fit(
                case.table, train, case.source, position=True, select=f"{columns}, {odd} AS odd"
            )
        ),
        what=odd,
    )


@relation(trains=True)
def unused_nulls(case: Case) -> Pairs:
    """A column that COLUMN does not name may be NULL in any rows, without a change of a weight."""
    names = [name for name in case.table.names if name != LABEL]
    if len(names) < 2:
        return
    unused, *kept = case.draw.sample(names, len(names))
    train = replace(case.train.in_order, items=tuple(quoted(each, case.source) for each in kept))
    column = case.table[unused]
    emptied = tuple(None if case.draw.random() < 0.5 else value for value in column.values)
    yield Pair(
        answer(lambda: case.place.fit(case.table, train, case.source, position=True)),
        answer(
            lambda: case.place.fit(
                case.table.put(replace(column, values=emptied)), train, case.source, position=True
            )
        ),
        what=unused,
    )


@relation(
    "split held",
    trains=True,
    models=TREES,
    draw=training_input(NUMBERS[:1]),
    shapes=("plain", "nulls", "skew", "duplicates"),
)
def unit_changed(case: Case) -> Pairs:
    """A feature in another unit, by a power of two, gives trees of the same figures."""
    name = case.draw.choice([each for each in case.table.names if each != LABEL])
    factor = 2.0 ** case.draw.randint(-10, 10)
    scaled = case.table.replace(name, lambda value: value * factor)
    first, second = (
        answer(lambda table=table: case.place.fit(table, case.train.in_order, case.source, position=True))
        for table in (case.table, scaled)
    )
    yield Pair(
        getattr(first, "figures", first), getattr(second, "figures", second), what=f"{name} times {factor}"
    )


@relation(
    "split held",
    trains=True,
    sources=("duckdb", "postgres"),
    draw=training_input(("text", "number", "integer")),
)
def categories_prefixed(case: Case) -> Pairs:
    """Categories renamed so that their order stays give the same weights."""
    texts = [column.name for column in case.table.columns if column.kind == "text" and column.name != LABEL]
    if not texts:
        return
    renamed = case.table
    for name in texts:
        renamed = renamed.replace(name, lambda value: f"k{value}")
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train.in_order, case.source, position=True)),
        answer(lambda: case.place.fit(renamed, case.train.in_order, case.source, position=True)),
    )


def flag_input(draw: Random, shape: str, source: str, model: str) -> Input:
    """A table in which a column of one value and NULL decides the label."""
    found = training_input(("number", "integer"))(draw, "plain", source, model)
    rows = found.table.rows
    kind = draw.choice(("number", "integer", "text", "boolean", "day"))
    value = KINDS[kind].value(draw)
    there = [draw.random() < 0.5 for _ in range(rows)]
    table = found.table.put(Column("flag", kind, tuple(value if is_there else None for is_there in there)))
    label = table[LABEL]
    values = {
        "number": tuple(100.0 * is_there for is_there in there),
        "boolean": tuple(there),
        "text": tuple("high" if is_there else "low" for is_there in there),
    }[label.kind]
    return Input(table.put(replace(label, values=values)), found.train)


@relation("split held", tolerance="score", trains=True, models=TREES, draw=flag_input, shapes=("plain",))
def null_as_value(case: Case) -> Pairs:
    """A column that is one value or NULL tells as much as its indicator does."""
    column = case.table["flag"]
    if len({value is None for value in column.values}) < 2:
        return
    shown = tuple(int(value is not None) for value in column.values)
    filled = case.table.put(Column("flag", "integer", shown))
    train = case.train.in_order.with_options(train__num_boost_round="30")
    first, second = (
        answer(lambda table=table: case.place.fit(table, train, case.source, position=True))
        for table in (case.table, filled)
    )
    yield Pair(*(_score(each) for each in (first, second)))


def _score(fitted: object) -> object:
    """Share of the variance or of the rows that a model gets right."""
    figures = getattr(fitted, "figures", None)
    if figures is None:
        return fitted
    return float(figures.get("r2", figures.get("accuracy")) or 0.0)
