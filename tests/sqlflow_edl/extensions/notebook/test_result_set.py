"""Results as a notebook holds and shows them."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import sqlflow_edl
from edl.data.metric_tables import importances
from edl.errors import SQLFlowError
from edl.jobs.events import EpochEnd
from sqlflow_edl.extensions.notebook.errors import CellError
from sqlflow_edl.extensions.notebook.result_set import Chart, ResultSet
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse

VALUES = """
SELECT * FROM (VALUES (1, 1.5::DOUBLE, 'a', TRUE), (NULL, NULL, NULL, NULL), (3, 'nan'::DOUBLE, '<b>&', FALSE))
  AS t(i, x, k, b)
ORDER BY i NULLS LAST
"""


def result_of(text: str) -> ResultSet:
    with sqlflow_edl.connect("duckdb:") as session:
        [result] = session.run(text)
        return ResultSet.read(result)


def test_rows_are_counted_and_iterated_after_the_session_has_gone() -> None:
    found = result_of("SELECT i, i * i AS s FROM range(3) AS t(i)")
    assert len(found) == 3
    assert found.columns == ["i", "s"]
    assert list(found) == [(0, 0), (1, 1), (2, 4)]
    assert list(found) == [(0, 0), (1, 1), (2, 4)]


def test_the_text_is_the_table_of_the_command_line() -> None:
    assert repr(result_of(VALUES)).splitlines() == [
        "i    x  k     b    ",
        "1  1.5  a     true ",
        "3  nan  <b>&  false",
        "                   ",
        "3 rows",
    ]


def test_the_text_is_plain_in_a_kernel_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as ipykernel does
    monkeypatch.setenv("TERM", "xterm-color")
    assert "\x1b" not in repr(result_of(VALUES))


def test_html_is_escaped_with_numbers_at_the_right_and_null_apart() -> None:
    html = result_of(VALUES)._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert html.count("text-align:right") == 2 * 4
    assert html.count(">NULL</span>") == 4
    assert ">nan</td>" in html


def test_a_text_that_says_null_is_no_null() -> None:
    assert "<span" not in result_of("SELECT 'NULL' AS k")._repr_html_()


def shown(found: ResultSet) -> str:
    """The HTML of a result, with the markup of drawings in place of images."""
    return re.sub(
        '<img [^>]*base64,([^"]*)">', lambda image: b64decode(image[1]).decode(), found._repr_html_()
    )


def test_an_explanation_is_shown_with_bars() -> None:
    [statement] = parse("SELECT 1 AS x TO EXPLAIN m")
    figures: dict[str, float | None] = {"<a>": 2.0, "b": 0.5}
    table = pa.Table.from_batches([importances(figures)])
    html = shown(ResultSet(Result(statement, figures=figures, view="importances"), table))
    longer, shorter = map(float, re.findall(r'<rect [^>]*width="([\d.]+)"', html))
    assert longer == pytest.approx(4 * shorter, abs=0.3)
    assert "<a>" not in html
    written = shown(ResultSet(Result(statement, message="wrote 2 rows", figures=figures), None))
    assert "wrote 2 rows" in written
    assert written.count("<rect") == 2


EXPLAINED = pa.table(
    {"x": [1, 2, 3], "y": [5.0, 6.0, 7.0], "y_base": [6.0] * 3, "x_shap": [-1.0, 0.0, 1.0]}
)  # columns of EXPLAIN with a row for each row


def test_explained_rows_are_a_swarm_above_their_table() -> None:
    [statement] = parse("SELECT 1 AS x TO EXPLAIN m")
    html = shown(ResultSet(Result(statement), EXPLAINED))
    assert html.startswith('<svg color="#7a7a7a" xmlns="http://www.w3.org/2000/svg"')
    assert 'aria-label="Effects of the columns on y, on average x 0.6667"' in html
    assert html.count("<tr>") == 4


def test_explained_rows_of_a_table_are_drawn_on_request(tmp_path: Path) -> None:
    [statement] = parse("SELECT * FROM explained")
    found = ResultSet(Result(statement), EXPLAINED)
    assert "<svg" not in shown(found)
    assert repr(found.importances()) == "Importances: x 0.6667"
    assert repr(found.dependence("x")) == "Effect of x on y, -1 to 1"
    chart = found.beeswarm()
    chart.save(tmp_path / "swarm.svg")
    assert (tmp_path / "swarm.svg").read_text() == chart.svg


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("swarm.png", r"a chart is written as SVG, not as \.png"),
        ("missing/swarm.svg", "cannot write .*: No such file or directory"),
        ("", "cannot write .*: Is a directory"),
        ("~nobody-of-this-name/swarm.svg", "no such home folder"),
    ],
)
def test_a_drawing_is_not_written_to_a_wrong_file(path: str, message: str, tmp_path: Path) -> None:
    wrong = path if path.startswith("~") else tmp_path / path
    [statement] = parse("SELECT * FROM explained")
    with pytest.raises(CellError, match=message) as caught:
        ResultSet(Result(statement), EXPLAINED).beeswarm().save(wrong)
    assert path != "swarm.png" or caught.value.hint == f"save('{tmp_path / 'swarm.svg'}')"
    with pytest.raises(CellError, match="no rows to draw"):
        Chart("").save(tmp_path / "swarm.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_drawing_is_an_image_of_its_size_with_its_words() -> None:
    [statement] = parse("SELECT * FROM explained")
    table = EXPLAINED.rename_columns(["<x>", "y", "y_base", "<x>_shap"])
    chart = ResultSet(Result(statement), table).importances()
    assert repr(chart) == "Importances: <x> 0.6667"
    html = chart._repr_html_()
    assert html.startswith(
        '<img width="520" height="18" alt="Importances: &lt;x&gt; 0.6667" style="display:block" src='
    )
    assert (
        "svg>" not in html
    )  # of which JupyterLab would show the texts only, where another user has run the cell


def test_rows_without_explanations_are_not_drawn() -> None:
    with pytest.raises(SQLFlowError, match="the rows have no Shapley values") as caught:
        result_of("SELECT 1 AS x").beeswarm()
    assert "explain.level = rows" in (caught.value.hint or "")
    [statement] = parse("SELECT * FROM explained")
    with pytest.raises(CellError) as caught:
        ResultSet(Result(statement), EXPLAINED).dependence("xs", by="x")
    assert caught.value._render_traceback_() == [
        "error: there is no Shapley value of xs",
        "     = did you mean x?",
    ]


def test_a_confusion_matrix_is_a_chart() -> None:
    [statement] = parse("SELECT 1 AS x TO EVALUATE m")
    pairs = [("<a>", "<a>", 8, 0.8), ("<a>", "b", 2, 0.2), ("b", "<a>", 0, 0.0), ("b", "b", 10, 1.0)]
    table = pa.table(
        dict(zip(("k", "predicted", "row_count", "share"), zip(*pairs, strict=True), strict=True))
    )
    html = shown(ResultSet(Result(statement, view="confusion_matrix"), table))
    assert 'aria-label="Confusion matrix of 2 classes, 90.0 % right"' in html
    assert "true &lt;a&gt;, predicted b: 2, 20.0 %" in html
    assert "<a>" not in html


def test_a_roc_curve_is_drawn_above_its_first_rows() -> None:
    [statement] = parse("SELECT 1 AS x TO EVALUATE m")
    table = pa.table(
        {"threshold": [0.9, 0.5, 0.1], "true_positives": [1, 2, 2], "false_positives": [0, 1, 2]}
    )
    html = shown(ResultSet(Result(statement, view="roc_curve"), table))
    assert 'aria-label="ROC curve, area 0.875"' in html
    assert html.count("<tr>") == 4


def test_ten_rows_are_shown_of_many() -> None:
    found = result_of("SELECT i FROM range(336776) AS t(i)")
    assert found._repr_html_().count("<tr>") == 11
    assert "10 of 336,776 rows" in found._repr_html_()
    assert repr(found).endswith("9\n336,776 rows, 10 shown (to_pandas() has all)")
    assert len(found.to_pandas()) == 336_776
    assert "10 rows" in result_of("SELECT i FROM range(10) AS t(i)")._repr_html_()


def test_a_long_value_is_cut_where_it_is_shown_only() -> None:
    found = result_of("SELECT repeat('x', 100000) AS k")
    assert len(found._repr_html_()) < 1000
    assert len(next(iter(found))[0]) == 100_000


def test_null_stays_apart_from_nan_and_from_false_in_data_frames() -> None:
    frame = result_of(VALUES).to_pandas()
    assert [str(dtype) for dtype in frame.dtypes] == ["Int32", "float64", "str", "boolean"]
    assert frame["i"].tolist()[:2] == [1, 3]
    assert frame["i"][2] is pd.NA
    assert frame["b"][2] is pd.NA
    rows = list(result_of(VALUES))
    assert math.isnan(rows[1][1])
    assert rows[2][1] is None


def test_a_statement_without_rows_is_its_message() -> None:
    found = result_of("CREATE TABLE t (x INTEGER)")
    assert (len(found), list(found), found.columns) == (0, [], [])
    assert (repr(found), found.message) == ("OK", "OK")
    assert ">OK</div>" in found._repr_html_()
    assert found.to_pandas().empty


def test_a_training_is_its_report_with_the_curve() -> None:
    [statement] = parse("SELECT 1 AS x TO TRAIN DNNRegressor LABEL x INTO m", "duckdb")
    result = Result(
        statement,
        message="trained DNNRegressor m@1 on 90 rows",
        figures={"loss": 0.25, "auc": None},
        measured_on="10 validation rows",
        verdict="Right in 9 of 10 rows.",
        next_statements=("SELECT … TO PREDICT table.y USING m",),
        model="m@1",
        stored_in="duckdb:///a&b.duckdb",
    )
    ends = [EpochEnd(epoch, epoch * 10, 1 / epoch, {"loss": 2 / epoch}, 1.0) for epoch in (1, 2, 3)]
    found = ResultSet.read(result, ends)
    html = shown(found)
    assert ">not defined</td>" in html
    assert "m@1 in duckdb:///a&amp;b.duckdb" in html
    assert "TO PREDICT table.y USING m<" in html
    assert "Right in 9 of 10 rows." in html
    assert html.count("<polyline") == 2
    first = repr(found).splitlines()[:4]
    assert first == [
        "trained DNNRegressor m@1 on 90 rows",
        "Right in 9 of 10 rows.",
        "metrics  of 10 validation rows",
        "loss     0.25",
    ]
    assert (found.model, found.figures["loss"]) == ("m@1", 0.25)
