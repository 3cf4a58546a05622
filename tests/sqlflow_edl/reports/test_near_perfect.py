"""Metrics that are nearly perfect are doubted; warnings stand below the metrics and in all reports of a model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edl.models.archive import read_archive
from edl.models.fitting import ColumnSummary, Fitting
from edl.models.registry.records import ModelRecord, ModelVersion
from edl.spec import ClassLabel
from sqlflow_edl.display.final_report import final_report
from sqlflow_edl.reports.description import describe
from sqlflow_edl.reports.near_perfect import doubt
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse
from tests.edl.models.conftest import SPEC, write

CHURNED = msgspec.structs.replace(SPEC, label=ClassLabel("churned", (False, True)))
LEAK = "whether reason is NULL alone predicts churned almost perfectly"


def of_rows(most_frequent: int, rows: int = 1000) -> Fitting:
    counts = ((False, most_frequent), (True, rows - most_frequent))
    return Fitting(columns={"churned": ColumnSummary(rows, 0, distinct=2, top=counts)})


@pytest.mark.parametrize(
    ("figures", "rows", "most_frequent"),
    [
        ({"accuracy": 0.9955, "auc": 0.998}, 2000, 817),
        ({"accuracy": 0.99, "auc": 0.9996}, 2000, 970),
        ({"accuracy": 1.0}, 200, 500),
    ],
)
def test_metrics_of_classes_that_are_nearly_perfect_are_doubted(
    figures: dict[str, float], rows: int, most_frequent: int
) -> None:
    said = doubt(CHURNED, figures, "test", rows, of_rows(most_frequent), "m")
    assert said.endswith(
        f" of {rows:,} test rows is too good to be true of most data: look for a column that is known only when "
        "churned is; SELECT … TO EXPLAIN m names the most important ones"
    )


@pytest.mark.parametrize(
    ("figures", "rows", "most_frequent"),
    [
        ({"accuracy": 0.98, "auc": 0.9}, 2000, 980),  # as good as guessing
        ({"accuracy": 0.97, "auc": 0.992}, 2000, 500),
        ({"accuracy": 1.0, "auc": 1.0}, 30, 817),  # few rows
        ({"accuracy": 1.0, "auc": None}, 2000, 817),  # one class
        ({"accuracy": 0.98, "auc": 0.9963}, 569, 627),  # breast_cancer
    ],
)
def test_good_metrics_and_metrics_of_few_rows_are_not(
    figures: dict[str, float], rows: int, most_frequent: int
) -> None:
    assert doubt(CHURNED, figures, "test", rows, of_rows(most_frequent), "m") == ""


@pytest.mark.parametrize(
    ("r2", "rows", "doubted"), [(0.995, 500, True), (0.984, 6000, False), (1.0, 20, False)]
)
def test_numbers_are_doubted_by_their_r2(r2: float, rows: int, doubted: bool) -> None:
    assert bool(doubt(SPEC, {"rmse": 1.0, "r2": r2}, "validation", rows, None, "m")) is doubted


def test_near_perfect_metrics_of_training_rows_say_nothing_about_others() -> None:
    said = doubt(CHURNED, {"accuracy": 1.0, "auc": 1.0}, "training", 3, of_rows(2, 3), "m")
    assert said == (
        "accuracy 1 of 3 training rows says nothing about other rows: the model was trained on them; add VALIDATE 0.2"
    )


def test_warnings_are_repeated_below_the_metrics() -> None:
    [statement] = parse("SELECT 1")
    lines = final_report(
        Result(statement, message="trained", warnings=(LEAK, "second"), figures={"auc": 1.0}, model="m@1")
    )
    assert lines[1:4] == ["auc       1", f"warnings  {LEAK}", "          second"]


def test_warnings_stand_in_the_description_and_the_page_of_a_model(tmp_path: Path) -> None:
    fitting = msgspec.structs.replace(of_rows(817), warnings=(LEAK,))
    figures = {"accuracy": 0.9955, "auc": 0.998}
    rows = msgspec.structs.replace(SPEC.rows, total=9000, training=7000, validation=2000)
    spec = msgspec.structs.replace(CHURNED, rows=rows)
    archive = read_archive(write(tmp_path / "m.zip", spec=spec, fitting=fitting, metrics=figures))
    record = ModelRecord("DNNClassifier", "keras", 7000, figures, SPEC.statement)
    version = ModelVersion("m", 1, "ready", True, "2026-01-01T00:00:00", record, "", "abc", 1000, "0")
    doubted = "accuracy 0.9955 of 2,000 validation rows is too good to be true"
    described = [value for section, _, value in describe(version, archive) if section == "warnings"]
    assert described[0] == LEAK
    assert described[1].startswith(doubted)
    reader = pytest.importorskip("sqlflow_edl.extensions.web.model_reader")
    view = pytest.importorskip("sqlflow_edl.extensions.web.model_view")
    page = view.render_report(reader.ModelDetails(version, archive, {}, (), (version,)))
    assert LEAK in page
    assert doubted in page
