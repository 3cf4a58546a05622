"""The file of a data source is free for other processes while a model is trained. These are real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from edl.data.source import LockedError
from edl.errors import SourceError, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.events import StatementEvent
from sqlflow_edl.cli.main import main
from sqlflow_edl.session import file_release
from sqlflow_edl.session.file_release import FileRelease
from sqlflow_edl.session.observer import Silent
from sqlflow_edl.session.session import Session
from tests.sessions import open_session

TRAIN = "SELECT a, b, y FROM t TO TRAIN BoostedTreesRegressor WITH train.epoch = 3 LABEL y INTO m"
_WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute(sys.argv[2])"
_HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i / 40 AS a, i % 7 AS b, i * 2.5 AS y FROM range(40) r(i)"
        )
    return path


def write(path: Path, sql: str) -> None:
    """Run a statement in another process."""
    ran = subprocess.run(
        [sys.executable, "-c", _WRITE, path, sql], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


class Holder:
    """Another process with the database open."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def open(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "open\n"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None


@pytest.fixture
def holder() -> Iterator[Holder]:
    process = Holder()
    yield process
    process.close()


class Meanwhile(Silent):
    """Observer that does something when the training has begun, and something else at a note that has a text."""

    def __init__(
        self, act: Callable[[], object], at_note: str = "waiting", react: Callable[[], object] = bool
    ) -> None:
        self._act: Callable[[], object] | None = act
        self._at_note, self._react = at_note, react
        self.notes: list[str] = []

    def progress(self, event: StatementEvent) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()

    def note(self, text: str) -> None:
        self.notes.append(text)
        if self._at_note in text:
            self._react()


def test_another_process_writes_during_the_training_and_the_model_is_of_the_rows_before(
    database: Path,
) -> None:
    with Session(f"duckdb:///{database}") as session:
        [expected] = session.run(TRAIN)
    meanwhile = Meanwhile(lambda: write(database, "UPDATE t SET y = -1; INSERT INTO t VALUES (1, 2, 3)"))
    with Session(f"duckdb:///{database}", observer=meanwhile) as session:
        [result] = session.run(TRAIN)
        assert (result.model, result.figures) == ("m@2", expected.figures)
        [described] = session.run("SELECT count(*) AS n, max(y) AS y FROM t")
        assert described.to_arrow().to_pylist() == [{"n": 41, "y": 3.0}]
        [measured] = session.run("SELECT a, b, y FROM t TO EVALUATE m")
        assert measured.to_arrow().num_rows > 0


def test_a_file_that_another_process_has_open_at_the_end_is_waited_for(
    database: Path, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_release, "QUIET_SECS", 0.0)
    pids: list[int] = []

    def hold() -> None:
        holder.open(database)
        pids.append(holder.pid)

    meanwhile = Meanwhile(hold, react=holder.close)
    with Session(f"duckdb:///{database}", observer=meanwhile) as session:
        [result] = session.run(TRAIN)
        assert result.model == "m@1"
    [told] = [note for note in meanwhile.notes if "waiting" in note]
    assert told.startswith("waiting for the database: ")
    assert told.endswith(f"(PID {pids[0]}) has {database} open")


def test_a_model_whose_file_stays_open_elsewhere_is_stored_by_the_next_session(
    database: Path, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_release, "PATIENCE", 0.0)
    with Session(f"duckdb:///{database}", observer=Meanwhile(lambda: holder.open(database))) as session:
        with pytest.raises(LockedError, match=r"PID \d+\) has .* open") as caught:
            list(session.run(TRAIN))
        [job] = job_folder.jobs()
        assert job.status().state == "finished"
        assert f"the model of job {job.id} is kept" in str(caught.value.hint)
    holder.close()
    heard = Meanwhile(bool)
    with open_session(f"duckdb:///{database}", observer=heard) as session:
        assert heard.notes == [f"job {job.id} had finished: stored the model m@1"]
        [models] = session.run("SHOW MODELS")
        assert models.to_arrow().num_rows == 1
    assert job.status().state == "done"


