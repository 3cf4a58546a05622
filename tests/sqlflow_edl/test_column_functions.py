"""Column functions of a user's own: fitted to the training rows, and applied wherever the model is used."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl import spec
from edl.errors import SQLFlowError
from edl.features import own_functions
from edl.features.computed import arguments
from edl.models.archive import read_archive
from edl.program import column_functions, load
from edl.program.user_model import PATH_VARIABLE
from edl.run import job_runner
from edl.spec.computed import functions, rename_columns
from sqlflow_edl.backends.exporting import read_forest
from sqlflow_edl.codegen import generate
from sqlflow_edl.extensions.model_sql import QueryOptions, model_query
from sqlflow_edl.extensions.serving.model import load_model
from sqlflow_edl.session.session import Session
from tests.databases import Databases, fill

SALES = pa.table(
    {
        "price": [float(each % 40 + 1000 * (each % 50 == 0)) for each in range(200)],
        "shop": ["ab"[each % 3 == 0] for each in range(200)],
        "sold": [each % 40 * 2.0 for each in range(200)],
    }
)
CLIP = "column_functions.Clip(price, share=0.05)"
QUERY = "SELECT price, shop, sold FROM sales"
MODELS = Path(__file__).parents[1] / "fixtures" / "models"
TRAIN = f"""{QUERY} TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 2, validation.fraction = 0.1
COLUMN {CLIP} AS clipped, clipped / 2, BUCKETIZE(clipped, 4), column_functions.Rarity(shop) LABEL sold INTO"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The model path: a folder with the module."""
    folder = tmp_path_factory.mktemp("modules")
    shutil.copy(MODELS / "column_functions.py", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PATH_VARIABLE, str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        yield folder


@pytest.fixture(scope="module", params=["duckdb", pytest.param("mysql", marks=pytest.mark.soak)])
def session(request: pytest.FixtureRequest, databases: Databases, modules: Path) -> Iterator[Session]:
    with Session(databases.url(request.param), create=True) as opened:
        fill(opened, "sales", SALES)
        list(opened.run(f"{TRAIN} m"))
        yield opened


@pytest.fixture
def archive(session: Session, tmp_path: Path) -> Path:
    session.registry.load("m", tmp_path / "m.zip")
    return tmp_path / "m.zip"


def states(model: spec.JobSpec) -> dict[str, object]:
    """The states of the functions, by their texts."""
    found = (
        each for feature in model.features for source in spec.sources(feature) for each in functions(source)
    )
    return {str(each): msgspec.json.decode(each.function.state or "") for each in found if each.function}


def test_a_function_is_fitted_to_the_training_rows_alone(session: Session, archive: Path) -> None:
    model = read_archive(archive).spec
    found = states(model)
    low, high = found[CLIP]  # type: ignore[misc]
    assert model.rows.validation > 0
    assert 0 < low < 5
    assert 35 < high < 60
    shares = found["column_functions.Rarity(shop)"]
    assert isinstance(shares, dict)
    counts = [share * model.rows.training for share in shares.values()]
    assert [*map(round, counts)] == pytest.approx(counts)
    assert round(sum(counts)) == model.rows.training


def test_predict_a_server_and_python_apply_the_same_state(session: Session, archive: Path) -> None:
    list(session.run(f"{QUERY} ORDER BY price, shop, sold LIMIT 50 TO PREDICT guess USING m"))
    rows = next(session.stream(f"{QUERY} ORDER BY price, shop, sold LIMIT 50")).to_arrow()
    model = load_model(archive, "m@1")
    [batch] = rows.select(model.schema.names).combine_chunks().to_batches()
    served = model.predictor.predict(batch)["sold"].to_pylist()
    stored = next(session.stream("SELECT * FROM guess ORDER BY price, shop, sold")).to_arrow()
    assert sorted(served) == sorted(stored["sold"].to_pylist())
    low, high = states(model.archive.spec)[CLIP]  # type: ignore[misc]
    seen = sqlflow_edl.load_transform(archive).transform(rows)
    column = seen[f"raw({CLIP} / 2)"].to_numpy()
    np.testing.assert_allclose(column, np.clip(rows["price"].to_numpy(), low, high) / 2)


@pytest.mark.soak
def test_drift_is_told_of_columns_that_functions_alone_read(session: Session) -> None:
    list(session.run(f"{QUERY} TO TRAIN Transform COLUMN {CLIP}, column_functions.Rarity(shop) INTO d"))
    text = "SELECT price + 999 AS price, 'c' AS shop, sold FROM sales TO PREDICT WITH predict.report = drift USING d"
    found = next(session.stream(text)).to_arrow().to_pylist()
    assert {each["column"]: each["verdict"] for each in found}.items() >= {
        ("price", "drifted"),
        ("shop", "drifted"),
    }


def test_other_models_reuse_the_state(session: Session) -> None:
    text = f"{QUERY} WHERE price < 9 TO TRAIN LinearRegressor COLUMN FEATURES(m, price) LABEL sold INTO n"
    list(session.run(f"{QUERY} TO TRAIN Transform COLUMN {CLIP} INTO t"))
    [transform, planned] = (
        session.compiler.plan(session.parse(each)[0]).spec
        for each in (
            f"{QUERY} TO TRAIN Transform COLUMN {CLIP} INTO t",
            text.replace("FEATURES(m, price)", "FEATURES(t, price)"),
        )
    )
    assert states(planned) == states(transform)


def test_a_function_takes_the_values_of_another_one(session: Session) -> None:
    text = f"{QUERY} TO TRAIN Transform COLUMN column_functions.Clip({CLIP}, share=0) INTO t"
    found = states(session.compiler.plan(session.parse(text)[0]).spec)
    assert found[CLIP] == found[f"column_functions.Clip({CLIP}, share=0)"]


def test_a_function_sees_one_type_whatever_the_query_has(session: Session, archive: Path) -> None:
    rows = pa.table({name: SALES[name].slice(0, 60) for name in ("price", "shop")})
    integers = rows.set_column(0, "price", rows["price"].cast(pa.int16()))
    decimals = rows.set_column(0, "price", rows["price"].cast(pa.decimal128(9, 2)))
    transform = sqlflow_edl.load_transform(archive)
    expected = transform.transform(rows)
    assert transform.transform(decimals) == transform.transform(integers) == expected


def test_a_function_sees_the_names_of_the_training(session: Session, archive: Path) -> None:
    [statement] = session.parse("SELECT price AS PRICE, shop FROM sales TO PREDICT guess USING m")
    planned = session.compiler.use(statement, archive).planned
    assert 'columns=["price"]' in str(generate(planned).files["model.py"])
    item = spec.Computed("FUNCTION", ("price",), function=spec.Function("a.B", "", state="1"))
    batch = pa.record_batch({"PRICE": [1.0]})
    found = rename_columns(item, {"price": "PRICE"})
    assert isinstance(found, spec.Computed)
    assert arguments(batch, found).column_names == ["price"]


def test_a_function_is_not_called_without_rows(modules: Path) -> None:
    broken = column_functions.look_up("column_functions.Broken")
    function = spec.Function(broken.name, broken.digest, state="1")
    assert own_functions.values(function, pa.table({"price": []})).shape == (0,)


def test_a_function_cannot_change_the_state_of_later_batches(modules: Path) -> None:
    draining = column_functions.look_up("column_functions.Draining")
    function = spec.Function(draining.name, draining.digest, state="[1.0, 2.0, 3.0]")
    rows = pa.table({"price": [5.0]})
    assert [own_functions.values(function, rows).tolist() for _ in range(2)] == [[3.0], [3.0]]


def test_a_query_without_rows_fits_no_function(session: Session) -> None:
    text = f"{QUERY} WHERE price < 0 TO TRAIN Transform COLUMN {CLIP} INTO t"
    with pytest.raises(SQLFlowError, match="the query yields no rows"):
        session.compile(text)


@pytest.mark.soak
def test_workers_apply_the_state_too(session: Session) -> None:
    text = (
        f"{QUERY} TO TRAIN DNNRegressor WITH model.framework = torch, train.epoch = 1, train.num_workers = 2"
    )
    list(session.run(f"{text} COLUMN {CLIP}, column_functions.Rarity(shop) LABEL sold INTO shared"))
    list(session.run(f"{QUERY} TO PREDICT seen WITH predict.num_workers = 2 USING shared"))
    assert next(session.stream("SELECT count(*) AS n FROM seen")).to_arrow()["n"].to_pylist() == [200]


def test_a_changed_source_is_refused_until_the_model_is_trained_again(
    session: Session, archive: Path, modules: Path
) -> None:
    file = modules / "column_functions.py"
    source = file.read_text(encoding="utf-8")
    try:
        file.write_text(source.replace("share=0.01", "share=0.02"), encoding="utf-8")
        own_functions._instance.cache_clear()
        with pytest.raises(SQLFlowError, match="has changed since the model was trained"):
            list(session.run("SHOW FEATURES FOR m (SELECT * FROM sales LIMIT 2)"))
        session.compile(f"{TRAIN} m")
    finally:
        file.write_text(source, encoding="utf-8")


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("«column_functions.Klip»(price)", "defines no class or function Klip"),
        ("«column_functions.function»(price)", "is no class with fit and transform"),
        ("«subprocess.Popen»(price)", "SQL may not name subprocess.Popen"),
        ("column_functions.Clip(price, share=«[1]»)", "a parameter is a number"),
        ("column_functions.Clip(price, shar=«1»)", "Clip has no parameter shar"),
        ("«column_functions.Needing(price)»", "Needing needs its parameter low"),
        ("«column_functions.Clip()»", "Clip takes a column or more"),
        ("column_functions.Clip(«sold»)", "sold is the label"),
        ("column_functions.Clip(price, «0.3»)", "an argument of column_functions.Clip is a column"),
        ("column_functions.Clip(price, «MEAN(price)»)", "an argument of column_functions.Clip is a column"),
        ("«column_functions.Clip(shop) + 1»", "column_functions.py:15, in fit"),
        ("«column_functions.Clip(shop)»", "column_functions.py:15, in fit"),
        ("«column_functions.Broken(price)»", "column_functions.py:35, in transform: AttributeError"),
        ("«column_functions.Short(price)»", "returned 1 values for"),
        ("«column_functions.Wordy(price)»", "returned no column of numbers"),
        ("«column_functions.Stateful(price)»", "returned a state that is no JSON"),
    ],
)
def test_a_mistake_is_an_error_at_its_place(session: Session, item: str, message: str) -> None:
    text = f"{QUERY} TO TRAIN LinearRegressor COLUMN {item} LABEL sold INTO n"
    with pytest.raises(SQLFlowError) as raised:
        session.compile(text.replace("«", "").replace("»", ""))
    assert message in raised.value.message
    span = raised.value.span
    assert span is not None
    assert (span.start, span.end) == (text.index("«"), text.index("»") - 1)


