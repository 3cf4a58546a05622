"""The command `sqlflow`, as a shell runs it: exit codes, data on stdout, words on stderr."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.databases import fill

ROWS = "SELECT 1 AS a, 'x,y' AS b, NULL AS c UNION ALL SELECT 2, 'ü', 0.1 + 0.2 ORDER BY a"
TRAIN = "SELECT 1 AS a, 2.0 AS b UNION ALL SELECT 2, 4.0 UNION ALL SELECT 3, 5.5 TO TRAIN DNNRegressor LABEL b INTO m"


def test_help_lists_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "run" in shown
    assert "130  interrupted" in shown


@pytest.mark.soak
def test_statements_run_on_where_the_reader_of_rows_and_messages_has_exited(tmp_path: Path) -> None:
    source = f"duckdb:///{tmp_path}/a.duckdb"
    program = "SELECT * FROM range(100000); CREATE TABLE made AS SELECT 1 AS x; SELECT nope FROM made"
    ran = [
        sys.executable,
        "-m",
        "sqlflow_edl.cli.main",
        "--source",
        source,
        "--create",
        "--json",
        "-e",
        program,
    ]
    with subprocess.Popen(ran, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()
    assert process.returncode == 1
    with Session(source) as session:
        assert session.source.tables() == ["made"]


@pytest.mark.soak
def test_a_list_on_a_pipe_that_is_closed_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "sqlflow_edl.cli.main", "jobs"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.variants(1)
@pytest.mark.parametrize("command", [["run"], ["compile", "-o", os.devnull]])
def test_the_command_line_allows_packages_for_every_process_of_a_job(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLFLOW_MODEL_PACKAGES", "numpy")
    file = tmp_path / "program.sql"
    file.write_text("SELECT 1 AS x, 2 AS y TO TRAIN torch.nn.functional.mse_los LABEL y INTO m;")
    arguments = [*command, "--source", "duckdb:", "--model-packages", "torch.nn , keras"]
    main([*arguments, str(file)])
    assert os.environ["SQLFLOW_MODEL_PACKAGES"] == "torch.nn,keras"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("runn", "did you mean run?"),
        (
            "run --formt=json -e x",
            "sqlflow run: error: unrecognized argument: --formt=json; did you mean --format?",
        ),
        ("run --on-error stopp", "did you mean stop?"),
        ("image biuld", "did you mean build?"),
        ("image build --tagg x", "image build: error: unrecognized argument: --tagg; did you mean --tag?"),
        (
            "image push x --bulder=a",
            "image push: error: unrecognized argument: --bulder=a; did you mean --builder?",
        ),
        ("image build --file x", "image build: error: the following arguments are required: -t/--tag"),
        ("jobs 99", "sqlflow jobs: error: unrecognized argument: 99\n"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest(
    typed: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(typed.split())
    assert left.value.code == 2
    assert told in capsys.readouterr().err


def test_a_package_that_is_no_name_is_refused_with_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["run", "--source", "duckdb:", "--model-packages", "keras.*", "-e", "SELECT 1"])
    assert left.value.code == 2
    assert "--model-packages" in capsys.readouterr().err


def test_a_program_on_standard_input_runs_and_data_goes_to_stdout_and_words_to_stderr() -> None:
    command = [sys.executable, "-m", "sqlflow_edl.cli.main", "run", "--source", "duckdb:", "--format", "csv"]
    done = subprocess.run(command, capture_output=True, text=True, input=ROWS, check=False)
    assert done.returncode == 0
    assert done.stdout == 'a,b,c\n1,"x,y",\n2,ü,0.3\n'
    assert "2 rows" in done.stderr


def test_json_is_an_array_of_objects(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["run", "--source", url, "--format", "json", "--quiet", "-e", "SELECT 1 AS a, NULL AS b"]) == 0
    )
    captured = capsys.readouterr()
    assert json.loads(captured.out) == [{"a": 1, "b": None}]
    assert captured.err == ""


def test_a_table_on_a_pipe_has_empty_cells_for_nulls_and_says_how_many_rows_it_shows(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Session(url) as session:
        fill(session, "numbers", pa.table({"a": range(1000)}))
    assert main(["run", "--source", url, "-e", "SELECT a, NULL AS none FROM numbers"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:2] == [" a  none", " 0      "]
    assert len(captured.out.splitlines()) == 101
    assert "1,000 rows, 100 shown" in captured.err


@pytest.mark.soak
def test_files_run_in_order_and_an_error_names_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t AS SELECT 1 AS x;\n", encoding="utf-8")
    (tmp_path / "b.sql").write_text("SELECT x FROM t;\nSELECT y FROM t;\nSELECT 3;", encoding="utf-8")
    files = [str(tmp_path / name) for name in ("a.sql", "b.sql")]
    assert main(["run", "--source", "duckdb:", "--format", "csv", *files]) == 1
    captured = capsys.readouterr()
    assert captured.out == "x\n1\n"
    assert f"{tmp_path / 'b.sql'}:2:8" in captured.err
    assert "Traceback" not in captured.err


def test_a_syntax_error_is_told_before_anything_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--source", url, "-e", "SELECT 1; SELECT * FROM t TO TRIAN x LABEL y INTO z"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean TRAIN?" in captured.err


@pytest.mark.parametrize("statement", ["SELECT nothing", "SELECT 1 TO PREDICT t.y USING nothing"])
def test_debug_shows_the_traceback(statement: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--debug", "--source", "duckdb:", "-e", statement]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "-e", "SELECT 1"], 2, "no data source"),
        (["console"], 2, "sqlflow samples --source duckdb:///demo.duckdb"),
        (["export", "m", "-o", "m.keras"], 2, "sqlflow export: no data source"),
        (["run", "--source", "duckdb:/no/such/file.duckdb", "-e", "SELECT 1"], 1, "no database file"),
        (["run", "--source", "duckdb:/no/such/file.duckdb", "-e", "SELECT 1"], 1, "--create"),
        (["run", "--source", "duckdb:////usr", "-e", "SELECT 1"], 1, "/usr is a folder"),
        (["run", "--source", "duckdb:", "-e", "SELECT '\udcff'"], 1, "a byte that is not UTF-8"),
        (["run", "--source", "duckdb:", "-e", "SELECT {{ x }}"], 1, "sqlflow run --var x=…"),
        (["run", "--source", "duckdb:", "-e", "CREATE MODEL m AS SELECT 1"], 1, "names no model type"),
        (["run", "--source", "duckdb:", "-e", "SHOW MODLES"], 1, "did you mean SHOW MODELS?"),
        (["run", "--source", "mongo://x", "-e", "SELECT 1"], 1, "mongo"),
        (["run", "--source", "duckdb:", "/no/such/file.sql"], 1, "cannot read"),
        (["run", "--dialect", "oracel", "--source", "duckdb:", "-e", "SELECT 1"], 1, "oracel"),
    ],
)
def test_what_cannot_be_opened_is_named(
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SQLFLOW_SOURCE", raising=False)
    assert main(arguments) == code
    assert words in capsys.readouterr().err


def test_a_password_in_a_url_is_never_shown(capsys: pytest.CaptureFixture[str]) -> None:
    url = "mysql://me:s3cret@localhost/db"
    main(["run", "--source", url, "-e", "SELECT 1"])
    for typed in ([url], ["jobs", url], ["run", f"--sorce={url}"], ["jobs", "--remove-after", url]):
        with pytest.raises(SystemExit):
            main(typed)
    captured = capsys.readouterr()
    assert "mysql://me@localhost/db" in captured.err
    assert "s3cret" not in captured.out + captured.err


def test_a_command_runs_without_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    sys.stdin.close()
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("sqlflow")


def test_compile_writes_a_program_for_each_train_and_runs_nothing(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.sql").write_text(f"{TRAIN};\n{TRAIN};", encoding="utf-8")
    for _ in range(2):
        code = main(["compile", str(tmp_path / "two.sql"), "-o", str(tmp_path / "out"), "--source", url])
        assert code == 0
    folders = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert folders == ["m", "m-2", "m-3", "m-4"]
    assert {path.name for path in (tmp_path / "out" / "m").iterdir()} == {
        "model.py",
        "model.py.sha256",
        "reader.py",
        "job.json",
    }
    assert capsys.readouterr().out.splitlines()[0] == str(tmp_path / "out" / "m")


def test_a_program_that_cannot_be_written_is_an_error(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.sql").write_text(TRAIN, encoding="utf-8")
    assert main(["compile", str(tmp_path / "one.sql"), "-o", str(tmp_path / "one.sql"), "--source", url]) == 1
    assert f"cannot write {tmp_path / 'one.sql'}: Not a directory" in capsys.readouterr().err


def test_compile_fills_variables_in(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.sql").write_text(TRAIN.replace("INTO m", "INTO {{ name }}"), encoding="utf-8")
    arguments = ["compile", str(tmp_path / "x.sql"), "-o", str(tmp_path / "out"), "--source", url]
    assert main([*arguments, "--var", "name=filled"]) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["filled"]
    assert main([*arguments, "--var", "nme=filled"]) == 1
    assert "did you mean nme?" in capsys.readouterr().err


def test_a_model_name_cannot_leave_the_output_folder(url: str, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text(TRAIN.replace("INTO m", "INTO `../../x/..`;"), encoding="utf-8")
    assert main(["compile", str(tmp_path / "x.sql"), "-o", str(tmp_path / "out"), "--source", url]) == 0
    [folder] = (tmp_path / "out").iterdir()
    assert folder.name == "x"


def modules_after(*arguments: str) -> set[str]:
    """The modules of ours that the command has loaded at its end, and the names of the other packages."""
    script = (
        "import sys\nfrom sqlflow_edl.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())


def test_the_help_loads_neither_the_parser_nor_the_compiler() -> None:
    loaded = modules_after("--help")
    assert "sqlflow_edl.cli.arguments" in loaded
    heavy = {"sqlflow_edl.syntax", "sqlflow_edl.analysis", "edl.spec", "msgspec", "ssl", "asyncio"}
    assert not loaded & heavy


def test_ordinary_sql_loads_nothing_that_only_trainings_need() -> None:
    loaded = modules_after("run", "--source", "duckdb:", "-e", "SELECT 1")
    assert "sqlflow_edl.session.session" in loaded
    of_trainings = {
        "sqlflow_edl.session.compiler",
        "sqlflow_edl.codegen",
        "edl.features",
        "jinja2",
        "asyncio",
    }
    assert not loaded & of_trainings
