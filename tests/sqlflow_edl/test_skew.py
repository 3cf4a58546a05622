"""All ways to predict with a model give the answers of the statement PREDICT, for the same rows.

The rows are drawn: NULLs in each column, texts with quotes and in other cases, categories that training has not seen,
numbers beyond float32, infinities where a way can carry them. A way that cannot express a model must refuse it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sqlflow_edl
from edl import features as fc
from edl.errors import JobError, SQLFlowError
from edl.frameworks.export import reason_against_tensors
from edl.frameworks.networks.onnx import reason_against
from edl.models.registry.model_store import ModelStore
from edl.program import read_spec
from edl.run import job_runner
from edl.spec import label_offset
from sqlflow_edl.codegen import generate
from sqlflow_edl.extensions.model_sql import QueryOptions, model_query
from sqlflow_edl.extensions.pmml.document import encode_pmml
from sqlflow_edl.extensions.serving.arrow_stream import MEDIA_TYPE, write_stream
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill
from tests.pmml import Pmml
from tests.sqlflow_edl.extensions.serving.conftest import serving
from tests.trained import Models, Trained, fed, forest_of, rows, statements

COUNT, MANY = 2_000, 100_000
LARGE = 1e6  # number of which 1e-6 is not small
SPREAD = 40.0  # standard deviation of the large labels
FEW = 30  # for a way that takes rows one by one, or as texts


@dataclass
class Case:
    """Model, the rows to predict, and the table of a session that has them all."""

    name: str
    trained: Trained
    archive: Path
    session: Session
    table: str
    folder: Path
    rows: pa.Table

    @property
    def batch(self) -> pa.RecordBatch:
        """The columns that the model reads."""
        [batch] = self.rows.select(self.trained.model.schema.names).combine_chunks().to_batches()
        return batch

    def columns(self, scores: np.ndarray) -> pa.Table:
        """The columns of PREDICT for these scores."""
        results = self.trained.model.predictor.results()
        batch = results.batch(self.batch, np.asarray(scores, np.float64).reshape(len(scores), -1))
        return pa.Table.from_batches([batch])

    def exported(self, suffix: str) -> tuple[Path, str]:
        """The file that `sqlflow export` writes, and what it says that it wrote."""
        program, file = self.folder / "program", self.folder / f"exported{suffix}"
        generate(self.trained.archive.spec).write(program)
        with job_runner.load_program(program, read_spec(program), threads=1) as loaded:
            return file, job_runner.export(loaded, self.archive, file)


Answers = Callable[[Case], pa.Table]


# In the database -------------------------------------------------------------------------------------------------


def by_query(case: Case) -> pa.Table:
    [result] = case.session.run(
        f"SELECT * FROM PREDICT({case.name}, (SELECT * FROM {case.table})) ORDER BY id"
    )
    return result.to_arrow()


def by_function_of_duckdb(case: Case) -> pa.Table:
    with duckdb.connect() as connection:
        sqlflow_edl.register(connection, case.archive, name="guess")
        connection.register("given", case.rows)
        names = ", ".join(case.trained.model.schema.names)
        return connection.sql(
            f"SELECT unnest(p) FROM (SELECT guess_all({names}) AS p FROM given)"
        ).to_arrow_table()


def by_function_of_sqlite(case: Case) -> pa.Table:
    connection = sqlite3.connect(":memory:")
    sqlflow_edl.register(connection, case.archive, name="guess")
    call = f"SELECT guess_all({', '.join('?' * case.batch.num_columns)})"
    answers = (
        connection.execute(call, tuple(plain(row).values())).fetchone() for row in case.batch.to_pylist()
    )
    return pa.Table.from_pylist([json.loads(text) for (text,) in answers])


def by_plain_sql(case: Case) -> pa.Table:
    archive, dialect = case.trained.archive, case.session.dialect
    query = model_query(
        archive, case.name, QueryOptions(dialect, case.table, ("id",)), lambda: forest_of(archive)
    )
    return answered(case.session, query).sort_by("id")


def answered(session: Session, query: str) -> pa.Table:
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


# Over HTTP, in Python, from files --------------------------------------------------------------------------------


def by_json(case: Case) -> pa.Table:
    with serving(ModelStore("", case.session.registry.url), models=(case.name,)) as client:
        records = {"records": [plain(row) for row in case.batch.to_pylist()]}
        answer = client.ask("POST", f"/v1/models/{case.name}/predict", records)
    return pa.Table.from_pylist(answer.json["predictions"])


def by_arrow(case: Case) -> pa.Table:
    with serving(ModelStore("", case.session.registry.url), models=(case.name,)) as client:
        stream = write_stream(case.batch)
        answer = client.ask("POST", f"/v1/models/{case.name}/predict", stream, content_type=MEDIA_TYPE)
    return pa.ipc.open_stream(answer.body).read_all()


def by_frame(case: Case) -> pa.Table:
    """As in a notebook, over a data frame that the session is given."""
    case.session.register("frame", case.rows)
    [result] = case.session.run(f"SELECT * FROM frame ORDER BY id TO PREDICT USING {case.name}")
    found = result.to_arrow()
    case.session.unregister("frame")
    return found


def by_onnx(case: Case) -> pa.Table:
    onnxruntime = pytest.importorskip("onnxruntime")
    spec, weights = case.trained.archive.spec, case.trained.archive.weights()
    if spec.framework in ("keras", "torch") and (reason := reason_against(spec, weights)):
        raise JobError(reason)  # then the file takes the transformed features
    file, wrote = case.exported(".onnx")
    if wrote != f"an ONNX model of the columns {', '.join(spec.columns)}":
        raise JobError(wrote)
    session = onnxruntime.InferenceSession(file)
    wanted = [each.name for each in session.get_outputs() if each.name in ("outputs", "scores")][-1:]
    return case.columns(session.run(wanted, fed(case.batch, [each.name for each in session.get_inputs()]))[0])


def by_saved_model(case: Case) -> pa.Table:
    """TensorFlow multiplies frequencies by 2π first, so that waves of numbers far outside of training differ."""
    import tensorflow as tf

    file, _ = case.exported("")
    model = tf.saved_model.load(str(file))
    given = {name: tf.constant(each) for name, each in fed(case.batch, case.batch.schema.names).items()}
    found = model.serve(given)
    return case.columns(found.get("scores", found["outputs"]).numpy())


def by_torch_export(case: Case) -> pa.Table:
    import torch

    spec = case.trained.archive.spec
    if reason := reason_against(spec, case.trained.archive.weights()) or reason_against_tensors(spec):
        raise JobError(reason)  # then the file takes the transformed features
    file, wrote = case.exported(".pt2")
    assert wrote == f"a torch.export program of the columns {', '.join(spec.columns)}"
    program = torch.export.load(file).module()
    given = {name: torch.tensor(each) for name, each in fed(case.batch, spec.columns).items()}
    found = program(given)
    one = program({name: each[:1] for name, each in given.items()})
    name = "scores" if "scores" in found else "outputs"
    torch.testing.assert_close(one[name], found[name][:1])
    return case.columns(found[name].numpy())


def by_file_of_lightgbm(case: Case) -> pa.Table:
    import lightgbm

    file, _ = case.exported(".txt")
    return case.columns(of_trees(case, lightgbm.Booster(model_file=file).predict(matrix(case))))


def by_file_of_xgboost(case: Case) -> pa.Table:
    import xgboost

    found = [
        xgboost.Booster(model_file=case.exported(suffix)[0]).inplace_predict(matrix(case))
        for suffix in (".ubj", ".json")
    ]
    np.testing.assert_array_equal(*found)
    return case.columns(of_trees(case, found[0]))


def by_pmml(case: Case) -> pa.Table:
    """Answers of our own evaluator. Infinities, which PMML does not know, are missing as NULL is."""
    archive, file = case.trained.archive, case.folder / "exported.pmml"
    file.write_text(encode_pmml(archive, case.name, lambda: forest_of(archive)), encoding="utf-8")
    document = Pmml(file)
    inputs = {name: pmml_values(case.batch.column(name)) for name in document.inputs}
    found = [
        document.outputs(dict(zip(inputs, values, strict=True)))
        for values in zip(*inputs.values(), strict=True)
    ]
    label = archive.spec.label
    if not label.has_classes:
        return case.columns(np.array([row[document.target] for row in found]))
    names = [f"probability({name})" for name in label.classes]
    names = [name.replace("True", "true").replace("False", "false") for name in names]
    answers = case.columns(np.array([[row[name] for name in names] for row in found]))
    predicted = [row.get(f"predicted_{document.target}", row[document.target]) for row in found]
    assert np.mean([a == b for a, b in zip(predicted, answers.column(0).to_pylist(), strict=True)]) > 0.999
    return answers


def pmml_values(values: pa.Array) -> list[Any]:
    """The values as PMML takes them: texts, booleans, and doubles of all else."""
    if pa.types.is_string(values.type) or pa.types.is_boolean(values.type):
        return values.to_pylist()
    if pa.types.is_temporal(values.type):
        values = pc.divide(values.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
    return [None if value is None or math.isinf(value) else float(value) for value in values.to_pylist()]


def matrix(case: Case) -> np.ndarray:
    """Return the matrix that files of libraries of trees take: they know no texts and no dates."""
    found: np.ndarray = fc.Features(*case.trained.archive.spec.features).transform(case.batch)["dense"]
    return found


def of_trees(case: Case, found: np.ndarray) -> np.ndarray:
    """Of two classes, libraries give the probability of the second; of numbers, those less the centre of the label."""
    found = found.astype(np.float64) + label_offset(case.trained.archive.spec.label)
    binary = case.trained.model.predictor.results().scores == 2
    return np.stack([1 - found, found], axis=1) if binary else found


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """The values as JSON and SQLite have them."""
    found = dict(row)
    for name, value in row.items():
        if isinstance(value, Decimal):
            found[name] = float(value)
        elif isinstance(value, dt.date):  # or a timestamp
            found[name] = value.isoformat()
    return found


# The test --------------------------------------------------------------------------------------------------------

WAYS: dict[str, Answers] = {
    "query": by_query,
    "function of DuckDB": by_function_of_duckdb,
    "function of SQLite": by_function_of_sqlite,
    "plain SQL": by_plain_sql,
    "REST, JSON": by_json,
    "REST, Arrow": by_arrow,
    "data frame": by_frame,
    "ONNX": by_onnx,
    "PMML": by_pmml,
    "SavedModel": by_saved_model,
    "torch.export": by_torch_export,
    "file of LightGBM": by_file_of_lightgbm,
    "file of XGBoost": by_file_of_xgboost,
}
ONE_BY_ONE = ("function of SQLite", "REST, JSON")  # which have no infinities either
OF_FRAMEWORK = {
    "SavedModel": "keras",
    "torch.export": "torch",
    "file of LightGBM": "lightgbm",
    "file of XGBoost": "xgboost",
}
REFUSED = {
    "plain SQL": {"periodic", "keras_periodic", "ensemble", "several", "large_search", "large_several"},
    "ONNX": {"hashed", "hashed_trees"},
    "PMML": {*statements()}
    - {"computed_trees", "large_trees", "large_xgboost", "lightgbm", "poisson", "xgboost", "xgboost_number"},
    "torch.export": {
        "linear",
        "linear_classes",
        "deep",
        "wide",
        "hashed",
        "several",
        "large_linear",
        "large_several",
    },  # which read texts
}
WITHOUT_HASH = [(name, each) for name in ("hashed", "hashed_trees") for each in ("sqlite", "mysql")]
SOAK = (
    "linear",
    "computed",
    "computed_trees",
    "shared",
    "periodic",
    "keras_periodic",
    "keras_deep",
    "keras_wide",
    "keras_real_mlp",
    "real_mlp",
    "poisson",
    "xgboost_number",
    "ensemble",
    "hashed_trees",
    "several",
    "large_dense",
    "large_keras",
    "large_linear",
    "large_search",
    "large_several",
    "large_xgboost",
)
DATABASES = ("duckdb", "sqlite", "mysql", "postgres")
CASES = [
    pytest.param(name, database, marks=pytest.mark.soak)
    if name in SOAK
    or (name, database) == ("hashed", "postgres")  # test_hashing has its hash
    or (name, database) in [("large_trees", each) for each in ("sqlite", "mysql", "postgres")]
    else (name, database)
    for name in statements()
    for database in DATABASES
    if database == "duckdb" or not (name in REFUSED["plain SQL"] or (name, database) in WITHOUT_HASH)
]


@pytest.mark.variants(3)
@pytest.mark.parametrize(("name", "database"), CASES)
def test_each_way_to_predict_gives_the_answers_of_the_statement(
    name: str, database: str, trained: Models, databases: Databases, tmp_path: Path
) -> None:
    """In another database than DuckDB, the query in plain SQL."""
    if database == "duckdb":
        compare_ways(name, trained, tmp_path, COUNT)
        return
    model, fresh = trained[name], rows(COUNT, 2, infinite=database == "postgres")
    with Session(databases.url(database), create=True) as session:
        fill(session, "fresh", fresh)
        case = Case(name, model, trained.folder, session, "fresh", tmp_path, fresh)
        wanted = pa.Table.from_batches([model.model.predictor.predict(case.batch)])
        assert_close(by_plain_sql(case), wanted, database)


@pytest.mark.soak
@pytest.mark.parametrize("name", statements())
def test_each_way_gives_the_answers_of_the_statement_to_many_rows(
    name: str, trained: Models, tmp_path: Path
) -> None:
    compare_ways(name, trained, tmp_path, MANY)


def compare_ways(name: str, trained: Models, folder: Path, count: int) -> None:
    model, fresh, table = trained[name], rows(count, 2, infinite=True), trained.fresh(count)
    framework, columns = model.archive.spec.framework, model.model.schema.names
    [result] = trained.session.run(
        f"SELECT {', '.join(columns)} FROM {table} ORDER BY id TO PREDICT USING {name}"
    )
    wanted = result.to_arrow().drop_columns(columns)
    for way, answers in WAYS.items():
        if OF_FRAMEWORK.get(way, framework) != framework:
            continue
        own = folder / way.replace(" ", "_")
        own.mkdir()
        some = carried(way, name, fresh)
        case = Case(
            name, model, trained.folder / f"{name}.zip", trained.session, table, own, fresh.filter(some)
        )
        if name in REFUSED.get(way, ()):
            with pytest.raises(SQLFlowError):
                answers(case)
        else:
            assert_close(answers(case), wanted.filter(some), way)


def carried(way: str, name: str, fresh: pa.Table) -> pa.ChunkedArray:
    """Which rows the way can carry."""
    amount = pc.fill_null(fresh["amount"], 0.0)
    if way in ONE_BY_ONE:
        return pc.and_(pc.less(fresh["id"], FEW), pc.is_finite(amount))
    if way == "PMML":  # by an evaluator in Python, row by row
        return pc.less(fresh["id"], COUNT)
    if way == "SavedModel" and "periodic" in name:
        return pc.less(pc.abs(amount), 100)
    return pc.is_valid(fresh["id"])


def assert_close(found: pa.Table, wanted: pa.Table, way: str) -> None:
    """Numbers to 1e-6 of their size, large ones of their distance from the median; of two classes with the same
    probability either may come out.
    """
    assert set(wanted.column_names) <= set(found.column_names), way
    for name in wanted.column_names:
        if pa.types.is_floating(wanted[name].type):
            values = wanted[name].to_numpy()
            others = found[name].cast(pa.float64()).to_numpy()
            scale = max(1.0, float(np.nanmedian(np.abs(values))))
            if (middle := float(np.nanmedian(values))) > LARGE:
                values, others, scale = values - middle, others - middle, SPREAD
            huge = np.abs(values) > LARGE  # sums of numbers beyond float32 lose digits
            message = f"{way}: {name}"
            np.testing.assert_allclose(
                others[~huge], values[~huge], rtol=1e-6, atol=1e-6 * scale, err_msg=message
            )
            np.testing.assert_allclose(others[huge], values[huge], rtol=1e-5, err_msg=message)
        else:
            pairs = zip(found[name].to_pylist(), wanted[name].to_pylist(), strict=True)
            assert np.mean([a == b for a, b in pairs]) > 0.999, way
