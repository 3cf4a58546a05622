"""Description of a model's file, made in a process of its own (`reading`).

A library may crash at a damaged file, and takes a second to import.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from edl.errors import JobError, SQLFlowError
from edl.spec.imported import FileFormat, Gives

SECONDS = 300.0  # in which a file has to be read


class FileTensor(msgspec.Struct, frozen=True):
    """Input or output of an ONNX file, or the matrix of trees.

    `shape`: a number for each fixed size, None for a free one. `operator`: what makes an output. `extremes`: the least
    and the greatest number of an output for made-up rows; empty if there are none.
    """

    name: str
    type: str
    shape: tuple[int | None, ...]
    operator: str = ""
    extremes: tuple[float, ...] = ()


class MatrixColumn(msgspec.Struct, frozen=True):
    """Column of a matrix of trees: its name in the file, if any, and the values of a category by their codes."""

    name: str = ""
    categories: tuple[str | int, ...] = ()


class OwnExport(msgspec.Struct, frozen=True):
    """Metadata of a file of our own export: the label as JSON, its threshold, and the text for NULL."""

    label: msgspec.Raw
    threshold: float | None = None
    nulls: dict[str, str] = {}


class FileDescription(msgspec.Struct, frozen=True):
    """Contents of a file. `columns` are of trees; `classes` are named by the file, in the order of its scores.

    `objective` is the loss of trees, `outputs_of_trees` their number of scores, `rounds` their rounds, and `best` the
    number of rounds that early stopping found best, 0 without it. `parameters` are of `edl.frameworks.trees`.
    """

    format: FileFormat
    producer: str = ""
    inputs: tuple[FileTensor, ...] = ()
    outputs: tuple[FileTensor, ...] = ()
    metadata: dict[str, str] = {}
    classes: tuple[str | int, ...] = ()
    width: int = 0
    columns: tuple[MatrixColumn, ...] = ()
    objective: str = ""
    outputs_of_trees: int = 1
    rounds: int = 0
    best: int = 0
    booster: str = "gbtree"
    importances: dict[str, tuple[float, ...]] = {}
    gives: Gives = "number"
    of_export: OwnExport | None = None


class FileRefusal(msgspec.Struct, frozen=True):
    """Reason why a file is not imported."""

    message: str
    hint: str | None = None


class FileError(SQLFlowError):
    """File that is not imported."""


def describe_file(file: Path, format_: FileFormat) -> FileDescription:
    """Read a file in another process. Raises FileError if it is damaged, or has what is not imported."""
    command = [sys.executable, "-P", "-m", "edl.extensions.imported.reading", format_, str(file)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise FileError(f"the file was not read in {SECONDS:.0f} s", hint="is it damaged?") from None
    try:
        if done.returncode == 0:
            return msgspec.json.decode(done.stdout, type=FileDescription)
        refusal = msgspec.json.decode(done.stdout, type=FileRefusal)
    except msgspec.MsgspecError:  # it ended without an answer
        raise FileError(
            f"the file is damaged: {LIBRARIES[format_]} ended with code {done.returncode} when it read it",
            hint="export it again where the model was trained, and compare the sizes of both files",
        ) from None
    raise FileError(refusal.message, hint=refusal.hint)


LIBRARIES: Mapping[FileFormat, str] = {
    "onnx": "ONNX Runtime",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
}


def damaged_file_error(format_: FileFormat, why: str) -> JobError:
    """Return the error of a file that no library reads."""
    return JobError(
        f"the file is damaged, or is none of {LIBRARIES[format_].removesuffix(' Runtime')}: {why}",
        hint="export it again where the model was trained, and compare the sizes of both files",
    )
