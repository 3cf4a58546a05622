"""`sqlflow import FILE --as NAME`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.session.session import Session
from tests.onnx_files import identity, linear, softmax


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"duckdb:///{tmp_path}/d.duckdb"


def test_a_file_anywhere_becomes_a_model(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "it's.onnx").write_bytes(softmax(2))
    arguments = [
        "--input-columns",
        "a, b",
        "--label",
        "y",
        "--classes",
        "no,yes",
        "--source",
        url,
        "--create",
    ]
    assert main(["import", str(tmp_path / "it's.onnx"), "--as", "team.m", *arguments]) == 0
    assert "as team.m@1: test predicts y, 2 classes: no, yes, from a, b" in capsys.readouterr().err
    with Session(url) as session:
        [shown] = session.run("SHOW TRAIN team.m")
        [predicted] = session.run("SELECT 3 AS a, 4 AS b TO PREDICT USING team.m")
    assert "it''s.onnx" in shown.to_pandas()["statement"][0]
    assert predicted.to_pandas()["y"][0] == "yes"


def test_whole_numbers_are_classes_as_numbers(url: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(softmax(2))
    arguments = ["--input-columns", "a,b", "--classes", "7,9", "--source", url, "--create"]
    assert main(["import", str(tmp_path / "m.onnx"), "--as", "m", *arguments]) == 0
    with Session(url) as session:
        assert session.run("SELECT 3 AS a, 4 AS b TO PREDICT USING m")[0].to_pandas()["prediction"][0] == 9


def test_a_refused_file_leaves_no_model(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(linear([1, 2])[:50])
    (tmp_path / "m.pkl").write_bytes(b"\x80\x04.")
    for file, message in {
        "m.onnx": "m.onnx is damaged",
        "m.pkl": "m.pkl is a pickle",
        "no.onnx": "cannot read",
    }.items():
        assert main(["import", str(tmp_path / file), "--as", "m", "--source", url, "--create"]) == 1
        assert message in capsys.readouterr().err
    with Session(url, create=True) as session:
        assert not session.registry.has("m")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ([], "add --input-columns a,b, in the order of the training"),
        (["--input-columns", "a,b"], "write --output-kind logits, or 'probabilities'"),
    ],
)
def test_a_hint_names_the_options_of_the_command(
    options: list[str], hint: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(identity(shape=(None, 2)))
    assert main(["import", str(tmp_path / "m.onnx"), "--as", "m", *options, "--source", url, "--create"]) == 1
    assert hint in capsys.readouterr().err


def test_an_imported_model_is_not_trained_again(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(linear([1]))
    main(
        ["import", str(tmp_path / "m.onnx"), "--as", "m", "--input-columns", "a", "--source", url, "--create"]
    )
    assert main(["retrain", "m", "--source", url]) == 1
    assert "m was imported from a file, and is not trained here" in capsys.readouterr().err


def test_export_gives_the_file_back(url: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(data := linear([1]))
    main(
        ["import", str(tmp_path / "m.onnx"), "--as", "m", "--input-columns", "a", "--source", url, "--create"]
    )
    assert main(["export", "m", "-o", str(tmp_path / "back.onnx"), "--source", url]) == 0
    assert (tmp_path / "back.onnx").read_bytes() == data


def test_a_copy_in_another_place_predicts_too(url: str, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(linear([2]))
    main(
        ["import", str(tmp_path / "m.onnx"), "--as", "m", "--input-columns", "a", "--source", url, "--create"]
    )
    other = f"sqlite:///{tmp_path}/other.sqlite"
    assert main(["copy", "m", "--to", other, "--create", "--source", url]) == 0
    with Session(other) as session:
        [predicted] = session.run("SELECT 3 AS a TO PREDICT USING m")
    assert predicted.to_pandas()["prediction"][0] == 6
