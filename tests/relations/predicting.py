"""Relations of predictions: the same rows in another form, at another place or by another way."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from sqlflow_edl.session.session import Session
from tests.relations.comparing import Pair, Refusal, answer
from tests.relations.kinds import KINDS, quoted
from tests.relations.places import DATABASES
from tests.relations.registry import Case, Input, Pairs, relation
from tests.relations.showing import canonical
from tests.relations.tables import Column, Table
from tests.sqlflow_edl import test_skew
from tests.trained import rows, statements

FIXTURES = tuple(statements())
LABELS = ("kind", "is_large", "cost", "arrived")
TREES = ("lightgbm", "computed_trees", "hashed_trees", "poisson", "xgboost", "xgboost_number")


def table_of(found: pa.Table) -> Table:
    """The rows as data, each column of the kind that has its type."""
    kinds = {str(kind.arrow): name for name, kind in KINDS.items()}
    columns = (Column(f.name, kinds[str(f.type)], tuple(found[f.name].to_pylist())) for f in found.schema)
    return Table(tuple(columns))


def draw_rows(draw: Random, shape: str, source: str, model: str) -> Input:
    """Rows of `tests.trained`, with all that rows may have in them; shape: how many."""
    count = {"one": 1, "few": 30, "many": 300}[shape]
    infinite = source not in ("mysql", "sqlite")
    found = rows(count, draw.randrange(2**32), training=draw.random() < 0.2, infinite=infinite)
    return Input(table_of(found.drop_columns([each for each in LABELS if each in found.column_names])))


in_memory = partial(
    relation, sources=("memory",), models=FIXTURES, shapes=("one", "few", "many"), draw=draw_rows
)


def _batch(case: Case, table: Table | None = None) -> pa.RecordBatch:
    """The columns that the model reads."""
    schema = case.place.models[case.model].model.schema
    found = (table or case.table).arrow().select(schema.names).cast(schema).combine_chunks()
    return found.to_batches()[0] if found.num_rows else pa.RecordBatch.from_pylist([], schema=schema)


def _predict(case: Case, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([case.place.models[case.model].model.predictor.predict(batch)])


def _tolerance(case: Case) -> str:
    return "exact" if case.model in TREES else "batches"


@in_memory()
def batches_split(case: Case) -> Pairs:
    """Rows predicted in several batches have the predictions of one batch."""
    batch = _batch(case)
    whole = _predict(case, batch)
    for _ in range(4):
        cuts = sorted(case.draw.randint(0, batch.num_rows) for _ in range(case.draw.randint(1, 3)))
        bounds = [0, *cuts, batch.num_rows]
        parts = [
            _predict(case, batch.slice(first, end - first))
            for first, end in itertools.pairwise(bounds)
            if end > first
        ]
        yield Pair(whole, pa.concat_tables(parts), what=f"cut at {cuts}", tolerance=_tolerance(case))


@in_memory()
def predicted_rows_permuted(case: Case) -> Pairs:
    """Rows in another order have their predictions."""
    batch = _batch(case)
    whole = _predict(case, batch)
    for _ in range(4):
        order = pa.array(case.draw.sample(range(batch.num_rows), batch.num_rows), pa.int64())
        yield Pair(whole.take(order), _predict(case, batch.take(order)), tolerance=_tolerance(case))


@in_memory()
def predicted_rows_repeated(case: Case) -> Pairs:
    """A row that comes several times has its prediction each time."""
    batch = _batch(case)
    whole = _predict(case, batch)
    for _ in range(4):
        again = pa.array([case.draw.randrange(batch.num_rows) for _ in range(batch.num_rows * 2)], pa.int64())
        yield Pair(whole.take(again), _predict(case, batch.take(again)), tolerance=_tolerance(case))


@in_memory()
def predicted_columns_permuted(case: Case) -> Pairs:
    """Columns in another order, with further ones between them, have the same predictions."""
    batch = _batch(case)
    whole = _predict(case, batch)
    for _ in range(4):
        names = case.draw.sample(batch.schema.names, batch.num_columns)
        table = pa.Table.from_batches([batch]).select(names)
        table = table.add_column(case.draw.randint(0, len(names)), "further", [pa.nulls(batch.num_rows)])
        [other] = table.combine_chunks().to_batches() or [batch]
        yield Pair(whole, _predict(case, other), what=f"{names}", tolerance=_tolerance(case))


@in_memory()
def predicted_null_or_nan(case: Case) -> Pairs:
    """A number that is NaN has the predictions of NULL."""
    batch = _batch(case)
    floating = [name for name in batch.schema.names if pa.types.is_floating(batch.schema.field(name).type)]
    if not floating:
        return
    with_nan = pa.Table.from_batches([batch])
    for name in floating:
        values = with_nan[name].fill_null(float("nan"))
        with_nan = with_nan.set_column(
            with_nan.schema.get_field_index(name), with_nan.schema.field(name), values
        )
    [other] = with_nan.combine_chunks().to_batches()
    yield Pair(_predict(case, batch), _predict(case, other), tolerance=_tolerance(case))


# By statements -----------------------------------------------------------------------------------------------------

by_statement = partial(relation, sources=DATABASES, models=FIXTURES, shapes=("one", "few"), draw=draw_rows)


@contextlib.contextmanager
def _stored(case: Case) -> Iterator[tuple[Session, str]]:
    case.place.models[case.model]
    session = case.place.reader(case.source)
    with case.place.stored(case.table, case.source, session) as found:
        yield found


def _shown(session: Session, text: str) -> Any:
    return answer(lambda: [*session.run(text)][-1].to_arrow())


@by_statement(tolerance="batches", kind="split held")
def predicted_elsewhere(case: Case) -> Pairs:
    """Rows in any database have the predictions of the same rows in memory."""
    wanted = answer(lambda: _predict(case, _batch(case)))
    with _stored(case) as (session, name):
        columns = ", ".join(case.place.models[case.model].model.schema.names)
        found = _shown(session, f"SELECT {columns} FROM {name} ORDER BY id TO PREDICT USING {case.model}")
        if isinstance(found, pa.Table) and isinstance(wanted, pa.Table):
            found = found.select(wanted.schema.names)
        yield Pair(wanted, found)


@by_statement()
def predicted_columns_quoted(case: Case) -> Pairs:
    """Columns in another order, in quotation marks, beside others, have the same predictions."""
    with _stored(case) as (session, name):
        columns = case.place.models[case.model].model.schema.names
        others = [quoted(each, session.dialect) for each in case.draw.sample(columns, len(columns))]
        others.insert(case.draw.randint(0, len(others)), "NULL AS further")
        found = [
            _shown(
                session, f"SELECT {', '.join(names)} FROM {name} ORDER BY id TO PREDICT USING {case.model}"
            )
            for names in (columns, others)
        ]
        yield Pair(*(_beside(each, columns) for each in found), what=", ".join(others))


def _beside(found: Any, columns: list[str]) -> Any:
    """The columns that PREDICT has added."""
    if not isinstance(found, pa.Table):
        return found
    return found.drop_columns([name for name in found.schema.names if name in columns or name == "further"])


@by_statement()
def predicted_into_a_table(case: Case) -> Pairs:
    """PREDICT into a table writes what PREDICT shows, and the columns of the query as they were."""
    with _stored(case) as (session, name):
        select = f"SELECT * FROM {name}"
        shown = _shown(session, f"{select} ORDER BY id TO PREDICT USING {case.model}")
        target = f"into_{name}"
        try:
            wrote = answer(lambda: [*session.run(f"{select} TO PREDICT {target} USING {case.model}")])
            if isinstance(wrote, Refusal) or isinstance(shown, Refusal):
                yield Pair(shown, wrote)
                return
            stored = _shown(session, f"SELECT * FROM {target} ORDER BY id")
            pair = (_without_times(each, session.dialect) for each in (shown, stored))
            yield Pair(*pair, what="shown and written")
            for column in case.table.names:
                texts = [
                    _texts(
                        session, f"SELECT {as_text(column, session.dialect)} AS t FROM {table} ORDER BY id"
                    )
                    for table in (name, target)
                ]
                yield Pair(*texts, what=f"{column} of the query and of the table")
        finally:
            session.source.execute(f"DROP TABLE IF EXISTS {target}")


def _texts(session: Session, query: str) -> list[str | None]:
    texts = session.source.stream(query).read_all().column(0).to_pylist()
    return [None if each is None else canonical(each) for each in texts]


def _without_times(found: Any, dialect: str) -> Any:
    """Times as texts where the database has no type for them."""
    if dialect != "sqlite" or not isinstance(found, pa.Table):
        return found
    for at, field in enumerate(found.schema):
        if pa.types.is_temporal(field.type) or pa.types.is_string(field.type):
            texts = [None if each is None else canonical(str(each)) for each in found.column(at).to_pylist()]
            found = found.set_column(at, field.name, pa.array(texts, pa.string()))
    return found


def as_text(column: str, dialect: str) -> str:
    kind = {"mysql": "CHAR", "sqlite": "TEXT"}.get(dialect, "VARCHAR")
    return f"CAST({quoted(column, dialect)} AS {kind})"


# By all ways -------------------------------------------------------------------------------------------------------

MODELS_OF_WAYS = {
    way: tuple(
        name
        for name, text in statements().items()
        if name not in test_skew.REFUSED.get(way, ()) and _is_of(way, text)
    )
    for _is_of in [
        lambda way, text: (
            test_skew.OF_FRAMEWORK.get(way, "") in text or (way == "file of LightGBM" and "lightgbm" in text)
        )
    ]
    for way in test_skew.WAYS
}


def _by(way: str, answers: Callable[[test_skew.Case], pa.Table]) -> Callable[[Case], Pairs]:
    def check(case: Case) -> Pairs:
        models = case.place.models
        trained, fresh = models[case.model], case.table.arrow()
        schema = trained.model.schema
        for name in schema.names:
            at = fresh.schema.get_field_index(name)
            fresh = fresh.set_column(at, schema.field(name), fresh[name].cast(schema.field(name).type))
        some = test_skew.carried(way, case.model, fresh)
        columns = ", ".join(schema.names)
        with case.place.stored(case.table, "duckdb", models.session) as (session, name):
            wanted = _shown(
                session, f"SELECT {columns} FROM {name} ORDER BY id TO PREDICT USING {case.model}"
            )
            wanted = wanted.drop_columns(schema.names)
            given = fresh.filter(some)
            if not given.num_rows:
                return
            with tempfile.TemporaryDirectory(dir=case.place.folder) as folder:
                session.source.execute(f"CREATE VIEW v_{name} AS SELECT * FROM {name}")
                archive = models.folder / f"{case.model}.zip"
                of_way = test_skew.Case(case.model, trained, archive, session, name, Path(folder), given)
                try:
                    found = answer(lambda: answers(of_way))
                finally:
                    session.source.execute(f"DROP VIEW v_{name}")
        if isinstance(found, Refusal):
            yield Pair(wanted, found)
            return
        yield Pair("", _distance(found, wanted.filter(some), way))

    check.__doc__ = f"Predictions by this way ({way}) equal the statement's."
    return check


def _distance(found: pa.Table, wanted: pa.Table, way: str) -> str:
    try:
        test_skew.assert_close(found, wanted, way)
    except AssertionError as error:
        return str(error)
    return ""


for _way, _answers in test_skew.WAYS.items():
    relation(
        "split held",
        tolerance="ways",
        sources=("duckdb",),
        models=MODELS_OF_WAYS[_way],
        shapes=("few", "one") if _way in test_skew.ONE_BY_ONE else ("many", "few", "one"),
        draw=draw_rows,
        name="by_" + _way.replace(",", "").replace(".", "_").replace(" ", "_").lower(),
    )(_by(_way, _answers))


# The zone of the session -------------------------------------------------------------------------------------------

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia")
OFFSETS = ("+00:00", "-04:00", "+05:30", "+13:00")
EPOCHS = {
    "duckdb": "epoch({0})::BIGINT",
    "mysql": "UNIX_TIMESTAMP({0})",
    "postgres": "extract(epoch FROM {0})::BIGINT",
}


def draw_instants(draw: Random, shape: str, source: str, model: str) -> Input:
    """Whole seconds since 1970, as TIMESTAMP of MySQL can hold them."""
    instants = tuple(draw.randrange(86_400, 2_000_000_000) for _ in range(draw.randint(1, 12)))
    return Input(
        Table((Column("at", "integer", instants), Column("id", "integer", tuple(range(len(instants))))))
    )


@contextlib.contextmanager
def zone_set(session: Session, at: int) -> Iterator[None]:
    """The zone of the session for a while."""
    words = {"duckdb": ("TimeZone", ZONES), "mysql": ("time_zone", OFFSETS), "postgres": ("timezone", ZONES)}
    name, zones = words[session.dialect]
    [before] = (
        session.source.stream(
            {
                "duckdb": "SELECT current_setting('TimeZone')",
                "mysql": "SELECT @@time_zone",
                "postgres": "SELECT current_setting('timezone')",
            }[session.dialect]
        )
        .read_all()
        .column(0)
        .to_pylist()
    )
    session.source.execute(f"SET {name} = '{zones[at]}'")
    try:
        yield
    finally:
        session.source.execute(f"SET {name} = '{before}'")


@relation(
    sources=("duckdb", "mysql", "postgres"), models=("lightgbm",), shapes=("plain",), draw=draw_instants
)
def session_zone(case: Case) -> Pairs:
    """An instant is the same in any zone of the session: shown, seen by a model, predicted from and written."""
    session = case.place.session(case.source)
    model = _model_of_hours(case, session)
    name = case.place.name()
    kind = "TIMESTAMP NULL" if case.source == "mysql" else "TIMESTAMPTZ"
    made = "FROM_UNIXTIME" if case.source == "mysql" else "to_timestamp"
    epoch = EPOCHS[case.source].format("t")
    session.source.execute(f"CREATE TABLE {name} (id INTEGER, t {kind})")
    try:
        with zone_set(session, 0):
            pairs = zip(case.table["id"].values, case.table["at"].values, strict=True)
            values = ", ".join(f"({number}, {made}({at}))" for number, at in pairs)
            session.source.execute(f"INSERT INTO {name} VALUES {values}")
        instants = [*case.table["at"].values]
        predicted = []
        for at in (0, case.draw.randint(1, len(ZONES) - 1)):
            with zone_set(session, at):
                shown = _shown(session, f"SELECT t FROM {name} ORDER BY id")
                yield Pair(instants, _instants(shown, at), what=f"shown in zone {at}")
                predicted.append(
                    _shown(session, f"SELECT t FROM {name} ORDER BY id TO PREDICT USING {model}")
                )
                yield Pair(instants, _instants(predicted[-1], at), what=f"beside predictions in zone {at}")
                for _ in session.run(f"SELECT id, t FROM {name} TO PREDICT into_{name} USING {model}"):
                    pass
                wrote = _shown(session, f"SELECT {epoch} AS e FROM into_{name} ORDER BY id")
                yield Pair(
                    instants, [int(each) for each in wrote["e"].to_pylist()], what=f"written in zone {at}"
                )
        yield Pair(*(_beside(each, ["t"]) for each in predicted), what="predictions in both zones")
    finally:
        session.source.execute(f"DROP TABLE IF EXISTS into_{name}")
        session.source.execute(f"DROP TABLE IF EXISTS {name}")


def _instants(found: Any, at: int) -> Any:
    """Seconds since 1970; what is shown without a zone is in that of the session."""
    if not isinstance(found, pa.Table):
        return found
    return [round(each.timestamp()) if each.tzinfo else each for each in found["t"].to_pylist()]


def _model_of_hours(case: Case, session: Session) -> str:
    """A model of the hour of an instant, trained once for a session."""
    model = f"hours_{case.source}"
    if not session.registry.has(model):
        made = "FROM_UNIXTIME(n)" if case.source == "mysql" else "to_timestamp(n)"
        numbers = " UNION ALL ".join(f"SELECT {1_600_000_000 + 3_607 * at} AS n" for at in range(300))
        with zone_set(session, 0):
            kind = "TIMESTAMP NULL" if case.source == "mysql" else "TIMESTAMPTZ"
            session.source.execute(f"CREATE TABLE {model}_rows (t {kind}, y BOOLEAN)")
            session.source.execute(
                f"INSERT INTO {model}_rows SELECT {made}, n % 86400 >= 43200 FROM ({numbers}) AS s"
            )
            for _ in session.run(
                f"SELECT * FROM {model}_rows TO TRAIN BoostedTreesClassifier WITH train.num_boost_round = 8, "
                f"validation.split = random COLUMN HOUR(t) LABEL y INTO {model}"
            ):
                pass
    return model
