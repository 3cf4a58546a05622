"""A model as one static file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.jobs.trials import Trial
from edl.models.archive import read_archive
from edl.models.registry.records import ModelRecord, ModelVersion
from edl.spec import Calibration, ClassLabel, Residuals
from sqlflow_edl.cli.main import main
from sqlflow_edl.extensions.web.model_reader import ModelDetails
from sqlflow_edl.extensions.web.model_view import render_report
from tests.edl.models.conftest import SPEC, write


def test_a_report_is_one_file_that_refers_to_nothing(source: str, tmp_path: Path) -> None:
    file = tmp_path / "dear.html"
    assert main(["report", "dear", "--source", source, "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"(?:href|src)=|url\(|@import|<form", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert 'aria-label="ROC curve of TRUE' in text
    assert "version 2" in text


@pytest.mark.parametrize(("total", "kind"), [(60, "test"), (40, "validation")])
def test_a_report_names_the_rows_that_its_scores_and_errors_are_of(
    total: int, kind: str, tmp_path: Path
) -> None:
    rows = msgspec.structs.replace(SPEC.rows, total=total, training=30, validation=10)
    record = ModelRecord("Ensemble", "ensemble", 30, {}, SPEC.statement)
    trials = [
        Trial(1, "DNN", SPEC.statement, epochs=20),
        Trial(2, "BoostedTrees (lightgbm)", SPEC.statement, epochs=1500),
    ]
    version = ModelVersion("m", 1, "ready", True, "2026-01-01T00:00:00", record, "", "abc", 1000, "0")

    def page(**parts: Any) -> str:
        parts["spec"] = msgspec.structs.replace(SPEC, rows=rows, label=parts.pop("label", SPEC.label))
        archive = read_archive(write(tmp_path / "m.zip", trials=trials, **parts))
        return render_report(ModelDetails(version, archive, {}, (), (version,)))

    classes = page(
        label=ClassLabel("y", ("a", "b")), uncertainty=Calibration(confusion=((9.0, 1.0), (0.0, 10.0)))
    )
    count = 20 if kind == "test" else 10
    assert re.findall(r">([^<>]* (?:epoch|round)s)<", classes) == ["20 epochs", "1,500 rounds"]
    assert f'Predicted classes <span class="faint">of {count} {kind} rows</span>' in classes
    errors = page(uncertainty=Residuals(20, (1.0, 2.0)))
    assert f'Errors <span class="faint">of 20 {kind} rows</span>' in errors
    assert f'Metrics <span class="faint">of {count} {kind} rows</span>' in errors


@pytest.mark.soak
def test_a_report_of_an_unknown_model_names_the_nearest_and_writes_nothing(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deer.html"
    assert main(["report", "deer", "--source", source, "-o", str(file)]) == 1
    assert "did you mean dear?" in capsys.readouterr().err
    assert not file.exists()
