"""Export of trained models to formats that need none of this package: Keras, TensorFlow SavedModel, torch.export,
ONNX, and the files of LightGBM and XGBoost.

ONNX models of trees and of networks take the raw columns of the table, see `edl.frameworks.trees.onnx` and
`edl.frameworks.networks.onnx`, unless a feature has no operator there; so do SavedModels of Keras, and programs of
torch.export without columns of texts.

The libraries' files of trees take the float64 matrix `dense` of the program's `feed`, with NaN for missing values.
Another exported model takes what the program's `feed` makes of a batch, a dict of arrays: `dense` float32 (n, k), and
ids int64 (n,) under `f0`, `f1`, …. It returns the model's outputs, logits for classes; for an ensemble it returns the
mean of its members' numbers, or the logits of their mean probabilities. The number of rows is free. Lists of ids are
given as by `Ragged.padded`, with any number of ids per row.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from edl.arrays import Array, Features, arrays, map_arrays, pad_lists
from edl.errors import JobError
from edl.frameworks.networks.onnx import NetworkFile, reason_against
from edl.frameworks.onnx.columns import is_text
from edl.installation import install_extras
from edl.ragged import Ragged
from edl.spec import ENSEMBLE, ONNX, JobSpec, Label, source_columns

if TYPE_CHECKING:
    from edl.program import Program

Write = Callable[[Any, Features, Path], str | None]  # what it wrote, if the words of `FORMATS` do not say all


def check_target(framework: str, path: Path) -> None:
    """Raise JobError if the framework's models have no format of that suffix, or the target exists."""
    formats = FORMATS[framework]
    if path.suffix not in formats:
        targets = ", ".join(f"{suffix or 'a folder'} ({words})" for suffix, (words, _) in formats.items())
        nouns: dict[str, str] = {ENSEMBLE: "an ensemble", ONNX: "an imported ONNX model"}
        what = nouns.get(framework) or f"a model in {framework}"
        raise JobError(f"{what} cannot be written to {path.name}", hint=f"there are {targets}")
    if path.exists():
        raise JobError(f"{path} is there already", hint="remove it, or choose another name")
    if not path.parent.is_dir():
        raise JobError(
            f"cannot write {path}: {path.parent} is not a folder", hint="make it, or choose another"
        )
    if not os.access(path.parent, os.W_OK):
        raise JobError(
            f"cannot write {path}: {path.parent} is read-only for this user", hint="choose another folder"
        )


def export(framework: str, model: Any, features: Features, path: Path) -> str:
    """Write the model in the format of the path's suffix, which was checked; return the name of the format.

    `features` is an example input of two rows or more. Raises JobError if a package is missing.
    """
    words, write = FORMATS[framework][path.suffix]
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # the exporters praise themselves on it
            words_of_writer = write(model, features, partial)
        partial.replace(path)
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True) if partial.is_dir() else partial.unlink(missing_ok=True)
    return words_of_writer or words


def _keras(model: Any, features: Features, path: Path) -> None:
    try:
        model.save(path)
    except NotImplementedError as error:  # Keras names the class in the middle of an example
        named = re.search(r"Object (\w+) was created", str(error))
        layer = f"a layer {named[1]}" if named else "a layer"
        raise JobError(
            f"{path.suffix} files keep layers by their settings, and the model has {layer} without any",
            hint="write a SavedModel: --output FOLDER, without a suffix",
        ) from None


def _saved_model(model: Any, features: Features, path: Path) -> str | None:
    if isinstance(model, NetworkFile):
        from edl.frameworks.keras.saved_model import save

        save(model, path)
        return f"a TensorFlow SavedModel of {model.onnx_inputs}"
    model.export(str(path), format="tf_saved_model", verbose=False)
    return "a TensorFlow SavedModel of the transformed features"


def _trees(model: Any, features: Features, path: Path) -> None:
    path.write_bytes(model.of_library(path.suffix))


def _file(model: bytes, features: Features, path: Path) -> None:
    path.write_bytes(model)


def _of_columns(model: Any, features: Features, path: Path) -> str:
    path.write_bytes(model.of_onnx())
    return f"an ONNX model of {model.onnx_inputs}"


def network_file(program: Program, weights: Mapping[str, Array], suffix: str) -> NetworkFile | str:
    """Return the model as a graph over the columns of the table, or the reason why it takes features instead.

    Raises JobError for Keras, which has no graph of features.
    """
    spec = msgspec.structs.replace(program.spec, edited=program.edited)
    reason = reason_against(spec, weights)
    if suffix == ".pt2" and not reason:
        reason = reason_against_tensors(spec)
    if not reason:
        return NetworkFile(spec, weights)
    if spec.framework == "keras" and suffix == ".onnx":
        raise JobError(
            f"a Keras model is written to ONNX from the columns of its table, and {reason}",
            hint="write it to FILE.keras or a folder, which take the transformed features; or train it WITH "
            "model.framework = torch",
        )
    return reason


