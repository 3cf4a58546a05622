"""Relations of trainings: the same rows and the same statement in another form give the same model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from sqlflow_edl.session.session import Session
from sqlflow_edl.syntax.layout import laid_out
from tests.relations.comparing import Fitted, Pair, Refusal, answer
from tests.relations.kinds import KINDS, TEXTS, quoted
from tests.relations.places import DATABASES, FILES
from tests.relations.registry import Case, Input, Pairs, relation, training_input
from tests.relations.statements import TREES, Train
from tests.relations.tables import LABEL, ODD_NAMES, POSITION, Column, Table

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
    table = case.table
    if case.source == "sqlite":  # which stores NaN as NULL, and the order of the rows depends on the values
        for column in table.columns:
            table = table.replace(column.name, lambda value: value if value == value else None)
    yield Pair(
        answer(lambda: case.place.fit(table, case.train, "duckdb")),
        answer(lambda: case.place.fit(table, case.train, case.source)),
    )


@relation(
    trains=True,
    sources=FILES,
    draw=training_input(("number", "integer", "boolean", "day", "text")),
    shapes=("plain", "skew", "duplicates", "wide"),
)
def another_format(case: Case) -> Pairs:
    """The same table as CSV and as Parquet gives the same model."""
    other = {"csv": "parquet", "parquet": "csv"}[case.source]
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train, case.source)),
        answer(lambda: case.place.fit(case.table, case.train, other)),
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
        "SEC_TO_TIME(pos * 100)",
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
    """A column of an odd type that nothing names refuses no training, and changes no weight unless it is a feature."""
    odd = case.draw.choice(ODD_COLUMNS[case.source])
    columns = ", ".join(quoted(each, case.source) for each in case.table.names)
    train = case.train.in_order
    first, second = (
        answer(
            lambda select=select: case.place.fit(case.table, train, case.source, position=True, select=select)
        )
        for select in (columns, f"{columns}, {odd} AS odd")
    )
    if isinstance(second, Fitted) and "odd" in second.archive.spec.columns:  # of use after all
        first, second = (isinstance(each, Fitted) for each in (first, second))
    yield Pair(first, second, what=odd)


@relation(trains=True)
def null_column(case: Case) -> Pairs:
    """A column that is NULL in all rows changes no weight."""
    kind = case.draw.choice(("number", "integer", "text", "boolean", "day", "instant"))
    wider = case.table.put(Column("nothing", kind, (None,) * case.table.rows))
    yield Pair(
        answer(lambda: case.place.fit(case.table, case.train.in_order, case.source, position=True)),
        answer(lambda: case.place.fit(wider, case.train.in_order, case.source, position=True)),
        what=kind,
    )


@relation(trains=True, shapes=("plain", "nulls", "wide", "skew", "extremes", "names"))
def id_column(case: Case) -> Pairs:
    """A number of the row is an id, which changes no weight."""
    if case.table.rows < 20:
        return
    first = case.draw.randrange(1, 1000)
    ids = tuple(range(first, first + case.table.rows))
    wider = case.table.put(Column("row_id", "integer", ids))
    plain = answer(lambda: case.place.fit(case.table, case.train.in_order, case.source, position=True))
    if isinstance(plain, Refusal) and "no feature is left" in plain.message:
        return  # of an id alone a model is trained, with a warning
    yield Pair(plain, answer(lambda: case.place.fit(wider, case.train.in_order, case.source, position=True)))


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
    yield Pair(*(score(each) for each in (first, second)))


def score(fitted: object) -> object:
    """Share of the variance or of the rows that a model gets right."""
    figures = getattr(fitted, "figures", None)
    if figures is None:
        return fitted
    return float(figures.get("r2", figures.get("accuracy")) or 0.0)


@relation(
    "split held",
    tolerance="singles",
    trains=True,
    draw=training_input(validation__fraction="0"),  # rows that no tree was grown on tell ties of splits apart
    models=tuple(name for name in TREES if "number" in name),
    shapes=("plain", "nulls", "skew", "names"),
)
def label_shifted(case: Case) -> Pairs:
    """A constant added to the label is added to the predictions."""
    offset = case.draw.choice((1.0, -100.0, 2.0**20, 1_700_000_000.0, 1e12))
    shifted = case.table.replace(LABEL, lambda value: value + offset)
    first, second = (answer(lambda table=table: predictions(case, table)) for table in (case.table, shifted))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        second = second - offset
    yield Pair(first, second, what=f"plus {offset:g}", tolerance="" if abs(offset) <= 100 else "resolution")


@relation(
    "split held",
    tolerance="singles",
    trains=True,
    draw=training_input(validation__fraction="0"),  # rows that no tree was grown on tell ties of splits apart
    models=tuple(name for name in TREES if "number" in name),
    shapes=("plain", "nulls", "skew", "names"),
)
def label_unit_changed(case: Case) -> Pairs:
    """A label in another unit, by a power of two, has predictions in that unit."""
    # XGBoost makes no split that gains less than 1e-6, in the square of any unit.
    factor = 2.0 ** case.draw.randint(0 if "xgboost" in case.model else -8, 8)
    scaled = case.table.replace(LABEL, lambda value: value * factor)
    first, second = (answer(lambda table=table: predictions(case, table)) for table in (case.table, scaled))
    if isinstance(second, np.ndarray):
        second = second / factor
    yield Pair(first, second, what=f"times {factor:g}")


def predictions(case: Case, table: Table, train: Train | None = None) -> np.ndarray:
    """Train in the order of the table, and predict its rows."""
    with case.place.stored(table, case.source) as (session, name):
        text = (train or case.train.in_order).text(
            ordered(table, name, session), f"m_{name}", session.dialect
        )
        case.place.run_training(session, text, f"m_{name}", keep=True)
        try:
            features = [each for each in table.names if each != LABEL]
            select = ordered(table.select(features), name, session)
            [result] = session.run(f"{select} TO PREDICT USING m_{name}")
            found: np.ndarray = result.to_arrow()[LABEL].to_numpy()
            return found
        finally:
            for _ in session.run(f"DROP MODEL m_{name}"):
                pass


def ordered(table: Table, name: str, session: Session) -> str:
    columns = ", ".join(quoted(each, session.dialect) for each in table.names)
    return f"SELECT {columns} FROM {name} ORDER BY {POSITION}"


@relation(trains=True, models=("lightgbm_classes", "xgboost_classes", "linear_classes", "dense_classes"))
def classes_renamed(case: Case) -> Pairs:
    """Other names of the classes, in the same order, give the same weights."""
    names = {"high": "a", "low": "b", "middle": "c"}
    table = case.table
    if table[LABEL].kind != "text":
        new = Column(
            LABEL, "text", tuple(None if v is None else ["no", "yes"][v] for v in table[LABEL].values)
        )
        renamed = table.put(new)
    else:
        renamed = table.replace(LABEL, names.__getitem__)
    yield Pair(
        answer(lambda: case.place.fit(table, case.train.in_order, case.source, position=True)),
        answer(lambda: case.place.fit(renamed, case.train.in_order, case.source, position=True)),
    )


@relation(
    "split held",
    tolerance="score",
    trains=True,
    models=TREES,
    draw=training_input(("number", "integer", "text", "boolean"), validation__fraction="0"),
    shapes=("plain", "skew", "nulls"),
)
def columns_permuted(case: Case) -> Pairs:
    """Columns in another order give trees as good as before; those of ties may differ."""
    names = case.draw.sample(case.table.names, len(case.table.names))
    first, second = (
        answer(lambda table=table: case.place.fit(table, case.train.in_order, case.source, position=True))
        for table in (case.table, case.table.select(names))
    )
    yield Pair(score(first), score(second), what=", ".join(names))


@relation(
    "split held",
    tolerance="score",
    trains=True,
    models=("lightgbm_number", "xgboost_number", "xgboost_classes"),
    draw=training_input(("number", "integer", "boolean"), validation__fraction="0", train__weight_column="w"),
    shapes=("plain", "skew"),
)
def weight_of_duplicates(case: Case) -> Pairs:
    """A row that comes twice weighs what one of the weight two weighs: trees become as good on the rows."""
    if case.table.rows < 20:  # sketches of so few weighted values are coarse
        return
    flags = [column.values for column in case.table.columns if column.kind == "boolean"]
    if any(0 < values.count(flag) < 5 for values in flags for flag in (False, True)):
        return  # the least rows of a leaf are counted, not weighed
    twice = tuple(float(case.draw.randint(1, 2)) for _ in range(case.table.rows))
    weighted = case.table.put(Column("w", "number", twice))
    doubled = [at for at, weight in enumerate(twice) for _ in range(int(weight))]
    flat = case.table.take(doubled).put(Column("w", "number", (1.0,) * len(doubled)))
    first, second = (
        answer(lambda table=table: case.place.fit(table, case.train.in_order, case.source, position=True))
        for table in (weighted, flat)
    )
    yield Pair(score(first), score(second))


# The forms in which pandas holds what a column of a database holds, each beside its kind there.
FORMS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "float16": ("number", lambda n: (n % 5).astype("float16")),
    "float32": ("number", lambda n: (n % 5).astype("float32")),
    "sparse": ("number", lambda n: _pandas().arrays.SparseArray((n % 5 == 0).astype(float))),
    "category": ("text", lambda n: _pandas().Categorical([TEXTS[at % 4] for at in n])),
    "string": ("text", lambda n: _pandas().array([TEXTS[at % 4] for at in n], dtype="string")),
    "object": ("text", lambda n: np.array([TEXTS[at % 4] for at in n], dtype=object)),
    "nullable": (
        "integer",
        lambda n: _pandas().array([None if at % 7 == 0 else int(at % 5) for at in n], "Int64"),
    ),
    "uint8": ("integer", lambda n: (n % 5).astype("uint8")),
    "bool": ("boolean", lambda n: n % 3 == 0),
    "datetime": ("instant", lambda n: _pandas().to_datetime(1_600_000_000 + n % 50 * 3600, unit="s")),
}


@relation(trains=True, sources=("frame",), models=("lightgbm_number", "linear_number"), shapes=("plain",))
def frame_of_any_form(case: Case) -> Pairs:
    """A column of a data frame in any form of pandas gives the model of the plain values, or is refused by name."""
    session = case.place.session("frame")
    form = case.draw.choice([*FORMS])
    rows = np.arange(case.draw.randint(40, 90))
    other = case.draw.choice((None, None, "odd name", "X", "x"))
    _, make = FORMS[form]
    frame = _pandas().DataFrame({"x": make(rows), "z": rows % 3, LABEL: rows % 5 * 2.0})
    if other:
        frame.insert(1, other, rows % 7, allow_duplicates=True)
    plain = _pandas().DataFrame({f"c{at}": _plain(frame.iloc[:, at]) for at in range(frame.shape[1])})
    plain.columns = [*plain.columns[:-1], LABEL]
    train = case.train.in_order
    found = []
    for data in (plain, frame):
        name = case.place.name()

        def fit(name: str = name, data: Any = data) -> Any:
            session.register(name, data)
            try:
                text = train.text(f"SELECT * FROM {name}", f"m_{name}", "duckdb")
                return case.place.run_training(session, text, f"m_{name}")
            finally:
                session.unregister(name)

        found.append(answer(fit))
    plain_model, model = found
    if isinstance(model, Refusal) and re.search("(column|columns named) x", model.message, re.IGNORECASE):
        return  # refused by name
    yield Pair(plain_model, model, what=f"{form} beside {other}")


def _plain(column: Any) -> Any:
    """The values as a float64, or a list of objects."""
    if str(column.dtype).startswith(("float", "Sparse")):
        return np.asarray(column, dtype=np.float64)
    return [None if each is _pandas().NA else each for each in column.tolist()]


def _pandas() -> Any:
    import pandas

    return pandas


@relation(
    "statistical",
    tolerance="noise",
    trains=True,
    slow=True,
    sources=("duckdb",),
    models=("lightgbm_classes", "xgboost_number", "linear_number", "dense_number"),
    draw=training_input(("text", "number"), validation__fraction="0.3"),
    shapes=("plain", "skew"),
)
def categories_renamed(case: Case) -> Pairs:
    """Categories renamed by any bijection give models as good as before, over ten seeds."""
    texts = [c.name for c in case.table.columns if c.kind == "text" and c.name != LABEL]
    if not texts or case.table.rows < 60:
        return
    different = set(zip(*(column.values for column in case.table.columns), strict=True))
    if 2 * len(different) < case.table.rows:
        return  # equal rows are held out together: which of a few classes are learned depends on their names
    renamed = case.table
    for name in texts:
        values = sorted({each for each in case.table[name].values if each is not None})
        new = dict(
            zip(values, case.draw.sample([f"n{at}" for at in range(len(values))], len(values)), strict=True)
        )
        renamed = renamed.replace(name, new.__getitem__)
    scores = [
        [answer(lambda table=table, seed=seed: _of_seed(case, table, seed)) for seed in range(10)]
        for table in (case.table, renamed)
    ]
    if any(isinstance(each, Refusal) for each in (*scores[0], *scores[1])):
        return  # other rows are held out, so that a column may be the same in all that are left
    yield Pair(0.0, _distance(*scores), what=f"{scores}")


def _of_seed(case: Case, table: Table, seed: int) -> object:
    train = case.train.with_options(train__seed=str(seed), validation__split="random")
    return score(case.place.fit(table, train, "duckdb"))


def _distance(first: Sequence[float], second: Sequence[float]) -> float:
    """Difference of two means, in standard errors of it."""
    one, other = np.array(first), np.array(second)
    error = float(np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)))
    return abs(float(one.mean() - other.mean())) / max(error, 1e-3)
