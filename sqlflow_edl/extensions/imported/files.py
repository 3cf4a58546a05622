"""Files that may be imported: where SQL finds them, and what they are by their first bytes and their names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edl.errors import SemanticError, did_you_mean
from edl.extensions.imported.description import FileError
from edl.program.user_model import PATH_VARIABLE, search_path
from edl.spec.imported import FileFormat

MOST_BYTES = 512 << 20  # of a file
WORDS: Mapping[FileFormat, str] = {
    "onnx": "an ONNX model",
    "lightgbm": "a LightGBM model",
    "xgboost": "an XGBoost model",
}
_TO_ONNX = {
    "sklearn": "skl2onnx.to_onnx(model, X[:1], options={'zipmap': False})",
    "torch": "torch.onnx.export(model, (example,), 'm.onnx', external_data=False)",
    "keras": "model.export('m.onnx', format='onnx')",
    "tensorflow": "tf2onnx converts SavedModels",
}
# Ending -> what such a file is, and where its ONNX form comes from.
_PROGRAMS: Mapping[str, tuple[str, str]] = {
    ".pkl": ("a pickle", "sklearn"),
    ".pickle": ("a pickle", "sklearn"),
    ".joblib": ("a pickle of joblib", "sklearn"),
    ".dill": ("a pickle of dill", "sklearn"),
    ".pt": ("a pickle of PyTorch", "torch"),
    ".pth": ("a pickle of PyTorch", "torch"),
    ".pt2": ("a program of torch.export", "torch"),
    ".keras": ("a Keras model, which may contain Python code", "keras"),
    ".h5": ("a Keras model, which may contain Python code", "keras"),
    ".hdf5": ("a Keras model, which may contain Python code", "keras"),
    ".pb": ("a TensorFlow graph", "tensorflow"),
    ".py": ("a Python program", "sklearn"),
}
_OTHERS: Mapping[str, str] = {
    ".cbm": "a CatBoost model: export it by model.save_model('m.onnx', format='onnx')",
    ".tflite": "a TensorFlow Lite model: tf2onnx converts it",
    ".mlmodel": "a Core ML model: export the model it was made of to ONNX",
    ".pmml": "a PMML model: export the model it was made of to ONNX",
    ".safetensors": "weights without their model: export the model with them to ONNX",
    ".zip": "perhaps a model of sqlflow: the command copy reads such files",
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """File that was read: its name, its bytes and their digest."""

    name: str
    data: bytes
    format: FileFormat

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def find_file(path: str) -> Path:
    """Return the file that SQL names: below a folder of the model path, also after its links are followed.

    Raises SemanticError if it is elsewhere, or there is none.
    """
    if "://" in path or path.startswith(("gs:", "s3:")):
        raise SemanticError(
            f"{path} is not a file of this machine", hint="download it first, and name the file"
        )
    folders = [Path(folder).resolve() for folder in search_path()]
    shown = ", ".join(map(str, folders))
    for folder in folders:
        file = (folder / path).resolve()
        if file.is_relative_to(folder) and file.exists():
            return file
    if any((folder / path).exists() for folder in folders):
        raise SemanticError(
            f"{path} is outside of the folders of models, which are all that SQL may name: {shown}",
            hint=f"copy it there, or set {PATH_VARIABLE}; the command import takes any file",
        )
    names = sorted(file.name for folder in folders for file in folder.glob("*") if file.suffix in _SUFFIXES)
    hint = did_you_mean(Path(path).name, names, list_up_to=8)
    raise SemanticError(
        f"there is no file {path} in {shown}", hint=hint or f"name a file below a folder of {PATH_VARIABLE}"
    )


_SUFFIXES = frozenset((".onnx", ".txt", ".json", ".ubj", ".model", ".lgb", ".bin"))


def check_size(file: Path) -> None:
    """Raise FileError for a folder, and for a file that is empty or too large."""
    if file.is_dir():
        saved = (file / "saved_model.pb").exists()
        kind = "a SavedModel, a program of TensorFlow" if saved else "a folder"
        hint = (
            f"export it as ONNX: {_TO_ONNX['tensorflow']}"
            if saved
            else "name a file of ONNX, LightGBM or XGBoost"
        )
        raise FileError(f"{file.resolve().name} is {kind}, which is not imported", hint=hint)
    try:
        size = file.stat().st_size
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror}") from None
    if not size:
        raise FileError(f"{file.name} is empty", hint="export it again where the model was trained")
    if size > MOST_BYTES:
        raise FileError(
            f"{file.name} has {size / 2**20:,.0f} MiB, and {MOST_BYTES >> 20} MiB are the most that is imported",
            hint="a model for rows of a table is smaller; quantize it, or take fewer trees",
        )


def read_file(file: Path, expected: FileFormat | None = None) -> SourceFile:
    """Read a file. Raises FileError for one that is a program, of another format, too large, or cannot be read."""
    check_size(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read {file}: {error.strerror}") from None
    refuse_program(file.name, data)
    format_here = format_of(file.name, data)
    if format_here is None:
        kind = _OTHERS.get(file.suffix.lower())
        imported_formats = "files of ONNX, of LightGBM (text) and of XGBoost (JSON, UBJSON) are imported"
        raise FileError(
            f"{file.name} is {kind.partition(':')[0]}, which is not imported"
            if kind
            else f"{file.name} is no model: {imported_formats}",
            hint=kind.partition(": ")[2] if kind else "export it again where the model was trained",
        )
    if expected and expected != format_here:
        raise FileError(
            f"{file.name} is {WORDS[format_here]}, and not {WORDS[expected]}",
            hint=f"its model_type is '{format_here}'",
        )
    return SourceFile(file.name, data, format_here)


def refuse_program(name: str, data: bytes) -> None:
    """Raise FileError for a file that runs code when it is loaded, by its first bytes or its name."""
    kind, framework = _PROGRAMS.get(Path(name).suffix.lower(), ("", ""))
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        kind, framework = kind or "a pickle", framework or "sklearn"
    elif data.startswith(b"PK\x03\x04") and b"data.pkl" in data[:4096]:
        kind, framework = "a pickle of PyTorch", "torch"
    elif data.startswith(b"\x89HDF"):
        kind, framework = "a Keras model, which may contain Python code", "keras"
    if kind:
        raise FileError(
            f"{name} is {kind}: to load it would run what is in it, so it is not imported",
            hint=f"export it as ONNX where it was trained, and import that: {_TO_ONNX[framework]}",
        )


def format_of(name: str, data: bytes) -> FileFormat | None:
    """Return the format by the first bytes, and where they do not tell by the name; None for another file."""
    if data.startswith((b"tree\n", b"tree\r\n")):
        return "lightgbm"
    if data[:1] == b"{" and (b"learner" in data[:200] or Path(name).suffix.lower() in (".json", ".ubj")):
        return "xgboost"
    if data.startswith(b"binf"):
        raise FileError(
            f"{name} is a model of an old binary format of XGBoost",
            hint="load it with the XGBoost that wrote it, and save_model('m.json')",
        )
    if Path(name).suffix.lower() == ".onnx" or data[:1] == b"\x08":  # the version of ONNX comes first
        return "onnx"
    return None
