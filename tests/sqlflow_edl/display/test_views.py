"""Results in the forms in which people are shown them."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from sqlflow_edl.analysis.checks.drift import ColumnDrift
from sqlflow_edl.display import views
from sqlflow_edl.reports import drift
from sqlflow_edl.reports.result import Result, View
from sqlflow_edl.syntax import parse

[STATEMENT] = parse("SELECT 1")
DESCRIBED = {
    "section": ["model", "model", "features"],
    "name": ["name", "size", "x"],
    "value": ["m", "7", "a b " * 30],
}
IMPORTANCES = {"feature": ["long", "short"], "importance": [0.123456, 0.0123456], "share": [0.909, 0.091]}
CONFUSED = {
    "y": [0, 0, 1, 1],
    "predicted": [0, 1, 0, 1],
    "row_count": [8, 2, 1, 9],
    "share": [0.8, 0.2, 0.1, 0.9],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def result(columns: dict[str, list[object]], view: View, *computed: str) -> Result:
    return Result(STATEMENT, reader=pa.table(columns).to_reader(), view=view, computed=computed)


def lines(
    columns: dict[str, list[object]], view: View, *computed: str, out: io.StringIO | None = None
) -> list[str]:
    """Without styles and the spaces at the ends of lines."""
    out = out or io.StringIO()
    views.write(result(columns, view, *computed), out)
    return [line.rstrip() for line in _plain(out.getvalue()).splitlines()]


def _plain(text: str) -> str:
    return text.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")


def test_a_description_has_a_title_for_each_section_and_fits_the_terminal() -> None:
    assert lines(DESCRIBED, "sections")[:6] == [
        *("model", "  name    m", "  size    7", "", "features"),
        f"  x       {'a b ' * 30}".rstrip(),
    ]
    shown = lines(DESCRIBED, "sections", out=Terminal())
    assert len(shown) == 7
    assert max(map(len, shown)) <= 80


def test_a_long_section_ends_with_the_number_of_its_other_entries() -> None:
    names = [f"x{i}" for i in range(130)]
    described: dict[str, list[object]] = {
        "section": [*["features"] * 130, "inputs"],
        "name": [*names, "deep"],
        "value": [*["a number"] * 130, "x0 …"],
    }
    out = io.StringIO()
    footer = views.write(result(described, "sections"), out)
    shown = _plain(out.getvalue()).splitlines()
    assert [line.rstrip() for line in shown[100:104]] == ["  x99      a number", "  30 more", "", "inputs"]
    assert footer == "--format csv has all"
    important: dict[str, list[object]] = {
        "feature": [*names],
        "importance": [0.5] * 130,
        "share": [0.1] * 130,
    }
    out = io.StringIO()
    assert (
        views.write(result(important, "importances"), out) == "130 columns, 100 shown (--format csv has all)"
    )
    assert len(out.getvalue().splitlines()) == 101


def test_an_explanation_has_bars_where_the_terminal_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ["feature  importance   share", "long         0.1235  90.9 %", "short       0.01235   9.1 %"]
    assert lines(IMPORTANCES, "importances", "importance") == table
    with_bars = lines(IMPORTANCES, "importances", "importance", out=Terminal())
    assert with_bars == [table[0], f"{table[1]}  {40 * '█'}", f"{table[2]}  {4 * '█'}"]
    monkeypatch.setenv("COLUMNS", "34")
    assert lines(IMPORTANCES, "importances", "importance", out=Terminal()) == table


def test_a_confusion_matrix_is_a_grid_where_the_terminal_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(CONFUSED, "confusion_matrix", out=Terminal()) == [
        "y: true \\ predicted       0       1  recall",
        "0                         8       2  80.0 %",
        "1                         1       9  90.0 %",
        "precision            88.9 %  81.8 %",
    ]
    monkeypatch.setenv("COLUMNS", "40")
    assert lines(CONFUSED, "confusion_matrix", out=Terminal())[1].split() == ["0", "0", "8", "80.0", "%"]


def test_computed_figures_have_four_digits_and_predictions_do_on_a_terminal() -> None:
    figures: dict[str, list[object]] = {"loss": [0.123456789], "auc": [None]}
    assert lines(figures, "figures", "loss", "auc")[1].split() == ["0.1235"]
    predicted: dict[str, list[object]] = {"x": [0.123456789], "guess": [0.123456789]}
    assert lines(predicted, "rows", "guess")[1].split() == ["0.123456789", "0.123456789"]
    assert lines(predicted, "rows", "guess", out=Terminal())[1].split() == ["0.123456789", "0.1235"]


def test_rows_that_are_wider_than_the_terminal_are_records() -> None:
    wide: dict[str, list[object]] = {f"a_rather_long_name_{number}": [number] for number in range(5)}
    assert lines(wide, "rows", out=Terminal())[:3] == [
        *("row 1", "a_rather_long_name_0  0", "a_rather_long_name_1  1")
    ]
    assert len(lines(wide, "rows")) == 2


def test_a_roc_curve_keeps_its_rates_where_the_terminal_is_narrow() -> None:
    names = (
        "threshold",
        "recall",
        "false_positive_rate",
        "precision",
        "f1",
        "true_positives",
        "false_positives",
    )
    curve: dict[str, list[object]] = {name: [0.123456, None] for name in names}
    out = Terminal()
    footer = views.write(result(curve, "roc_curve", *names), out, others="csv has all")
    assert [line.split() for line in _plain(out.getvalue()).splitlines()] == [
        [*names[:5], names[5]],
        6 * ["0.1235"],
        [],
    ]
    assert footer == "2 thresholds; not shown: false_positives (csv has all)"


def test_a_roc_curve_of_both_classes_is_drawn_above_its_thresholds_on_a_terminal_alone() -> None:
    curve: dict[str, list[object]] = {
        "threshold": [0.9, 0.5, 0.1],
        "recall": [0.8, 1.0, 1.0],
        "true_positives": [4.0, 5.0, 5.0],
        "false_positives": [0.0, 5.0, 10.0],
    }
    drawn = lines(curve, "roc_curve", *curve, out=Terminal())
    assert drawn[0].strip() == "recall, area 0.95"
    assert drawn[1].startswith(" 1 │")
    assert [line.split()[0] for line in drawn[-4:]] == ["threshold", "0.9", "0.5", "0.1"]
    assert len(lines(curve, "roc_curve", *curve)) == 4


def test_files_have_all_rows_and_all_digits() -> None:
    for format_, first in (("table", "feature  importance  share"), ("csv", "feature,importance,share")):
        out = io.StringIO()
        views.write_file(result(IMPORTANCES, "importances", "importance"), out, format_)
        assert out.getvalue().splitlines()[0] == first
        assert "0.123456" in out.getvalue()


def test_drift_is_a_line_for_each_column() -> None:
    found = [
        ColumnDrift(
            "city", "drifted", "unseen values", 0.3, 0.0, 0.1, 0.25, None, (None, None), (None, None)
        ),
        ColumnDrift("age", "stable", "", 0.01234, 0.02, 0.02, None, 0.0, (18.0, 60.0), (17.0, 61.5)),
    ]
    out = Terminal()
    footer = views.write(Result(STATEMENT, reader=drift.rows(found), view="drift"), out)
    assert [line.split() for line in _plain(out.getvalue()).splitlines()] == [
        ["column", "verdict", "why", "PSI", "NULLs", "unseen"],
        ["city", "drifted", "unseen", "values", "0.300", "0.0", "%,", "now", "10.0", "%", "25.0", "%"],
        ["age", "stable", "0.012", "2.0", "%"],
    ]
    assert footer == "2 columns; not shown: outside, range (--format csv has all)"
    result_set = pytest.importorskip("sqlflow_edl.extensions.notebook.result_set")
    html = result_set.ResultSet(Result(STATEMENT, view="drift"), drift.rows(found).read_all())._repr_html_()
    assert "18 to 60, now 17 to 61.5" in html
    assert "2 columns" in html


def test_models_are_a_line_each_and_say_which_columns_are_left_out() -> None:
    model: dict[str, list[object]] = {
        "name": ["sqlflow_models.my_dnn_model"],
        "version": [2],
        "state": ["failed"],
        "current": [False],
        "tags": [None],
        "model": ["DNNClassifier"],
        "framework": ["keras"],
        "rows": [1200],
        "metrics": [None],
        "created": pa.array([0], pa.timestamp("s")),  # type: ignore[dict-item]
        "size": [1500],
        "reason": ["the loss became nan at step 3"],
    }
    out = Terminal()
    footer = views.write(result(model, "models"), out, others="csv has all")
    [head, line] = _plain(out.getvalue()).splitlines()
    assert head.split() == ["name", "version", "state", "rows", "result"]
    assert line.rstrip().endswith("2  failed  1,200  the loss became nan at ste…")
    assert footer == "1 version; not shown: size, framework, created, model (csv has all)"
