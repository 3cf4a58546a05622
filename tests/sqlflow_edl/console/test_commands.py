"""The commands of the console."""

from __future__ import annotations

import io
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from edl.jobs import job_folder
from sqlflow_edl.console.commands import LISTED
from sqlflow_edl.session.session import Session
from tests.sqlflow_edl.console.conftest import Console, Typed


@pytest.fixture
def typed(typed: Typed) -> Typed:
    """Commands come from the clipboard: a key takes milliseconds, and tests of the prompt press each."""

    def pasted(*keys: str, **options: Any) -> Console:
        texts = [re.sub(r"[^\x00-\x1f]+", "\x1b[200~\\g<0>\x1b[201~", text) for text in (*keys, "/quit\r")]
        return typed(*texts, end="", **options)

    return pasted


def test_every_command_is_listed(typed: Typed) -> None:
    shown = typed("/help\r").data
    assert all(f"/{name}" in shown for name in LISTED)


@pytest.mark.soak
def test_a_command_is_a_topic_too(typed: Typed) -> None:
    words = typed("/help /d\r", "/help \\dd\r").words
    assert "TABLE: the columns of a table" in words
    assert "there is no command /dd" in words


def test_an_unknown_command_names_the_nearest(typed: Typed) -> None:
    words = typed("/modles\r").words
    assert "there is no command /modles" in words
    assert "did you mean /models?" in words


def test_tables_and_their_columns_are_shown(typed: Typed) -> None:
    console = typed("/dt\r", "\\d flowers\r", "/d flower\r")
    columns = ["column", "type", "size", "BIGINT", "colour", "VARCHAR"]
    assert console.data.split() == ["table", "flowers", *columns]
    assert "did you mean flowers?" in console.words


def test_databases_are_shown(typed: Typed) -> None:
    assert typed("/l\r").data.split() == ["database", "flowers"]


def test_models_are_statements_in_short(typed: Typed) -> None:
    words = typed("/models p%\r", "/model nothing\r").words
    assert "0 versions" in words
    assert "there is no model nothing" in words


def test_jobs_are_listed_and_shown(typed: Typed) -> None:
    job = job_folder.create("train", "SELECT 1 TO TRAIN DNN LABEL x INTO m")
    job.end("failed", "no rows")
    assert job.id in typed("/jobs\r").data
    assert "no rows" in typed(f"/job {job.id}\r").data
    cancel = f"/job {job.id} cancel\r"
    words = typed(cancel, "n\r", cancel, "y\r", f"/job {job.id} resume\r", f"/job {job.id} lgo\r").words
    assert words.count("not cancelled") == 1
    assert words.count("does not run: its state is failed") == 1
    assert "cannot be resumed: it ran in one process" in words
    assert "/job ID log [INSTANCE]" in words


def test_what_a_job_has_printed_is_shown(typed: Typed) -> None:
    job = job_folder.create("train")
    for name in ("master", "worker-0"):
        (job.logs / f"{name}.log").write_text(f"here is {name}\n")
    log = f"/job {job.id} log"
    console = typed(f"{log}\r", f"{log} worker-0\r", f"{log} worker-1\r")
    assert console.data.splitlines() == [
        "master   | here is master",
        "worker-0 | here is worker-0",
        "here is worker-0",
    ]
    assert "did you mean worker-0?" in console.words


def test_an_estimator_tells_its_attributes(typed: Typed) -> None:
    assert "DeepFMClassifier" in typed("/estimators\r").data
    console = typed("/estimators dnnclassifier\r", "/estimators DNNRegresor\r")
    assert "model.hidden_units" in console.data
    assert "did you mean DNNRegressor?" in console.words


@pytest.mark.variants(2)
@pytest.mark.parametrize("topic", ["train", "COLUMN", "with", "show models", "model", "validate"])
def test_there_is_help_on_the_language(typed: Typed, topic: str) -> None:
    console = typed(f"/help {topic}\r")
    assert len(console.data.splitlines()) > 1
    assert "error" not in console.words


