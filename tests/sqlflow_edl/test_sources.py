"""Statements all the way on every source: the same rows and the same statement give the same model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn import datasets

import sqlflow_edl
from edl import data
from edl.data import jobs
from edl.errors import SemanticError, SourceError
from edl.models.archive import read_archive
from sqlflow_edl.cli.main import main
from sqlflow_edl.observer import Silent
from sqlflow_edl.session import Session
from tests.cutting import cutting
from tests.mariadb import PASSWORD, Server
from tests.maxcompute.process import Running

TRAIN = """
SELECT x0, x1, x2, x3, kind FROM iris WHERE id % 3 > 0
TO TRAIN DNNClassifier WITH model.framework = torch, model.hidden_units = [8], train.epoch = 5, seed = 3
LABEL kind INTO flowers.small;
"""
URLS = ("duckdb", "sqlite", "csv", "mysql", "maxcompute")


def write_iris(path: Path) -> None:
    iris = datasets.load_iris()
    lines = (
        ",".join(map(str, [i, *row, iris.target_names[kind]]))
        for i, (row, kind) in enumerate(zip(iris.data, iris.target, strict=True))
    )
    path.write_text("\n".join(["id,x0,x1,x2,x3,kind", *lines, ""]), encoding="utf-8")


@pytest.fixture(scope="module")
def sessions(
    tmp_path_factory: pytest.TempPathFactory, mariadb: Server, maxcompute: Running
) -> Iterator[dict[str, Session]]:
    """The same table in each source, and the same statement run on it."""
    folder = tmp_path_factory.mktemp("sources")
    write_iris(folder / "iris.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        urls = {scheme: f"{scheme}:{folder}/iris.{scheme}" for scheme in URLS}
        urls |= {"mysql": mariadb.url(), "maxcompute": maxcompute.url()}
        opened = {scheme: sqlflow_edl.connect(url, create=True) for scheme, url in urls.items()}
        rows = opened["csv"].source.stream("SELECT * FROM iris").read_all()
        for scheme in ("duckdb", "sqlite", "mysql", "maxcompute"):
            opened[scheme].source.stage("iris", "given", 0, 0, rows.to_reader())
            opened[scheme].source.commit("iris", "given", 1)
        for session in opened.values():
            list(session.run(TRAIN))
        yield opened
        for session in opened.values():
            session.close()


def test_the_same_statement_gives_the_same_weights(sessions: dict[str, Session], tmp_path: Path) -> None:
    """But on MaxCompute, which puts the rows into another order (docs/maxcompute.md)."""
    weights = []
    for scheme in URLS[:-1]:
        session = sessions[scheme]
        session.registry.load("flowers.small", tmp_path / "model.zip")
        weights.append(read_archive(tmp_path / "model.zip").weights())
    assert weights[0]
    for other in weights[1:]:
        assert all(np.array_equal(weights[0][name], other[name]) for name in weights[0])


@pytest.mark.parametrize("scheme", URLS)
def test_a_model_predicts_into_a_table_and_is_measured(sessions: dict[str, Session], scheme: str) -> None:
    session = sessions[scheme]
    *_, table = session.run(
        "SELECT * FROM iris WHERE id % 3 = 0 ORDER BY id TO PREDICT guesses.guess USING flowers.small;"
        "SELECT id, kind, guess, guess_prob FROM guesses"
    )
    found = table.to_pandas()
    assert found["id"].tolist() == list(range(0, 150, 3))
    assert found["guess_prob"].between(1 / 3, 1).all()
    [measured] = session.run("SELECT * FROM iris WHERE id % 3 = 0 TO EVALUATE flowers.small")
    assert measured.figures is not None
    assert measured.figures["accuracy"] == pytest.approx((found["kind"] == found["guess"]).mean())


class Looking(Silent):
    """Looks for a password while a job runs: in the command lines and names of all processes, and in all its files."""

    def __init__(self, *folders: Path) -> None:
        self.found: list[Path] = []
        self.files = 0
        self._folders = folders

    def progress(self, event: object) -> None:
        self.look()

    def look(self) -> None:
        running = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
        processes = [path / name for path in running for name in ("cmdline", "comm")]
        files = [path for folder in self._folders for path in folder.rglob("*") if path.is_file()]
        self.files = max(self.files, len(files))
        for path in (*processes, *files):
            with contextlib.suppress(OSError):  # it is gone again
                if PASSWORD.encode() in path.read_bytes():
                    self.found.append(path)


@pytest.fixture(scope="module")
def many(sessions: dict[str, Session]) -> str:
    """The database of a table with 6000 rows of some length."""
    list(
        sessions["mysql"].run(
            "CREATE TABLE many AS SELECT seq AS n, x0, x1, x2, x3, kind, REPEAT('x', 90) AS text"
            " FROM seq_1_to_40 JOIN iris; ALTER TABLE many ADD id INT AUTO_INCREMENT PRIMARY KEY"
        )
    )
    return sessions["mysql"].source.home[1:-2]


def test_training_whose_connections_are_cut_gives_the_weights_of_one_that_is_left_alone(
    mariadb: Server, many: str, tmp_path: Path
) -> None:
    train = (
        "SELECT x0, x1, x2, x3, text, kind FROM many TO TRAIN DNNClassifier WITH model.framework = torch,"
        " model.hidden_units = [4], train.epoch = 2, seed = 1 LABEL kind INTO {name}"
    )
    weights = []
    with cutting(mariadb.port, after=60_000, times=10) as proxy:
        for name, port in (("alone", 0), ("cut", proxy.port)):
            with Session(mariadb.url(many, port=port)) as session:
                list(session.run(train.format(name=name)))
                session.registry.load(name, tmp_path / name)
                weights.append(read_archive(tmp_path / name).weights())
        assert proxy.cuts == 10
    alone, cut = weights
    assert alone
    assert all(np.array_equal(alone[name], cut[name]) for name in alone)


def test_a_job_whose_connections_are_cut_writes_every_row_once_and_no_password(
    sessions: dict[str, Session], mariadb: Server, many: str, state_folder: Path
) -> None:
    """Two workers; ten connections are cut while they, or we, read."""
    looking = Looking(state_folder)
    with cutting(mariadb.port, after=60_000, times=10) as proxy:
        url = mariadb.url(many, port=proxy.port)
        with Session(url, observer=looking, workers=2) as session:
            list(
                session.run(
                    "SELECT * FROM many ORDER BY id TO PREDICT cut.guess"
                    " WITH predict.batch_size = 100 USING flowers.small"
                )
            )
            [counted] = session.run(
                "SELECT COUNT(*) AS n, COUNT(DISTINCT id) AS d, COUNT(guess) AS g FROM cut"
            )
            assert counted.to_arrow().to_pylist() == [{"n": 6000, "d": 6000, "g": 6000}]
        assert proxy.cuts == 10
    looking.look()
    assert looking.found == []
    assert looking.files > 10
    [kept] = sessions["mysql"].run(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
        " AND table_name LIKE 'sqlflow\\_edl\\_rows\\_%'"
    )
    assert kept.to_arrow().num_rows == 0


@pytest.mark.parametrize("scheme", URLS[:-1])  # MaxCompute has no transactions
def test_statements_of_the_database_pass_through(
    scheme: str, tmp_path: Path, mariadb: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = mariadb.url() if scheme == "mysql" else f"{scheme}:{tmp_path}/iris.{scheme}"
    write_iris(tmp_path / "iris.csv")
    program = (
        "CREATE TABLE t (a INTEGER, b VARCHAR(9)); INSERT INTO t VALUES (1, 'x;'), (2, NULL); UPDATE t SET a = a + 1;"
        "DELETE FROM t WHERE a = 3; BEGIN; INSERT INTO t VALUES (9, 'gone'); ROLLBACK; SELECT * FROM t"
    )
    assert main(["run", "-e", program, "--source", url, "--create", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "a,b\n2,x;\n"


@pytest.mark.parametrize("scheme", URLS)
def test_an_error_of_the_database_points_into_the_statement(
    sessions: dict[str, Session], scheme: str
) -> None:
    text = "SELECT 1;\nSELECT * FROM irs TO TRAIN DNNClassifier LABEL kind INTO x"
    with pytest.raises(SourceError) as raised:
        list(sessions[scheme].run(text))
    span = raised.value.span
    assert span is not None
    assert text[span.start : span.end] == "irs"
    assert raised.value.hint == "did you mean iris?"


@pytest.mark.parametrize("scheme", URLS)
def test_a_query_without_rows_trains_nothing(sessions: dict[str, Session], scheme: str) -> None:
    with pytest.raises(SemanticError, match="the query yields no rows"):
        list(sessions[scheme].run(TRAIN.replace("id % 3 > 0", "id < 0")))


def test_what_a_dead_client_has_staged_is_dropped_by_the_next_session(tmp_path: Path) -> None:
    url = f"duckdb:{tmp_path / 'd.duckdb'}"
    job = jobs.create("predict")
    with data.connect(url, create=True) as source:
        source.stage("result", job.id, 0, 0, [pa.record_batch({"a": [1.0]})])
        job.end("died")
    with sqlflow_edl.connect(url) as session:
        [found] = session.run(
            "SELECT count(*) AS n FROM duckdb_tables() WHERE starts_with(table_name, 'sqlflow_edl_stage_')"
        )
        assert found.to_arrow()["n"].to_pylist() == [0]
