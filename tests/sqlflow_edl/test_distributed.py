"""Statements that run with a master and workers, and jobs that are left and come home, on each kind of database."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl import spec
from edl.cluster.local import client
from edl.cluster.quota.quota import Quota
from edl.errors import ClusterError, ErrorList, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.events import Tally
from sqlflow_edl.reports.plan import WRITTEN
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.databases import DIALECTS, Databases, fill, on_each, tables
from tests.edl.cluster.local.conftest import wait_until
from tests.edl.models.conftest import SPEC, write
from tests.sqlflow_edl.reports.conftest import RECORD
from tests.workshops import Workshop

QUERY = "SELECT age, city, income FROM people"
TRAIN = (
    f"{QUERY} TO TRAIN DNNRegressor WITH epochs = 2, hidden_units = [8], members = 2, model.framework = torch "
    "LABEL income"
)
GROW = f"{QUERY} TO TRAIN LGBMRegressor WITH train.num_boost_round = 2 LABEL income"


class Heard(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.tallies: list[Tally] = []
        self.notes: list[str] = []

    def progress(self, event: object) -> None:
        if isinstance(event, Tally):
            self.tallies.append(event)

    def note(self, text: str) -> None:
        self.notes.append(text)


def run(session: Session, text: str) -> list[Result]:
    return list(session.run(text))


@pytest.fixture(
    scope="session", params=["duckdb", *(pytest.param(each, marks=pytest.mark.soak) for each in DIALECTS[1:])]
)
def url(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Of a database with people, and a model `stored` of the column x."""
    url, folder = databases.url(request.param), tmp_path_factory.mktemp("people")
    trained = msgspec.structs.replace(
        SPEC, framework="torch", optimizer=spec.Component("adam", {"learning_rate": 0.01})
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(url, create=True) as session:
            fill(session, "people", tables()["people"])
            session.registry.save("stored", write(folder / "m.zip", spec=trained), RECORD)
    return url


def test_a_model_is_trained_and_predicts_with_workers_as_without(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(workshop.session, "observer", heard)
    fill(workshop.session, "people", tables()["people"])
    train = TRAIN.replace("torch", workshop.framework)
    [alone] = workshop.run(f"{train} INTO alone")
    assert not heard.tallies
    [served] = workshop.run(f"{train.replace('WITH ', 'WITH train.num_workers = 1, ')} INTO served")
    assert heard.tallies
    assert served.figures == alone.figures
    predictions = [
        workshop.rows(f"{QUERY} TO PREDICT USING {model} WITH predict.num_workers = {workers}")
        for model, workers in (("alone", 0), ("served", 2))
    ]
    assert predictions[0].equals(predictions[1])


@pytest.mark.soak
def test_a_model_is_measured_and_explained_with_workers_as_without(workshop: Workshop) -> None:
    fill(workshop.session, "people", tables()["people"])
    workshop.run(f"{TRAIN.replace('torch', workshop.framework)} INTO alone")
    measured = [
        workshop.rows(f"{QUERY} TO EVALUATE alone WITH evaluate.num_workers = {workers}")
        for workers in (0, 2)
    ]
    assert measured[0].equals(measured[1])
    for level in ("model", "rows"):
        settings = f"explain.level = {level}, explain.samples = 3, explain.batch_size = 64"
        explained = [
            workshop.rows(f"{QUERY} TO EXPLAIN alone WITH {settings}, explain.num_workers = {workers}")
            for workers in (0, 2)
        ]
        assert_same(*explained)


def assert_same(one: pa.Table, other: pa.Table) -> None:
    """But for the order in which tasks of several workers are added up."""
    assert one.schema == other.schema
    for column, twin in zip(one.columns, other.columns, strict=True):
        expected = pytest.approx(twin.to_pylist()) if pa.types.is_floating(column.type) else twin.to_pylist()
        assert column.to_pylist() == expected


def workers(session: Session, text: str) -> list[str]:
    """What the plan says of them."""
    [statement] = session.parse(text)
    result = session.plan(statement)
    return [
        row["value"] for row in result.to_arrow().to_pylist() if "workers" in (row["section"], row["name"])
    ]


def test_the_plan_says_how_many_workers_there_are(url: str) -> None:
    predict = "SELECT age AS x FROM people TO PREDICT none.income USING stored"
    with Session(url) as session:
        assert workers(session, f"{TRAIN} INTO n") == []
        assert workers(session, f"{TRAIN.replace('WITH ', 'WITH train.num_workers = 1, ')} INTO n") == ["1"]
        assert workers(session, f"{predict} WITH predict.num_workers = 3") == ["3"]
    with Session(url, workers=4) as session:
        assert workers(session, predict) == ["4"]
        assert workers(session, f"{TRAIN} INTO n") == ["4"]


def sharing(session: Session, settings: str, columns: str = "") -> dict[str, tuple[str, str]]:
    """What the plan says of a training, name: value and why."""
    text = TRAIN.replace("WITH ", f"WITH {settings}, ").replace("LABEL", f"{columns} LABEL")
    [statement] = session.parse(f"{text} INTO n")
    rows = session.plan(statement).to_arrow().to_pylist()
    return {row["name"]: (row["value"], row["why"]) for row in rows if row["section"] == "training"}


@pytest.mark.soak
def test_the_plan_says_how_workers_share_a_training_and_why(url: str) -> None:
    with Session(url) as session:
        found = sharing(session, "num_workers = 3")
        assert found["strategy"][0] == "allreduce"
        assert re.fullmatch(r"each worker holds all parameters, [\d.,]+ \w+", found["strategy"][1])
        assert "parameter servers" not in found
        found = sharing(session, "num_workers = 3, num_ps = 2")
        assert found["strategy"][0] == "async"
        assert re.fullmatch(r"workers share the parameters of [\d.,]+ \w+", found["strategy"][1])
        assert found["parameter servers"] == ("2", WRITTEN)


def test_the_plan_says_whether_tables_fit_each_worker(url: str) -> None:
    with Session(url) as session:
        small = sharing(session, "num_workers = 3", "COLUMN EMBEDDING(CATEGORY_HASH(city, 1000000), 4)")
        assert small["strategy"] == (
            "allreduce",
            "48.0 MB of embedding rows and slots, up to 256.0 MB, fit each worker",
        )
        large = sharing(session, "num_workers = 3", "COLUMN EMBEDDING(CATEGORY_HASH(city, 1000000), 64)")
        assert large["strategy"][0] == "async"
        assert large["strategy"][1].startswith("768.0 MB of embedding rows and slots in tables, beside ")
        assert large["parameter servers"] == ("2", "one for two workers")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("settings", "command", "wanted"),
    [("", None, 0), ("train.priority = HIGH, ", None, 100), ("priority = -7, ", 3, 3)],
)
def test_a_job_has_the_priority_of_its_statement_unless_the_command_says_another(
    url: str, settings: str, command: int | None, wanted: int
) -> None:
    with Session(url, priority=command) as session:
        [statement] = session.parse(f"{TRAIN.replace('WITH ', f'WITH {settings}')} INTO n")
        assert session.compiler.plan(statement).spec.cluster.priority == wanted


@pytest.mark.soak
@pytest.mark.parametrize(("deadline", "workers"), [(0.0, 0), (90.0, 1)])
def test_a_job_with_a_deadline_has_a_master(url: str, deadline: float, workers: int) -> None:
    with Session(url, deadline=deadline) as session:
        [statement] = session.parse(f"{TRAIN} INTO n")
        cluster = session.compiler.plan(statement).spec.cluster
    assert (cluster.deadline, cluster.workers) == (deadline, workers)


@pytest.mark.soak
def test_a_job_that_its_quota_is_too_small_for_does_not_begin(url: str, tmp_path: Path) -> None:
    quota = Quota(tmp_path / "quota")
    quota.resize(1)
    text = f"{TRAIN.replace('WITH ', 'WITH num_workers = 2, num_ps = 1, ')} INTO n"
    with (
        Session(url, quota=quota.folder) as session,
        pytest.raises(ClusterError, match="needs at least 2 slots"),
    ):
        run(session, text)
    assert [job.status().state for job in job_folder.jobs()] == ["failed"]


@pytest.mark.soak
@on_each("url", always=("mysql",))
def test_no_rows_need_no_workers(url: str) -> None:
    with Session(url, workers=2) as session:
        [result] = run(
            session, "SELECT age AS x FROM people WHERE age < 0 TO PREDICT none.income USING stored"
        )
        assert result.rows == 0


@pytest.mark.soak
@on_each("url", always=("mysql",))
def test_a_detached_job_stores_what_it_made_when_it_ends(url: str) -> None:
    with Session(url) as session:
        [statement] = session.parse(f"{TRAIN} INTO left_alone")
        result = session.leave(statement)
    [job] = job_folder.jobs()
    assert job.id in result.message
    outcome = client.attach(job, lambda event: None)
    assert outcome.archive
    wait_until(lambda: job.status().state == "done")
    with Session(url) as session:
        [statement] = session.parse(f"{QUERY} TO PREDICT later.income USING left_alone APPEND")
        assert "and adds its rows to later when it ends" in session.leave(statement).message
    later = job_folder.jobs()[-1]
    client.attach(later, lambda event: None)
    wait_until(lambda: later.status().state == "done")
    with Session(url) as session:
        [statement] = session.parse(f"{QUERY} LIMIT 0 TO PREDICT nobody.income USING left_alone")
        assert "wrote 0 rows to nobody" in session.leave(statement).message  # nothing is left to wait for
        assert job_folder.jobs()[-1].status().state == "done"
        rows = run(session, "SELECT count(*) FROM later")[0].to_arrow()
        assert rows.column(0).equals(run(session, "SELECT count(*) FROM people")[0].to_arrow().column(0))


def test_a_statement_that_stores_nothing_cannot_be_left(url: str) -> None:
    with (
        Session(url) as session,
        pytest.raises(SQLFlowError, match="stores no result, so its job cannot be detached"),
    ):
        session.leave(session.parse("SELECT 1")[0])


@pytest.mark.soak
@on_each("url", always=("duckdb",))
def test_the_command_leaves_its_last_job(url: str) -> None:
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "run", "--source", url, "--detach", "-e"]
    done = subprocess.run([*command, f"{GROW} INTO m"], capture_output=True, text=True, check=True)
    [job] = job_folder.jobs()
    assert f"sqlflow attach {job.id}" in done.stderr
    client.attach(job, lambda event: None)
    wait_until(lambda: job.status().state == "done")
    wait_until(lambda: stores(url, "m"))  # the commit of the job has the database open until then


def stores(url: str, model: str) -> bool:
    """Return True if the model is in the database, and nothing else has that open."""
    try:
        with Session(url) as session:
            return session.registry.has(model)
    except SQLFlowError:
        return False


def test_too_many_workers_are_refused(url: str) -> None:
    with Session(url) as session, pytest.raises((SQLFlowError, ErrorList), match=r"predict\.num_workers"):
        run(session, f"{QUERY} TO PREDICT USING m WITH predict.num_workers = 100000")