def reason_against_tensors(spec: JobSpec) -> str:
    """Return the reason why the columns cannot be tensors, empty if they can."""
    texts = [name for feature in spec.features if is_text(feature) for name in source_columns(feature)]
    return f"its column {texts[0]} is a text, which no tensor holds, but FILE.onnx takes" if texts else ""


def check_lists(framework: str, model: Any, features: Features, expected: Array) -> None:
    """Raise JobError if the model uses lists of ids beyond reading row tables, such as counting them.

    `model` is the one to export; `expected` are its outputs for the features before it contained its rows.
    """
    if not any(isinstance(array, Ragged) for _, array in arrays(features)):
        return
    try:
        padded = pad_lists(features)
        outputs = model(padded) if framework == "keras" else model.eval()(_tensors(features)).detach()
        same = outputs.shape == expected.shape and np.allclose(
            outputs.numpy(), expected, rtol=1e-3, atol=1e-5
        )
    except (TypeError, ValueError, RuntimeError):  # of a framework, about shapes
        same = False
    if not same:
        raise JobError(
            "a model that does more with lists of ids than to read row tables by them cannot be exported",
            hint="let feed give what it needs, such as their number, as a feature of its own",
        )


def average_members(framework: str, model: Any, label: Label) -> Any:
    """Return a model that averages the outputs of an ensemble, (n, members, k), to outputs of one model, (n, k)."""
    regression, binary = not label.has_classes, label.outputs == 1
    return (_averaged_keras if framework == "keras" else _averaged_torch)(model, regression, binary)


def _averaged_keras(model: Any, regression: bool, binary: bool) -> Any:
    import keras

    ops, outputs = keras.ops, model.output
    if regression:
        return keras.Model(model.input, ops.mean(outputs, axis=1))
    if binary:
        yes, no = ops.log_sigmoid(outputs), ops.log_sigmoid(-outputs)
        return keras.Model(model.input, ops.logsumexp(yes, axis=1) - ops.logsumexp(no, axis=1))
    return keras.Model(model.input, ops.logsumexp(ops.log_softmax(outputs, axis=-1), axis=1))


def _averaged_torch(model: Any, regression: bool, binary: bool) -> Any:
    import torch
    from torch.nn import functional

    class Averaged(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.members = model

        def forward(self, features: dict[str, torch.Tensor]) -> torch.Tensor:
            outputs = self.members(features)
            if regression:
                return torch.mean(outputs, dim=1)
            if binary:
                yes, no = functional.logsigmoid(outputs), functional.logsigmoid(-outputs)
                return torch.logsumexp(yes, dim=1) - torch.logsumexp(no, dim=1)
            return torch.logsumexp(functional.log_softmax(outputs, dim=-1), dim=1)

    return Averaged()


def _tensors(features: Features) -> Any:
    import torch

    return map_arrays(torch.from_numpy, pad_lists(features))


def _export_model(model: Any, features: Features) -> Any:
    import torch

    tensors = _tensors(features)
    rows, length = torch.export.Dim("rows"), torch.export.Dim.DYNAMIC
    shapes = map_arrays(
        lambda array: {0: rows, 1: length} if isinstance(array, Ragged) else {0: rows}, features
    )
    return torch.export.export(model.eval(), (tensors,), dynamic_shapes=(shapes,))


def _torch(model: Any, features: Features, path: Path) -> str:
    if isinstance(model, NetworkFile):
        from edl.frameworks.torch.exported import save

        save(model, path)
        return f"a torch.export program of {model.onnx_inputs}"
    import torch

    torch.export.save(_export_model(model, features), path)
    return "a torch.export program of the transformed features"


def _onnx(model: Any, features: Features, path: Path) -> str:
    if isinstance(model, NetworkFile):
        return _of_columns(model, features, path)
    import torch

    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise JobError(f"ONNX needs the package {package}", hint=install_extras("onnx"))
    program = _export_model(model, features)
    names = list(features) if isinstance(features, dict) else None
    torch.onnx.export(
        program, f=path, input_names=names, output_names=["outputs"], external_data=False, verbose=False
    )
    return "an ONNX model of the transformed features"


# Formats of networks that may read columns.
OVER_COLUMNS = {("keras", ""), ("keras", ".onnx"), ("torch", ".onnx"), ("torch", ".pt2")}
FORMATS: dict[str, dict[str, tuple[str, Write]]] = {
    "keras": {
        ".keras": ("a Keras model", _keras),
        "": ("a TensorFlow SavedModel", _saved_model),
        ".onnx": ("an ONNX model", _of_columns),
    },
    "lightgbm": {".txt": ("a LightGBM model", _trees), ".onnx": ("an ONNX model", _of_columns)},
    "xgboost": {
        ".ubj": ("an XGBoost model", _trees),
        ".json": ("an XGBoost model in JSON", _trees),
        ".onnx": ("an ONNX model", _of_columns),
    },
    ENSEMBLE: {".onnx": ("an ONNX model", _of_columns)},
    ONNX: {".onnx": ("the ONNX file that was imported", _file)},
    "torch": {".pt2": ("a torch.export program", _torch), ".onnx": ("an ONNX model", _onnx)},
}