@pytest.mark.soak
def test_a_model_that_was_not_stored_is_stored_by_resume_from_another_folder(
    database: Path,
    holder: Holder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(file_release, "PATIENCE", 0.0)
    monkeypatch.chdir(database.parent)
    with (
        Session("shop.duckdb", observer=Meanwhile(lambda: holder.open(database))) as session,
        pytest.raises(LockedError),
    ):
        list(session.run(TRAIN))
    holder.close()
    [job] = job_folder.jobs()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    with Session("shop.duckdb", create=True):  # another database of that name
        assert job.status().state == "finished"
    assert main(["resume", job.id]) == 0
    assert "stored the model m@1" in capsys.readouterr().err
    with Session(f"duckdb:///{database}") as session:
        [models] = session.run("SHOW MODELS")
        assert models.to_arrow().num_rows == 1


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMP TABLE x AS SELECT 1 AS a",
        "SET threads = 2",
        "ATTACH ':memory:' AS other",
        "BEGIN",
    ],
)
def test_a_state_of_the_session_keeps_the_file(statement: str, database: Path, tmp_path: Path) -> None:
    refused: list[str] = []

    def try_to_write() -> None:
        with pytest.raises(AssertionError) as caught:
            write(database, "INSERT INTO t VALUES (1, 2, 3)")
        refused.append(str(caught.value))

    url, store = f"duckdb:///{database}", str(tmp_path / "store")  # a model in the file ends a transaction
    with Session(url, observer=Meanwhile(try_to_write), model_store=store) as session:
        list(session.run(statement))
        [result] = session.run(TRAIN)
        assert result.model == "m@1"
    [message] = refused
    assert "Could not set lock" in message


@pytest.mark.soak
def test_a_model_of_another_store_does_not_wait_for_the_file_but_the_next_statement_does(
    database: Path, holder: Holder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(file_release, "QUIET_SECS", 0.0)
    meanwhile = Meanwhile(lambda: holder.open(database), react=holder.close)
    url, store = f"duckdb:///{database}", str(tmp_path / "store")
    with Session(url, observer=meanwhile, model_store=store) as session:
        [result] = session.run(TRAIN)
        assert (result.model, [note for note in meanwhile.notes if "waiting" in note]) == ("m@1", [])
        [counted] = session.run("SELECT count(*) AS n FROM t")
        assert counted.to_arrow().to_pylist() == [{"n": 40}]
        assert len([note for note in meanwhile.notes if "waiting" in note]) == 1


@pytest.mark.soak
def test_a_failed_training_says_why_when_its_file_is_open_elsewhere(database: Path, holder: Holder) -> None:
    meanwhile = Meanwhile(lambda: holder.open(database))
    diverges = (
        "SELECT a, b, y FROM t TO TRAIN DNNRegressor WITH optimizer = sgd, learning_rate = 1e4, epochs = 200, "
        "model.framework = torch LABEL y INTO m"
    )
    with (
        Session(f"duckdb:///{database}", observer=meanwhile) as session,
        pytest.raises(SQLFlowError) as caught,
    ):
        list(session.run(diverges))
    assert "learning rate" in (caught.value.hint or "")
    assert meanwhile.notes[-1].startswith("SHOW MODELS will not list this failed version of m: ")
    holder.close()


class Stubborn:
    """Source with a file that is open elsewhere for a number of attempts."""

    def __init__(self, attempts: int) -> None:
        self._left = attempts

    def release(self) -> None: ...

    def reopen(self) -> None:
        if self._left:
            self._left -= 1
            raise LockedError("python (PID 7) has shop.duckdb open")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_the_wait_is_told_after_some_seconds_and_every_minute() -> None:
    clock, told = Clock(), []

    class Timed(Silent):
        def note(self, text: str) -> None:
            told.append((int(clock.now), text))

    file = FileRelease(Stubborn(200), clock=clock, pause=clock.pause)  # type: ignore[arg-type]
    file.release()
    file.reopen(Timed())
    text = "waiting for the database: python (PID 7) has shop.duckdb open"
    assert told == [(5, text), (65, text), (125, text), (185, text)]
    file.reopen(Timed())
    assert len(told) == 4


def test_the_wait_ends_after_its_limit_and_may_begin_again() -> None:
    clock = Clock()
    file = FileRelease(Stubborn(10**6), clock=clock, pause=clock.pause)  # type: ignore[arg-type]
    file.reopen(Silent())  # it was not released
    file.release()
    for _ in range(2):
        began = clock.now
        with pytest.raises(LockedError):
            file.reopen(Silent())
        assert (
            file_release.PATIENCE <= clock.now - began <= file_release.PATIENCE + file_release.LONGEST_PAUSE
        )


def test_a_file_that_is_gone_is_an_error_at_once(database: Path) -> None:
    with (
        Session(f"duckdb:///{database}", observer=Meanwhile(database.unlink)) as session,
        pytest.raises(SourceError, match="there is no database file"),
    ):
        list(session.run(TRAIN))
    [job] = job_folder.jobs()
    assert job.status().state == "failed"
    assert job.archive.exists()
