"""`sqlflow run`: n of N, what is skipped and why, dry runs, variables; and Ctrl-C, with real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from edl.jobs import job_folder
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each

DEADLINE = 90.0  # seconds, of what takes one on an idle machine
CHAIN = """\
CREATE TABLE a AS SELECT * FROM nowhere;
CREATE VIEW b AS SELECT * FROM a;
SELECT x FROM {home}.b TO TRAIN DNNRegressor LABEL x INTO m;
SELECT 1 AS x TO PREDICT p.x USING m;
SELECT * FROM p;
SELECT 7 AS seven;
CREATE TABLE p AS SELECT 8 AS eight;
SELECT eight FROM p;
"""
SLOW_QUERY = "SELECT COUNT(*) AS n FROM numbers a, numbers b, numbers c WHERE a.a * b.a + c.a < 0"
SLOW_TRAINING = (
    "SELECT a, b FROM numbers TO TRAIN BoostedTreesRegressor "
    "WITH train.num_boost_round = 1000000, learning_rate = 0.000001 VALIDATE 0 LABEL b INTO never"
)


def chain(url: str) -> str:
    """With the name of the database, or its schema, before a table's."""
    project = re.search(r"curr_project=(\w+)", url)
    homes = {"mysql": url.rpartition("/")[2], "postgresql": "public"}
    return CHAIN.format(home=project[1] if project else homes.get(url.partition(":")[0], "main"))


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [
        line for line in capsys.readouterr().err.splitlines() if " of " in line or line.startswith("Done")
    ]