def test_a_file_is_run_and_its_errors_name_it(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SELECT 1 AS one;\nSELECT 2 AS two FROM nowhere;\nSELECT 3 AS three")
    console = typed(f"/source {file}\r", f"/source {file}x\r")
    assert console.data.split() == ["one", "1"]
    assert f"{file}:2:22" in console.words
    assert "cannot read" in console.words


def test_the_editor_begins_with_the_last_statement_and_its_text_comes_back(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "sed -i s/old/new/")
    assert typed("SELECT 1 AS old;\r", "/edit\r", "\r").data.split() == ["old", "1", "new", "1"]


@pytest.mark.soak
def test_what_the_editor_cannot_do_is_told(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    assert "cannot start no-such-editor: No such file" in typed("/edit\r").words
    monkeypatch.setenv("VISUAL", "true")
    file = tmp_path / "latin.sql"
    file.write_bytes(b"SELECT '\xe9'")
    assert "is not UTF-8 text (byte 8)" in typed(f"/edit {file}\r").words


@pytest.mark.soak
def test_the_next_rows_go_to_a_file(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    console = typed(f"/once {file}\r", "SELECT nothing;\r", "SELECT * FROM flowers;\r", "SELECT 7 AS x;\r")
    assert file.read_text() == "size,colour\n0,red\n1,red\n2,red\n"
    assert console.data.split() == ["x", "7"]
    assert f"3 rows in {file}" in console.words
    nowhere = f"/once {tmp_path}/none/rows\r", "/once ~nobody-of-that-name/rows\r"
    words = typed(f"/once {file}.parquet\r", "SELECT 7 AS x;\r", "/format parquet\r", *nowhere).words
    assert "1 row in" in words
    assert "there is no format parquet" in words
    assert "cannot write" in words
    assert "no such home folder" in words


@pytest.mark.soak
def test_rows_that_go_to_a_file_are_all_there_and_may_be_shown_after_all(
    typed: Typed, tmp_path: Path
) -> None:
    file = tmp_path / "rows.txt"
    console = typed(f"/once {file}\r", "SELECT i FROM range(150) AS t(i);\r")
    assert len(file.read_text().splitlines()) == 151
    assert "150 rows in" in console.words
    assert typed(f"/once {file}2\r", "/once\r", "SELECT 7 AS x;\r").data.split() == ["x", "7"]
    assert list(tmp_path.glob("*rows*")) == [file]


@pytest.mark.soak
def test_a_disk_that_is_full_is_told(typed: Typed) -> None:
    console = typed("/tee /dev/full\r", "SELECT 7 AS x;\r", "/once /dev/full\r", "SELECT 8 AS x;\r")
    assert "stopped writing to the file: No space left" in console.words
    assert "cannot write /dev/full: No space left" in console.words
    assert console.data.split() == ["x", "7"]


@pytest.mark.soak
def test_all_that_is_shown_goes_to_a_file_too(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "session.txt"
    typed(
        f"/tee {file}\r",
        "SELECT 7 AS x; SELECT 'me' AS password;\r",
        "SELECT 7 AS x;\r",
        "SELECT nothing;\r",
        "/tee\r",
        "SELECT 8 AS later;\r",
    )
    kept = file.read_text()
    assert "sqlflow> SELECT 7 AS x;\nx\n7\n1 row (" in kept
    assert "error:" in kept
    assert "later" not in kept
    assert file.stat().st_mode & 0o777 == 0o600
    assert "AS password" not in kept
    assert "cannot write" in typed(f"/tee {file}\r", f"/tee {tmp_path}\r", "SELECT 9 AS again;\r").words
    assert "again" in file.read_text()


def test_a_program_has_the_terminal(typed: Typed, tmp_path: Path) -> None:
    copied = f"/system find {tmp_path} -name 'two*' -exec cp {{}} {tmp_path}/one \\;\r"
    ended = "/system false\r", "/system sh -c 'kill $$'\r", "/system no-such-program\r"
    words = typed(f"/system touch '{tmp_path}/two words'\r", copied, *ended).words
    assert (tmp_path / "two words").exists()
    assert (tmp_path / "one").exists()
    assert "exit code 1" in words
    assert "terminated by SIGTERM" in words
    assert "cannot start no-such-program" in words


def test_a_pager_is_a_program_with_arguments(typed: Typed) -> None:
    words = typed("/pager more -d\r", "/pager 'more\r").words
    assert "pager more -d" in words
    assert "a quote is not closed" in words


@pytest.mark.soak
def test_another_data_source_is_used_and_one_that_fails_is_not(typed: Typed, tmp_path: Path) -> None:
    other = f"duckdb:///{tmp_path}/other.duckdb"
    with Session(other, create=True) as session:
        list(session.run("CREATE TABLE trees AS SELECT 1 AS x"))
    console = typed(f"/use duckdb:///{tmp_path}/none.duckdb\r", "/dt\r", f"/use {other}\r", "/dt\r")
    assert "none.duckdb" in console.words
    assert console.data.split() == ["table", "flowers", "table", "trees"]


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("csv", "size,colour\n0,red\n"),
        ("json", '[\n{"size":0,"colour":"red"}\n]\n'),
        ("markdown", "| size | colour |\n| --: | --- |\n| 0 | red |\n"),
    ],
)
def test_the_format_of_rows_is_chosen(typed: Typed, name: str, shown: str) -> None:
    console = typed(f"/format {name}\r", f"/format {name}x\r", "SELECT * FROM flowers LIMIT 1;\r")
    assert console.data == shown
    assert "did you mean" in console.words


@pytest.mark.soak
def test_the_time_is_told_or_not(typed: Typed) -> None:
    first, second = typed("SELECT 1 AS x;\r", "/timing\r", "SELECT 1 AS x;\r").words.split("timing off")
    assert " s)" in first
    assert " s)" not in second


def test_the_state_is_told(typed: Typed) -> None:
    shown = typed("/rehash\r", "/status\r").data
    assert "flowers.duckdb" in shown
    assert "dialect" in shown


@pytest.mark.soak
def test_a_statement_is_repeated_until_it_fails(typed: Typed) -> None:
    typed("CREATE SEQUENCE s MAXVALUE 3;\r")
    console = typed("/watch 0.001 SELECT nextval('s') AS n;\r", "SELECT 7 AS x;\r")
    assert console.data.split() == ["n", "1", "n", "2", "n", "3", "x", "7"]
    assert console.words.count("every 0.001 s, Ctrl-C ends") == 4


@pytest.mark.soak
def test_the_last_statement_is_repeated_until_ctrl_c(typed: Typed) -> None:
    class Interrupting(io.StringIO):
        """Sends the signal of Ctrl-C with the third rows."""

        def write(self, text: str) -> int:
            written = super().write(text)
            if self.getvalue().count("7") == 3 and "7" in text:
                signal.raise_signal(signal.SIGINT)
            return written

    console = typed("SELECT 7 AS x;\r", "/watch 0.001\r", "SELECT 8 AS y;\r", terminal=Interrupting)
    assert console.data.split() == ["x", "7"] * 3 + ["y", "8"]
    words = typed("/watch\r", "/watch 0 SELECT 1\r").words
    assert "there is no statement to repeat" in words
    assert "must be above 0" in words
