"""The magics, in IPython's own shell, over DuckDB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from edl.errors import SourceError, SQLFlowError
from sqlflow_edl.extensions.notebook.errors import CellError
from sqlflow_edl.extensions.notebook.result_set import ResultSet
from tests.sqlflow_edl.extensions.notebook.conftest import Notebook


def test_a_line_is_a_statement_and_its_value_the_result(connected: Notebook) -> None:
    cell = connected("found = %sqlflow SELECT i FROM range(3) AS t(i)\nfound")
    assert isinstance(cell.value, ResultSet)
    assert [i for (i,) in cell.value] == [0, 1, 2]


def test_a_cell_shows_each_result_and_returns_the_last(connected: Notebook) -> None:
    cell = connected(
        "%%sqlflow\nCREATE TABLE t AS SELECT 1 AS x;\nSELECT x + 1 AS y FROM t;\nSELECT x FROM t;"
    )
    assert cell.texts() == ["OK", "y\n2\n1 row"]
    assert "<table>" in cell.htmls()[1]
    assert list(cell.value) == [(1,)]


@pytest.mark.soak
def test_cells_run_on_each_kind_of_database(notebook: Notebook, url: str) -> None:
    assert notebook(f"%sqlflow_connect {url}").error is None
    cell = notebook("%%sqlflow\nCREATE TABLE t AS SELECT 1 AS x;\nSELECT x + 1 AS y FROM t;")
    assert cell.texts()[0] == "OK"
    assert list(cell.value) == [(2,)]
    notebook("import pandas as pd; flowers = pd.DataFrame({'size': [1.5, None], 'colour': ['red', 'blue']})")
    assert notebook("%sqlflow --persist flowers").printed == "wrote 2 rows to flowers\n"
    kept = notebook("%sqlflow SELECT size, colour FROM flowers ORDER BY colour")
    assert list(kept.value) == [(None, "blue"), (1.5, "red")]
    assert "<cell>:1:8\n" in notebook("%sqlflow SELECT colur FROM flowers").printed


def test_a_data_frame_is_read_by_its_name_unless_the_data_source_has_such_a_table(
    connected: Notebook,
) -> None:
    connected("%sqlflow CREATE TABLE taken AS SELECT 'table' AS x")
    connected(
        "import pandas as pd; sizes = pd.DataFrame({'x': [1, 2]}); taken = pd.DataFrame({'x': ['frame']})"
    )
    assert list(connected("%sqlflow SELECT sum(x) AS s FROM sizes").value) == [(3,)]
    connected("sizes = sizes * 10")
    both = "%%sqlflow big <<\nSELECT sizes.x, taken.x AS y FROM sizes, taken ORDER BY 1"
    assert connected(both).error is None
    assert list(connected("%sqlflow SELECT * FROM big WHERE x > 10").value) == [(20, "table")]
    assert list(connected("%sqlflow SHOW TABLES").value) == [("taken",)]


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    [
        "r = %sqlflow SELECT 7 AS x",
        "%sqlflow r << SELECT 7 AS x",
        "%%sqlflow r <<\nSELECT 7 AS x",
        "%%sqlflow\nr <<\nSELECT 7 AS x",
    ],
)
def test_a_result_that_is_kept_is_not_shown(connected: Notebook, text: str) -> None:
    cell = connected(text)
    assert (cell.value, cell.outputs, cell.error) == (None, [], None)
    assert list(connected.shell.user_ns["r"]) == [(7,)]


@pytest.mark.soak
def test_an_output_option_keeps_the_result_and_shows_it(connected: Notebook) -> None:
    cell = connected("%%sqlflow -o r\nSELECT 1 AS x; SELECT 7 AS x")
    assert list(cell.value) == [(7,)]
    assert connected.shell.user_ns["r"] is cell.value


def test_variables_are_filled_in_and_ipython_leaves_braces_alone(connected: Notebook) -> None:
    connected('low = 3; name = "it\'s"')
    assert list(connected("%sqlflow SELECT {{ low }} AS a, :name AS b, {'x': 1}.x AS c").value) == [
        (3, "it's", 1)
    ]


def test_an_error_is_the_statement_with_a_caret_and_no_traceback(connected: Notebook) -> None:
    cell = connected(
        "%%sqlflow\nCREATE TABLE iris AS SELECT 1 AS petal;\n\nSELECT petl\nFROM iris;\nSELECT 1"
    )
    assert isinstance(cell.error, CellError)
    assert isinstance(cell.error.__cause__, SourceError)
    assert "<cell>:4:8\n" in cell.printed
    assert "SELECT petl\n    |        ^^^^" in cell.printed
    assert "Traceback" not in cell.printed
    assert cell.texts() == ["OK"]
    assert cell.value is None


def test_an_error_of_syntax_is_told_before_anything_runs(connected: Notebook) -> None:
    cell = connected("%%sqlflow\nCREATE TABLE t (x INT);\nSELECT 1 TO TRAIN DNNClassifier LABEL")
    assert isinstance(cell.error, SQLFlowError)
    assert not connected("%sqlflow SHOW TABLES").value.to_arrow()["name"].to_pylist()


def test_an_error_keeps_the_name_as_it_was(connected: Notebook) -> None:
    connected("r = 1")
    assert connected("%sqlflow r << SELECT * FROM nowhere").error is not None
    assert connected.shell.user_ns["r"] == 1


def test_debug_shows_the_traceback_too(connected: Notebook) -> None:
    cell = connected("%sqlflow --debug SELECT * FROM nowhere")
    assert isinstance(cell.error, SourceError)
    assert "Traceback" in cell.printed
    assert "<cell>:1:" in cell.printed


def test_connections_have_aliases_and_a_cell_may_name_one(notebook: Notebook, tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path}/flowers.duckdb"
    assert notebook(f"%sqlflow_connect {url} --create --alias flowers").printed == f"connected to {url}\n"
    notebook("%sqlflow_connect --alias other sqlite:")
    notebook("%sqlflow --source flowers CREATE TABLE t AS SELECT 1 AS x")
    assert notebook("%sqlflow SELECT * FROM t").error is not None
    assert list(notebook("%%sqlflow --source flowers\nSELECT * FROM t").value) == [(1,)]
    assert notebook("%sqlflow --source flowers").error is None
    assert list(notebook("%sqlflow SELECT * FROM t").value) == [(1,)]
    notebook("%sqlflow_close flowers")
    assert "no data source is connected" in notebook("%sqlflow SELECT 1").printed


def test_the_variable_of_the_environment_names_the_source(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLFLOW_SOURCE", "duckdb:")
    assert list(notebook("%sqlflow SELECT 1 AS x").value) == [(1,)]
    assert notebook("%sqlflow_connect").printed == "connected to duckdb:///:memory:\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("%sqlflow", "the cell has no statement"),
        ("%sqlflow_connect", "no data source is given"),
        ("%sqlflow_connect duckdb: twice", "unexpected argument twice"),
        ("%sqlflow_connect nowhere://x", "nowhere"),
        ("%sqlflow --workers two SELECT 1", "--workers must be a whole number from 0 to 1,000, not two"),
        ("%sqlflow -o 1x SELECT 1", "1x cannot be the name of a variable"),
        ("%sqlflow class << SELECT 1", "class cannot be the name of a variable"),
        ("%sqlflow_close", "no such connection is open"),
        ("%sqlflow --persist nothing", "there is no variable nothing"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(notebook: Notebook, text: str, told: str) -> None:
    cell = notebook(text)
    assert isinstance(cell.error, CellError)
    assert told in cell.printed
    assert "Traceback" not in cell.printed


@pytest.mark.soak
def test_a_frame_is_persisted_and_queried(connected: Notebook) -> None:
    connected("import pandas as pd; flowers = pd.DataFrame({'x': [1, 2]})")
    assert connected("%sqlflow --persist flowers AS garden").printed == "wrote 2 rows to garden\n"
    assert list(connected("%sqlflow SELECT sum(x) AS s FROM garden").value) == [(3,)]


def test_a_result_is_persisted_as_a_frame_is(connected: Notebook) -> None:
    connected("found = %sqlflow SELECT i FROM range(3) AS t(i)")
    assert connected("%sqlflow --persist found AS kept").printed == "wrote 3 rows to kept\n"
    assert list(connected("%sqlflow SELECT sum(i) AS total FROM kept").value) == [(3,)]


def test_the_next_cell_does_not_inherit_the_workers_of_a_cell(connected: Notebook) -> None:
    plan = "EXPLAIN SELECT i, 2.0 * i AS b FROM range(9) AS t(i) TO TRAIN DNNRegressor LABEL b INTO m"

    def workers(options: str) -> str | None:
        rows = connected(f"%sqlflow {options} {plan}").value
        return {name: value for _, name, value, _ in rows}.get("workers")

    assert workers("--workers 2") == "2"
    assert workers("") != "2"


def test_unloading_closes_what_is_open(shell: InteractiveShell, tmp_path: Path) -> None:
    notebook = Notebook(shell)
    url = f"duckdb:///{tmp_path}/a.duckdb"
    notebook(f"%sqlflow_connect --create {url}")
    notebook("%unload_ext sqlflow_edl.notebook")
    notebook("%load_ext sqlflow_edl.notebook")
    assert "no data source is connected" in notebook("%sqlflow SELECT 1").printed


def test_without_ipython_it_is_said_what_to_install() -> None:
    code = (
        "import sys; sys.modules['IPython'] = None\n"
        "from sqlflow_edl.notebook import load_ipython_extension\n"
        "load_ipython_extension(None)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1] == "edl.errors.SQLFlowError: IPython is not installed"
