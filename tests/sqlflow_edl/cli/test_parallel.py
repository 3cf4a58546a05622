"""`sqlflow run --parallel` and `--select`."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from edl.jobs import job_folder
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import on_each
from tests.sqlflow_edl.cli.test_run import DEADLINE, lines, numbers, running, until

__all__ = ["numbers"]  # fixture

SLOW = "SELECT SUM(SQRT(a.a * b.a + c.a + d.a)) AS n FROM numbers a, numbers b, numbers c, numbers d"
SLOW_TRAINING = (  # of what loads sooner than a framework of networks
    "SELECT a, b FROM numbers TO TRAIN BoostedTreesRegressor "
    "WITH train.num_boost_round = 1000000, learning_rate = 0.000001 VALIDATE 0 LABEL b INTO never"
)
PROGRAM = """
CREATE TABLE a AS SELECT 1 AS x, 1 AS y UNION ALL SELECT 2, 4;
CREATE TABLE b AS SELECT 2 AS x;
CREATE TABLE c AS SELECT * FROM nowhere;
SELECT SUM(x) AS n FROM a;
SELECT * FROM c;
SELECT a.x AS both_have FROM a, b WHERE a.x = b.x;
SELECT * FROM a TO TRAIN LinearRegressor LABEL y INTO m;
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "program.sql"
    path.write_text(PROGRAM)
    return str(path)


def test_independent_statements_run_at_the_same_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipes = [tmp_path / "a", tmp_path / "b"]
    for pipe in pipes:
        os.mkfifo(pipe)
    together = []

    def feed() -> None:
        """Write the second pipe once it is read, and only then the first, which the first statement waits for."""
        second = threading.Thread(target=pipes[1].write_text, args=("2\n",), daemon=True)
        second.start()
        second.join(DEADLINE)
        together.append(not second.is_alive())
        pipes[0].write_text("1\n")

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    options = "columns = {'x': 'INT'}, header = false, auto_detect = false"
    program = ";".join(f"SELECT * FROM read_csv('{pipe}', {options})" for pipe in pipes)
    source = f"duckdb:///{tmp_path}/a.duckdb"
    assert main(["--source", source, "--create", "--format", "csv", "--parallel", "2", "-e", program]) == 0
    feeder.join()
    assert together == [True]
    assert capsys.readouterr().out == "x\n1\nx\n2\n"


@pytest.mark.soak
@on_each("url", always=("duckdb", "mysql"))
def test_a_failure_skips_what_depends_on_it_and_rows_keep_the_order_of_the_program(
    url: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--source", url, "--parallel", "3", "--select", "4,5,6", file]
    assert main([*arguments, "--format", "csv"]) == 1
    told = capsys.readouterr()
    assert told.out.split() == ["n", "3", "both_have", "2"]
    assert "5 of 7 SKIP  SELECT: the table c is made by statement 3, which failed" in told.err
    assert "Done. OK=4 ERROR=1 SKIP=1 TOTAL=6" in told.err


@pytest.mark.soak
def test_side_by_side_objects_come_in_the_order_of_the_program(
    tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f"duckdb:///{tmp_path}/a.duckdb"
    arguments = ["--source", source, "--create", "--json", "--parallel", "4", "--select", "4,5,6"]
    assert main([*arguments, "-f", file]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["statement"] for each in found] == [1, 2, 3, 4, 5, 6]
    assert [each["outcome"] for each in found] == ["ok", "ok", "error", "ok", "skipped", "ok"]


@pytest.mark.parametrize(
    ("source", "program", "why"),
    [
        ("duckdb:", "SELECT 1 AS x; SELECT 2 AS x", "a database in memory"),
        (
            "duckdb:///{}/a.duckdb",
            "SET threads = 1; SELECT 1 AS x; SELECT 2 AS x",
            "statement 1 (SET) changes",
        ),
    ],
)
def test_statements_that_share_a_connection_run_one_after_another(
    source: str, program: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--source", source.format(tmp_path), "--create", "--parallel", "2", "--format", "csv"]
    assert main([*arguments, "-e", program]) == 0
    told = capsys.readouterr()
    assert f"the statements run one after another: {why}" in told.err
    assert told.out == "x\n1\nx\n2\n"


@pytest.mark.soak
@pytest.mark.parametrize("url", ["duckdb", pytest.param("mysql", marks=pytest.mark.soak)], indirect=True)
def test_an_interrupt_cancels_all_that_runs(numbers: str) -> None:
    with running(numbers, f"{SLOW_TRAINING}; {SLOW}; SELECT 1", "--parallel", "2") as process:
        until(process, "1 of 3 epoch 1:")
        os.kill(process.pid, signal.SIGINT)
        shown = until(process, "interrupted")
        assert process.wait(DEADLINE) == 130
    assert "1 of 3 CANCEL TRAIN" in shown
    assert "2 of 3 CANCEL SELECT" in shown
    assert "Traceback" not in shown
    assert [job.status().state for job in job_folder.jobs()] == ["cancelled"]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("chosen", "numbers_of_run"),
    [(["b"], [2]), (["4"], [1, 4]), (["main.a,B"], [1, 2]), (["6", "4"], [1, 2, 4, 6])],
)
def test_a_selection_runs_with_what_it_needs(
    chosen: list[str], numbers_of_run: list[int], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Path(file).read_text().replace("TABLE a", "TABLE main.a")
    selection = [part for each in chosen for part in ("--select", each)]
    assert main(["--source", "duckdb:", *selection, "-e", program]) == 0
    assert [int(line.split()[0]) for line in lines(capsys) if " START " in line] == numbers_of_run


def test_a_model_is_selected_by_its_name(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", "duckdb:", "--dry-run", "--select", "m", file]) == 0
    assert [int(line.split()[0]) for line in lines(capsys)[:-1]] == [1, 7]


def test_a_selection_that_is_not_there_is_an_error_with_what_is(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, hint in (
        ("9", "the program has 7"),
        ("mm", "did you mean m?"),
        ("zzzz", "known: a, b, c, m"),
        ("0", "the program has 7"),
    ):
        assert main(["run", "--source", "duckdb:", "--select", name, file]) == 1
        assert hint in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "--source", "duckdb:", "--parallel", "0", file])
    assert main(["run", "--source", "duckdb:", "--parallel", "2", "--detach", file]) == 2


@pytest.mark.soak
@on_each("url", always=())
def test_trainings_side_by_side_store_their_models(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    train = "SELECT * FROM a TO TRAIN LinearRegressor WITH model.framework = torch, epochs = 2 LABEL y INTO"
    program = f"{PROGRAM.splitlines()[1]} {train} m; {train} n; SHOW MODELS"
    assert main(["run", "--source", url, "--parallel", "2", "-e", program]) == 0
    with Session(url) as session:
        assert {each.name for each in session.registry.list()} == {"m", "n"}
