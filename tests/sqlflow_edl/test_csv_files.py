"""CSV files as people have them, through the command: opened at once, and what was found is said."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main

READY = (
    "import sys; from sqlflow_edl.cli.main import main; import edl.sources.files; print('ready', flush=True)"
)
COUNT = f"{READY}; sys.exit(main(['run', '-e', 'SELECT count(*) FROM rows', '--source', sys.argv[1]]))"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def shown(
    source: str, capsys: pytest.CaptureFixture[str], sql: str = "SELECT * FROM rows"
) -> tuple[str, str]:
    """Return rows as CSV, and messages."""
    main(["run", "--format", "csv", "--source", source, "-e", sql])
    out, err = capsys.readouterr()
    return out, err


def wide(path: Path, columns: int, rows: int) -> Path:
    line = ",".join(["0.5"] * columns) + "\n"
    path.write_text(",".join(f"f{number}" for number in range(columns)) + "\n" + line * rows)
    return path


@pytest.mark.soak
def test_two_thousand_columns_are_opened_and_counted_in_a_few_seconds(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = wide(folder / "wide.csv", 2000, 400)
    began = time.process_time()
    assert shown(str(source), capsys, "SELECT count(*) AS n FROM rows")[0] == "n\n400\n"
    assert time.process_time() - began < 6  # 1.5 on an idle machine, where it took ten minutes


@pytest.mark.soak
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, exit_codes.INTERRUPTED, "interrupted\n"),
        (signal.SIGTERM, exit_codes.TERMINATED, "terminated\n"),
    ],
)
def test_a_signal_ends_the_opening_of_a_file_at_once(
    folder: Path, number: signal.Signals, code: int, said: str
) -> None:
    source = wide(folder / "wide.csv", 1000, 20_000)
    command = [sys.executable, "-c", COUNT, str(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as opening:
        assert opening.stdout is not None
        assert opening.stdout.readline() == "ready\n"
        while not (folder / "wide.sqlflow.duckdb").exists():
            assert opening.poll() is None
        opening.send_signal(number)
        sent = time.monotonic()
        _, err = opening.communicate(timeout=60)
    assert (opening.returncode, err) == (code, said)
    assert time.monotonic() - sent < 10
    assert [path.name for path in folder.glob("wide*")] == ["wide.csv"]


def test_a_file_with_the_index_of_pandas_keeps_its_types(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "indexed.csv").write_text(",g,y\n0,a,1.5\n1,b,2.5\n2,a,1.5\n3,b,2.5\n")
    out, err = shown("indexed.csv", capsys, "SELECT * FROM rows WHERE y > 2")
    assert out == "column0,g,y\n1,b,2.5\n3,b,2.5\n"
    assert "note: indexed.csv is read with the name column0 where the first line has none" in err


def test_options_follow_a_bare_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two.csv").write_text("x;y\n1;2\n")
    assert shown("two.csv?delim=;", capsys)[0] == shown("two.csv", capsys)[0] == "x,y\n1,2\n"
    (folder / "na.csv").write_text("x,y\nNA,1\n?,2\n3,4\n")
    for source in ("na.csv?nullstr=NA&nullstr=%3F", "csv:///na.csv?nullstr=NA&nullstr=%3F"):
        assert "x,BIGINT" in shown(source, capsys, "DESCRIBE SELECT * FROM rows")[0]


def test_a_compressed_file_is_no_question_of_its_encoding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pa.output_stream(folder / "two.csv.zst", compression="zstd") as packed:
        packed.write(b"x;y\n1;2\n")
    assert shown("csv:///two.csv.zst", capsys)[0] == shown("two.csv.zst", capsys)[0] == "x,y\n1,2\n"


def test_blanks_and_comments_around_the_names_are_no_part_of_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "spaced.csv").write_text("# exported\nx, y\n1,2\n2,3\n3,4\n")
    out, err = shown("spaced.csv", capsys, "SELECT y FROM rows")
    assert out == "y\n2\n3\n4\n"
    assert "spaced.csv is read from line 2, without the blanks around the name y" in err


def test_the_advice_for_a_file_that_is_not_told_can_be_copied(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "years of it.csv").write_text("country,2019,2020\nDE,1,2\n")
    _, err = shown("years of it.csv", capsys)
    names, values = (url for url in shlex.split(re.sub(r"[,\n]", " ", err)) if url.startswith("csv:"))
    assert shown(values, capsys)[0] == "country,2019,2020\nDE,1,2\n"
    assert shown(names, capsys)[0].startswith("column0,column1,column2\ncountry,2019,2020\n")


EUROPEAN = "customer;spend;since;zip\nC-1;12,50;26.12.2024;01234\nC-2;7;01.02.2023;98765\n"


def test_a_european_export_is_read_as_it_is_meant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "customers.csv").write_bytes(EUROPEAN.replace("C-1", "Müller €").encode("cp1252"))
    out, err = shown("customers.csv", capsys)
    assert out == "customer,spend,since,zip\nMüller €,12.5,2024-12-26,01234\nC-2,7.0,2023-02-01,98765\n"
    assert (
        "customers.csv is read with a semicolon as the separator, as cp1252; with spend as a decimal comma; "
        in err
    )
    assert (
        "with since as day.month.year (as ?delim=%3B&encoding=cp1252&decimal=%2C&dates=day-first states)"
        in err
    )


def test_how_a_file_is_read_is_said_once_and_not_before_an_error_of_syntax(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "customers.csv").write_text(EUROPEAN)
    for program, notes in (
        ("SELEC 1", 0),
        ("SELECT * FORM rows", 0),
        ("SELECT 1; SELEC 2", 0),
        ("SHOW MODELS", 0),
        ("SELECT nosuch FROM rows", 1),
        ("SELECT 1; SELECT * FROM rows; SELECT zip FROM rows", 1),
    ):
        main(["run", "--source", "customers.csv", "-e", program])
        assert capsys.readouterr().err.count("note: customers.csv is read with") == notes, program


def test_show_tables_lists_a_file_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "two.csv").write_text("x,y\n1,2\n")
    assert shown("two.csv", capsys, "show tables")[0] == "name\ntwo\n"


TRAINED = (
    "SELECT code, day, x, y FROM rows TO TRAIN LGBMRegressor WITH train.num_boost_round = 2 LABEL y INTO m"
)


@pytest.mark.soak
def test_a_model_reads_later_files_as_its_training_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{number % 5},{number % 28 + 1:02}/02/2024,{number},{number}\n" for number in range(60))
    (folder / "part-1.csv").write_text("code,day,x,y\n" + rows)
    run = ["--source", "part-1.csv", "--model-store", "models"]
    assert main(["run", *run, "-e", TRAINED]) == 0
    (folder / "later.csv").write_text("code,day,x\n1,03/02/2024,1\n")
    later = ["run", "--format", "csv", "--source", "later.csv", "--model-store", "models"]
    capsys.readouterr()
    assert main([*later, "-e", "SELECT * FROM rows TO PREDICT USING m"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1,2024-02-03,1,")
    (folder / "later.csv").write_text("code,day,x\n1,03/02/2024,1\nA7,03/02/2024,1\n")
    assert main([*later, "-e", "SELECT * FROM rows TO PREDICT USING m"]) == 1
    assert "column code has the value 'A7' in row 2 of" in capsys.readouterr().err
    (folder / "part-1.csv").write_text("code,day,x,y\n" + rows.replace("/02/2024", ".02.2024"))
    assert main(["retrain", "m", *run]) == 1
    assert "column day has the value '01.02.2024' in row 1 of" in capsys.readouterr().err
    (folder / "part-1.csv").write_text("code,day,x,y\n" + "1,03/02/2024,1,1\n1,03/02/2024,2,2\n" * 20)
    assert main(["retrain", "m", *run]) == 0
