"""Completion of SQL in cells, by IPython's completer."""

from __future__ import annotations

from IPython.core.completer import provisionalcompleter

from tests.sqlflow_edl.extensions.notebook.conftest import Notebook


def offered(notebook: Notebook, text: str) -> list[str]:
    """Texts that are offered at the bar, and what each would make of the line."""
    before, _, after = text.partition("|")
    with provisionalcompleter():
        found = [*notebook.shell.Completer.completions(before + after, len(before))]
    return [before[: each.start] + each.text for each in found]


def last_words(lines: list[str]) -> list[str]:
    return [line.split()[-1] for line in lines]


def test_tables_and_columns_of_the_connection_are_offered(connected: Notebook) -> None:
    assert (
        connected("%sqlflow CREATE TABLE flowers AS SELECT 1.5 AS petal_length, 'x' AS species").error is None
    )
    assert last_words(offered(connected, "%%sqlflow\nSELECT * FROM flo|")) == ["flowers"]
    assert last_words(offered(connected, "%%sqlflow\nSELECT pet| FROM flowers")) == ["petal_length"]
    assert last_words(offered(connected, "found = %sqlflow SELECT sp| FROM flowers"))[0] == "species"


def test_a_table_is_offered_once_the_cell_that_makes_it_has_run(connected: Notebook) -> None:
    assert "flowers" not in last_words(offered(connected, "%%sqlflow\nSELECT * FROM flo|"))
    connected("%sqlflow CREATE TABLE flowers AS SELECT 1 AS x")
    assert last_words(offered(connected, "%%sqlflow\nSELECT * FROM flo|")) == ["flowers"]


def test_attributes_are_offered_without_a_connection(notebook: Notebook) -> None:
    training = "%%sqlflow name <<\nSELECT * FROM t\nTO TRAIN DNNClassifier WITH "
    assert offered(notebook, f"{training}model.hid|") == [f"{training}model.hidden_units"]
    assert last_words(offered(notebook, f"{training}mhu|")) == ["model.hidden_units"]


def test_other_magics_may_stand_above_the_cell(notebook: Notebook) -> None:
    assert last_words(offered(notebook, "\n%%time\n%%sqlflow\nSELECT * FROM t TO TRAI|")) == ["TRAIN"]
    assert last_words(offered(notebook, "%%bash\n%%sqlflow\nSELECT * FROM t TO TRAI|")) != ["TRAIN"]


def test_options_and_their_values_are_offered(connected: Notebook) -> None:
    assert offered(connected, "%%sqlflow --so|") == ["%%sqlflow --source"]
    assert offered(connected, "found = %sqlflow -|")[:2] == [
        "found = %sqlflow --source",
        "found = %sqlflow -o",
    ]
    assert last_words(offered(connected, "%sqlflow_connect duckdb: --al|"))[0] == "--alias"
    connected("%sqlflow_connect sqlite: --alias shop")
    assert last_words(offered(connected, "%sqlflow --debug --source |")) == ["shop"]
    assert last_words(offered(connected, "%sqlflow_close sh|")) == ["shop"]
    connected("import pyarrow as pa; flowers = pa.table({'x': [1]})")
    connected("rows = %sqlflow SELECT 1")
    assert last_words(offered(connected, "%sqlflow --persist |")) == ["flowers", "rows"]
    assert last_words(offered(connected, "%%sqlflow --source shop SEL|")) == ["SELECT"]


def test_variables_of_the_notebook_are_offered_where_sql_takes_one(connected: Notebook) -> None:
    connected("least, lessons, frame = 3, [1], object()")
    assert offered(connected, "%sqlflow SELECT 1 WHERE 2 > :le|") == [
        f"%sqlflow SELECT 1 WHERE 2 > :{name}" for name in ("least", "lessons")
    ]
    assert last_words(offered(connected, "%%sqlflow\nSELECT {{ le|")) == ["least", "lessons"]
    assert last_words(offered(connected, "%%sqlflow\nSELECT {{ least }}, le|"))[0] == "LEFT".lower()
    assert "least" not in last_words(offered(connected, "%%sqlflow\nSELECT 1::le|"))


def test_cells_of_python_are_completed_as_before(notebook: Notebook) -> None:
    notebook.shell.Completer.use_jedi = False  # which takes seconds to look at the standard library
    notebook("import os")
    assert any(line.endswith("path") for line in offered(notebook, "os.pa|"))
    assert not any("SELECT" in line for line in offered(notebook, "sel|"))


def test_another_load_offers_nothing_twice(notebook: Notebook) -> None:
    notebook.shell.run_line_magic("reload_ext", "sqlflow_edl.notebook")
    assert last_words(offered(notebook, "%%sqlflow\nSELECT 1 TO TRA|")) == ["TRAIN"]