def test_a_stored_model_cannot_name_what_sql_may_not(session: Session, archive: Path) -> None:
    hostile = spec.Computed(
        "FUNCTION", ("price",), function=spec.Function("subprocess.Popen", "0" * 64, state="[]")
    )
    model = msgspec.structs.replace(read_archive(archive).spec, inputs={"features": (spec.Raw(hostile),)})
    program = generate(model).files["model.py"]
    assert str(program).count("subprocess") == str(program).count('"subprocess.Popen"') == 1
    with pytest.raises(SQLFlowError, match=r"SQL may not name subprocess\.Popen"):
        own_functions.values(hostile.function, pa.table({"price": [1.0]}))  # type: ignore[arg-type]


def test_a_model_is_exported_over_its_transformed_features(session: Session, archive: Path) -> None:
    program = archive.parent / "program"
    generate(read_archive(archive).spec).write(program)
    written = job_runner.export(load(program), archive, archive.with_suffix(".onnx"))
    assert written == "an ONNX model of the matrix dense"


def test_a_function_is_written_in_no_sql(session: Session, archive: Path) -> None:
    with pytest.raises(SQLFlowError, match="is computed in Python, and written in no SQL"):
        model = read_archive(archive)
        model_query(model, "m@1", QueryOptions("duckdb", "sales"), lambda: read_forest(model, archive))
