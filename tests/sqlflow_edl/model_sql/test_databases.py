"""The query of a model, run in a database: the rows get what PREDICT gives them."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from sqlflow_edl.model_sql import Wanted, model_query
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill
from tests.sqlflow_edl.model_sql.conftest import SOAK, WITHOUT_SQL, Models, forest_of, rows, statements

DATABASES = ("duckdb", "sqlite", "mysql", "postgres")
COUNT = 2_000


@pytest.fixture(scope="module")
def filled(request: pytest.FixtureRequest, databases: Databases) -> Session:
    """A database with rows to predict."""
    with Session(databases.url(request.param), create=True) as session:
        fill(session, "fresh", rows(COUNT, 2, infinite=request.param in ("duckdb", "postgres")))
        yield session


NAMES = [
    pytest.param(name, marks=pytest.mark.soak) if name in SOAK else name
    for name in statements()
    if name not in WITHOUT_SQL
]


@pytest.mark.parametrize("filled", DATABASES, indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_the_query_gives_what_predict_gives(name: str, filled: Session, trained: Models) -> None:
    archive, model = trained[name]
    query = model_query(
        archive, f"{name}@1", Wanted(filled.dialect, "fresh", ("id",)), lambda: forest_of(archive)
    )
    found = answers(filled, query).sort_by("id")
    given = rows(COUNT, 2, infinite=filled.dialect in ("duckdb", "postgres"))
    [batch] = given.select(model.schema.names).to_batches()
    assert_close(found.drop_columns("id"), pa.Table.from_batches([model.predictor.predict(batch)]))


def answers(session: Session, query: str) -> pa.Table:
    """The rows of a query. SQLite has mathematical functions only if it was built with them, and TensorFlow's, which
    takes the place of Python's in a process that has imported it, was not.
    """
    if session.dialect != "sqlite":
        return session.source.stream(query.rstrip().removesuffix(";")).read_all()
    with contextlib.closing(sqlite3.connect(session.source.url.removeprefix("sqlite:"))) as connection:
        for name, function in (
            ("exp", math.exp),
            ("ln", math.log),
            ("floor", math.floor),
            ("sqrt", math.sqrt),
        ):
            connection.create_function(name, 1, of_number(function), deterministic=True)
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        return pa.table(dict(zip(names, map(list, zip(*cursor, strict=True)), strict=True)))


def of_number(function: Callable[[float], float]) -> Callable[[float | None], float | None]:
    """The function, which gives NULL for NULL."""
    return lambda value: None if value is None else function(value)


def assert_close(found: pa.Table, wanted: pa.Table) -> None:
    assert found.column_names == wanted.column_names
    for name in wanted.column_names:
        if pa.types.is_floating(wanted[name].type):
            scale = max(1.0, float(np.median(np.abs(wanted[name]))))
            np.testing.assert_allclose(
                found[name].cast(pa.float64()), wanted[name], rtol=1e-6, atol=1e-6 * scale, err_msg=name
            )
        else:
            same = [a == b for a, b in zip(found[name].to_pylist(), wanted[name].to_pylist(), strict=True)]
            assert np.mean(same) > 0.999  # of two classes with the same probability either may come out
