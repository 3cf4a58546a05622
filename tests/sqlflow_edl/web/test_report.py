"""A model as one static file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main


def test_a_report_is_one_file_that_refers_to_nothing(source: str, tmp_path: Path) -> None:
    file = tmp_path / "dear.html"
    assert main(["report", "dear", "--source", source, "-o", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"(?:href|src)=|url\(|@import|<form", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert 'aria-label="ROC curve of TRUE' in text
    assert "version 2" in text


@pytest.mark.soak
def test_a_report_of_an_unknown_model_names_the_nearest_and_writes_nothing(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deer.html"
    assert main(["report", "deer", "--source", source, "-o", str(file)]) == 1
    assert "did you mean dear?" in capsys.readouterr().err
    assert not file.exists()