@pytest.mark.soak
def test_each_statement_is_told_and_the_run_is_tallied(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", url, "-e", "CREATE TABLE t (x INT); SELECT * FROM t"]) == 0
    told = lines(capsys)
    assert told[0] == "1 of 2 START CREATE TABLE t"
    assert told[1].startswith("1 of 2 OK    CREATE TABLE t (")
    assert told[3].startswith("2 of 2 OK    SELECT: 0 rows (")
    assert told[4] == "Done. OK=2 ERROR=0 SKIP=0 TOTAL=2"


def test_an_error_stops_the_run_and_the_rest_is_skipped(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", url, "-e", chain(url)]) == 1
    told = lines(capsys)
    assert told[1].startswith("1 of 8 ERROR CREATE TABLE a (")
    assert told[2] == "2 of 8 SKIP  CREATE VIEW b: statement 1 failed"
    assert told[-1] == "Done. OK=0 ERROR=1 SKIP=7 TOTAL=8"


@pytest.mark.soak
def test_a_run_that_goes_on_skips_what_is_known_to_need_what_is_missing(
    url: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--source", url, "--on-error", "continue", "-e", chain(url)]) == 1
    told = lines(capsys)
    assert [line for line in told if "SKIP " in line] == [
        "2 of 8 SKIP  CREATE VIEW b: the table a is made by statement 1, which failed",
        "3 of 8 SKIP  TRAIN DNNRegressor INTO m: the table b is made by statement 2, which was skipped",
        "4 of 8 SKIP  PREDICT p.x USING m: the model m is made by statement 3, which was skipped",
        "5 of 8 SKIP  SELECT: the table p is made by statement 4, which was skipped",
    ]
    assert told[-1] == "Done. OK=3 ERROR=1 SKIP=4 TOTAL=8"


@pytest.mark.soak
def test_an_error_names_the_file_and_line_of_its_statement(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.sql").write_text(f"SELECT 1;\nSELECT {name} FROM {name}", encoding="utf-8")
    files = [str(tmp_path / "a.sql"), str(tmp_path / "b.sql")]
    assert main(["run", "--source", url, "--on-error", "continue", *files]) == 1
    shown = capsys.readouterr().err
    assert f"{files[0]}:2:15" in shown
    assert f"{files[1]}:2:15" in shown


@pytest.mark.soak
def test_files_run_before_the_texts_of_the_command_line(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t AS SELECT 5 AS x", encoding="utf-8")
    arguments = [
        "run",
        "--source",
        url,
        "--format",
        "csv",
        "-e",
        "SELECT x FROM t",
        str(tmp_path / "a.sql"),
    ]
    assert main(arguments) == 0
    assert capsys.readouterr().out == "x\n5\n"


def test_a_dry_run_plans_everything_and_does_nothing(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    double = "DOUBLE PRECISION" if url.startswith("postgresql") else "DOUBLE"
    made = f"CREATE TABLE t AS SELECT CAST(1.5 AS {double}) AS y UNION ALL SELECT 2.5"
    assert main(["run", "--source", url, "-e", made]) == 0
    capsys.readouterr()
    program = """
        DROP TABLE t; CREATE TABLE u AS SELECT * FROM t; SELECT * FROM u; SELECT y AS z FROM t;
        SELECT y AS a, 2 * y AS b FROM t TO TRAIN LinearRegressor VALIDATE 0 LABEL b INTO m;
        SELECT 1 AS a TO PREDICT USING m; SHOW MODELS"""
    assert main(["run", "--source", url, "--dry-run", "--format", "json", "-e", program]) == 0
    captured = capsys.readouterr()
    assert "3 of 7 SKIP  SELECT: the table u is made by statement 2, which has not run" in captured.err
    assert (
        "6 of 7 SKIP  PREDICT USING m: the model m is made by statement 5, which has not run" in captured.err
    )
    assert "Done. OK=5 ERROR=0 SKIP=2 TOTAL=7" in captured.err
    plans = [json.loads(part + "]") for part in captured.out.split("]\n")[:-1]]
    assert [plan[0]["name"] for plan in plans] == [
        "DROP TABLE t",
        "CREATE TABLE u",
        "SELECT",
        "LinearRegressor",
        "SHOW MODELS",
    ]
    assert plans[2][1] == {"section": "column", "name": "z", "value": "double", "why": ""}
    with Session(url) as session:
        assert session.source.tables() == ["t"]
        [rows] = session.run("SELECT y FROM t")
        assert sorted(rows.to_arrow()["y"].to_pylist()) == [1.5, 2.5]
    assert job_folder.jobs() == []


def test_a_dry_run_finds_every_error(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = "SELECT nothing; SELECT 1 AS x TO TRAIN DNNRegresor LABEL x INTO m; DROP MODEL n"
    assert main(["run", "--source", url, "--dry-run", "-e", program]) == 1
    shown = capsys.readouterr().err
    assert "Done. OK=0 ERROR=3 SKIP=0 TOTAL=3" in shown
    assert "did you mean DNNRegressor?" in shown


def test_a_dry_run_makes_no_database(tmp_path: Path) -> None:
    file = tmp_path / "new.duckdb"
    assert main(["run", "--source", f"duckdb:///{file}", "--create", "--dry-run", "-e", "SELECT 1"]) == 1
    assert not file.exists()


def test_rows_go_to_a_file_in_the_format_that_its_name_says(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.jsonl"
    program = ["run", "--source", url, "-o", str(file), "-e"]
    assert main([*program, "SELECT 1 AS x; SELECT 2 AS y"]) == 0
    assert [json.loads(line) for line in file.read_text().splitlines()] == [{"x": 1}, {"y": 2}]
    assert main([*program, "SELECT 3 AS x; SELECT x FROM nowhere"]) == 1
    found = capsys.readouterr()
    assert f"{file} is not written: a statement failed" in found.err
    assert not found.out
    assert "3" not in file.read_text()
    assert main([*program, "SELECT nothing; SELECT 5 AS x", "--on-error", "continue"]) == 1
    assert json.loads(file.read_text()) == {"x": 5}
    assert main([*program, "SELECT 4 AS x", "--format", "csv"]) == 0
    assert file.read_text() == "x\n4\n"
    assert main([*program, "CREATE TABLE none AS SELECT 1 AS x"]) == 0
    assert "no statement returned rows" in capsys.readouterr().err
    assert file.read_text() == "x\n4\n"
    assert main([*program, "SELECT 4 AS x; SELECT 5 AS x", "--format", "csv"]) == 0
    assert "several result sets" in capsys.readouterr().err


def test_a_file_without_a_known_format_is_not_written(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.arrow"
    assert main(["run", "--source", url, "-o", str(file), "-e", "SELECT 1 AS x"]) == 2
    assert "give --format, or a name that ends in .csv, .tsv" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.soak
def test_what_cannot_be_written_fails_its_statement(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    program = ["run", "--source", url, "--format", "csv", "-o"]
    assert main([*program, "/dev/full", "-e", "SELECT 1 AS x; SELECT 2 AS x"]) == 1
    assert "cannot write /dev/full: No space left" in capfd.readouterr().err
    for stdout in ("-", "/dev/stdout"):
        assert main([*program, stdout, "-e", "SELECT 1 AS x"]) == 0
        assert capfd.readouterr().out == "x\n1\n"


def test_variables_fill_the_programs(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.sql").write_text("SELECT {{ n }} AS n,\n'{{ text }}' AS t", encoding="utf-8")
    arguments = ["run", "--source", url, "--format", "csv", str(tmp_path / "a.sql")]
    assert main([*arguments, "--var", "n=3", "--var", "text=a=b"]) == 0
    assert capsys.readouterr().out == "n,t\n3,a=b\n"
    assert main([*arguments, "--var", "n=3", "--var", "txt=b"]) == 1
    shown = capsys.readouterr().err
    assert f"{tmp_path / 'a.sql'}:2:5" in shown
    assert "did you mean txt?" in shown


def test_without_variables_braces_are_text(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", url, "--format", "csv", "-e", "SELECT '{{ x }} {% y' AS b"]) == 0
    assert capsys.readouterr().out == "b\n{{ x }} {% y\n"


def test_a_wrong_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--var", "x"], ["--on-error", "ignore"]):
        with pytest.raises(SystemExit) as raised:
            main(["run", "--source", "duckdb:", "-e", "SELECT 1", *wrong])
        assert raised.value.code == 2


# Ctrl-C -----------------------------------------------------------------------------------------------------


@contextmanager
def running(source: str, program: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`sqlflow run` in a process of its own; what still runs at the deadline is killed."""
    command = [
        sys.executable,
        "-m",
        "sqlflow_edl.cli.main",
        "run",
        *options,
        "--source",
        source,
        "-e",
        program,
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    timer = threading.Timer(DEADLINE, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def until(process: subprocess.Popen[str], words: str) -> str:
    """Read standard error up to the line with these words."""
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"{words!r} was not said by the process, which ended with {process.wait()}: {seen}")


@pytest.fixture
def numbers(url: str) -> str:
    """The URL of a database with a table to count in and to train on, for a long time."""
    with Session(url) as session:
        fill(session, "numbers", pa.table({"a": range(4000), "b": [2.0 * i for i in range(4000)]}))
    return url


@pytest.mark.parametrize("signals", [1, pytest.param(2, marks=pytest.mark.soak)])
@on_each("url", always=("mysql",))
def test_an_interrupt_cancels_a_training_and_leaves_nothing_but_its_log(numbers: str, signals: int) -> None:
    with running(numbers, f"{SLOW_TRAINING}; SELECT 1") as process:
        until(process, "epoch 1:")
        [job] = job_folder.jobs()
        for _ in range(signals):
            os.kill(process.pid, signal.SIGINT)
        shown = until(process, "interrupted")
        assert process.wait(DEADLINE) == 130
    assert "1 of 2 CANCEL TRAIN BoostedTreesRegressor INTO never" in shown
    assert "Traceback" not in shown
    assert job.status().state == "cancelled"
    assert {path.name for path in job.path.rglob("*") if path.is_file()} == {"status.json", "worker-0.log"}
    with Session(numbers) as session:
        assert session.source.tables() == ["numbers"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "program",
    [SLOW_QUERY, pytest.param(f"CREATE TABLE x AS {SLOW_QUERY}", marks=pytest.mark.soak)],
    ids=["select", "create"],
)
@on_each("url", always=("duckdb",))
def test_an_interrupt_stops_a_query_of_the_database(numbers: str, program: str) -> None:
    with running(numbers, program) as process:
        until(process, "START")
        os.kill(process.pid, signal.SIGINT)
        until(process, "interrupted")
        assert process.wait(DEADLINE) == 130


@pytest.mark.soak
@on_each("url", always=("duckdb",))
def test_an_interrupt_while_the_rows_are_fixed_ends_the_training_process_too(numbers: str) -> None:
    query = f"SELECT a.n AS a, 1.0 AS b FROM ({SLOW_QUERY}) AS a"
    with running(numbers, f"{query} TO TRAIN BoostedTreesRegressor LABEL b INTO never") as process:
        until(process, "START")
        os.kill(process.pid, signal.SIGINT)
        until(process, "interrupted")
        assert process.wait(DEADLINE) == 130


def test_rows_for_a_full_disk_are_an_error_of_their_statement(capsys: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert main(["run", "--source", "duckdb:", "-e", "SELECT 1 AS a"]) == 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    assert "error: cannot write standard output: No space left on device" in capsys.readouterr().err


def test_a_file_in_the_query_is_source_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("sales.csv").write_text("price;sold\n1,5;3\n2,5;4\n", encoding="utf-8")
    assert main(["run", "-e", "SELECT sum(price) AS total FROM 'sales.csv' -- of 'all.csv'"]) == 0
    assert "4.0" in capsys.readouterr().out
    assert main(["run", "-e", "SELECT 1 AS x"]) == exit_codes.USAGE
    assert "no data source" in capsys.readouterr().err
    assert main(["run", "sales.csv"]) == exit_codes.FAILED
    assert "sales.csv is a file of rows, not of statements" in capsys.readouterr().err
