"""`sqlflow init`: a folder with a program that runs, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.samples import project


def test_a_program_without_errors_lies_beside_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "my shop")]) == 0
    told = capsys.readouterr().err
    assert "cd '" in told
    assert project.RUN in told
    monkeypatch.chdir(tmp_path / "my shop")
    assert sorted(each.name for each in Path().iterdir()) == ["README.md", "data.duckdb", "incomes.sql"]
    assert main(["lint", project.PROGRAM, "--source", project.DATABASE]) == 0
    assert main(["init", "."]) == 1
    assert "is not an empty folder" in capsys.readouterr().err


@pytest.mark.soak
def test_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "."]) == 0
    assert main(project.RUN.split()[1:]) == 0
    told = capsys.readouterr()
    assert "Done. OK=4" in told.err
    assert "engineering" in told.out


def test_without_a_library_that_trains_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(project, "find_spec", lambda _: None)
    assert main(["init", str(tmp_path / "shop")]) == 1
    assert "pip install" in capsys.readouterr().err
    assert not (tmp_path / "shop").exists()


def test_nothing_is_left_of_a_folder_that_cannot_be_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "_README", "\ud800")  # cannot be written as UTF-8
    with pytest.raises(UnicodeEncodeError):
        main(["init", str(tmp_path / "shop")])
    assert not (tmp_path / "shop").exists()
