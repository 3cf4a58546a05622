"""Files that are imported, and those that are refused before a library sees them."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import pytest

from edl.errors import SQLFlowError
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.extensions.imported import files
from sqlflow_edl.extensions.imported.files import find_file, read_file
from tests.onnx_files import linear


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder that SQL may name files of; beside it is one that it may not."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "m.onnx").write_bytes(linear([1]))
    (tmp_path / "secret.onnx").write_bytes(linear([1]))
    monkeypatch.setenv(PATH_VARIABLE, str(folder))
    return folder


def test_sql_names_files_of_the_model_path(models: Path) -> None:
    for name in ("m.onnx", "./m.onnx", str(models / "m.onnx"), "../models/m.onnx"):
        assert find_file(name) == models / "m.onnx"


@pytest.mark.parametrize(
    "name", ["../secret.onnx", "{parent}/secret.onnx", "link.onnx", "folder/secret.onnx"]
)
def test_a_path_outside_of_it_is_refused_also_over_links(name: str, models: Path) -> None:
    (models / "link.onnx").symlink_to(models.parent / "secret.onnx")
    (models / "folder").symlink_to(models.parent)
    with pytest.raises(SQLFlowError, match="is outside of the folders of models"):
        find_file(name.format(parent=models.parent))


def test_a_file_that_is_not_there_is_an_error_with_the_nearest_one(models: Path) -> None:
    with pytest.raises(SQLFlowError, match=r"there is no file n\.onnx") as raised:
        find_file("n.onnx")
    assert raised.value.hint == "did you mean m.onnx?"
    with pytest.raises(SQLFlowError, match="is not a file of this machine"):
        find_file("gs://bucket/m.onnx")


@pytest.mark.parametrize(
    ("name", "data", "message", "way_out"),
    [
        ("m.pkl", b"anything", "is a pickle", "skl2onnx"),
        ("m.joblib", b"anything", "is a pickle of joblib", "skl2onnx"),
        ("m.onnx", pickle.dumps({"a": 1}), "is a pickle", "skl2onnx"),
        ("m.pt", b"anything", "is a pickle of PyTorch", "torch.onnx.export"),
        ("m.bin", b"PK\x03\x04....archive/data.pkl", "is a pickle of PyTorch", "torch.onnx.export"),
        ("m.keras", b"PK\x03\x04", "is a Keras model", "model.export"),
        ("m.bin", b"\x89HDF\r\n", "is a Keras model", "model.export"),
        ("saved_model.pb", b"\x08\x01", "is a TensorFlow graph", "tf2onnx"),
    ],
)
def test_a_program_is_refused_by_name_with_the_way_out(
    name: str, data: bytes, message: str, way_out: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SQLFlowError, match=message) as raised:
        read_file(tmp_path / name)
    assert way_out in str(raised.value.hint)


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "exploded",)

    (tmp_path / "m.onnx").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(SQLFlowError, match="is a pickle"):
        read_file(tmp_path / "m.onnx")
    assert not (tmp_path / "exploded").exists()


def test_a_saved_model_is_refused_by_its_folder(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(SQLFlowError, match="is a SavedModel, a program of TensorFlow"):
        read_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.onnx", b"", "m.onnx is empty"),
        ("m.cbm", b"CBM1", "is a CatBoost model, which is not imported"),
        ("m.txt", b"hello", "m.txt is no model"),
        ("m.model", b"binf0000", "an old binary format of XGBoost"),
    ],
)
def test_another_file_is_refused_by_its_kind(name: str, data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SQLFlowError, match=message):
        read_file(tmp_path / name)


def test_a_model_of_ours_is_to_be_copied(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        archive.writestr("job.json", "{}")
    with pytest.raises(SQLFlowError, match="perhaps a model of sqlflow") as raised:
        read_file(tmp_path / "m.zip")
    assert "copy" in str(raised.value.hint)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    (tmp_path / "m.onnx").write_bytes(bytes(101))
    with pytest.raises(SQLFlowError, match="0 MiB are the most that is imported"):
        read_file(tmp_path / "m.onnx")


def test_a_file_of_another_type_than_the_statement_says_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_bytes(b"tree\nversion=v4\n")
    with pytest.raises(SQLFlowError, match="is a LightGBM model, and not an ONNX model") as raised:
        read_file(tmp_path / "m.txt", "onnx")
    assert raised.value.hint == "its model_type is 'lightgbm'"
