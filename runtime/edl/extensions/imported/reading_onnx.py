"""Description of an ONNX file: what it needs and gives, checked by a run over two made-up rows."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import numpy as np

from edl.errors import JobError
from edl.extensions.imported.adapter import FAILURES, TYPES, first_line, open_session
from edl.extensions.imported.description import FileDescription, FileTensor, OwnExport, damaged
from edl.extensions.imported.onnx_file import read_onnx, refuse_parts
from edl.frameworks.onnx.columns import METADATA

_MAPS = ("seq(map(int64,tensor(float)))", "seq(map(string,tensor(float)))")
# Operators whose results are probabilities.
_PROBABILITIES = frozenset(
    {
        "Softmax",
        "Sigmoid",
        "ZipMap",
        "Normalizer",
        "TreeEnsembleClassifier",
        "LinearClassifier",
        "SVMClassifier",
    }
)


def describe(data: bytes) -> FileDescription:
    """Return the description of a file. Raises JobError for one that is damaged, or needs other files or libraries."""
    try:
        file = read_onnx(data)
    except ValueError as error:
        raise damaged("onnx", str(error)) from None
    refuse_parts(file)
    _check_by_onnx(data)
    try:
        session = open_session(data)
    except FAILURES as error:
        raise damaged("onnx", first_line(error)) from None
    inputs = tuple(
        FileTensor(tensor.name, tensor.type, _shape(tensor.shape)) for tensor in session.get_inputs()
    )
    outputs = tuple(
        FileTensor(tensor.name, tensor.type, _shape(tensor.shape), file.operator_behind(tensor.name))
        for tensor in session.get_outputs()
    )
    tried = _try(session, inputs, outputs)
    outputs = tuple(
        msgspec.structs.replace(output, shape=tried.get(output.name, output.shape)) for output in outputs
    )
    of_export = file.metadata.get(METADATA)
    return FileDescription(
        "onnx",
        file.producer,
        inputs,
        outputs,
        {name: text for name, text in file.metadata.items() if name != METADATA},
        _classes_of_maps(session, inputs, outputs) or file.classes,
        of_export=msgspec.json.decode(of_export, type=OwnExport) if of_export else None,
    )


def _check_by_onnx(data: bytes) -> None:
    """Let the checker of the package onnx, where it is installed, check the file."""
    if importlib.util.find_spec("onnx") is None:
        return
    import onnx

    try:
        onnx.checker.check_model(data)
    except (onnx.checker.ValidationError, ValueError, TypeError, RuntimeError) as error:
        raise damaged("onnx", first_line(error)) from None


def _shape(shape: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in shape or ())


def _made_up_rows(inputs: tuple[FileTensor, ...]) -> dict[str, np.ndarray[Any, Any]] | None:
    """Return a row of zeros or empty texts twice, or None if an input is none of columns."""
    rows = {}
    for tensor in inputs:
        if tensor.type not in TYPES or not 1 <= len(tensor.shape) <= 2:
            return None
        size = (tensor.shape[0] or 2, *(width or 1 for width in tensor.shape[1:]))
        is_text = TYPES[tensor.type] == "object"
        rows[tensor.name] = np.full(size, "" if is_text else 0, dtype=TYPES[tensor.type])
    return rows


def _try(
    session: Any, inputs: tuple[FileTensor, ...], outputs: tuple[FileTensor, ...]
) -> dict[str, tuple[int | None, ...]]:
    """Return the shapes of the outputs for made-up rows, by name; none if they are not accepted.

    Raises JobError for an output that has not a value for each row.
    """
    rows = _made_up_rows(inputs)
    if not rows:
        return {}
    count = len(next(iter(rows.values())))
    try:
        results = session.run(None, rows)
    except FAILURES:  # a made-up value may be none that it knows
        return {}
    shapes = {}
    for output, result in zip(outputs, results, strict=True):
        if isinstance(result, np.ndarray) and result.ndim and len(result) == count:
            shapes[output.name] = (None, *result.shape[1:])
    if not shapes and not any(output.type in _MAPS for output in outputs):
        raise JobError(
            f"no output of the file has a value for each row: {', '.join(output.name for output in outputs)}",
            hint="export it with a free number of rows, such as dynamic_axes={'x': {0: 'rows'}} of torch.onnx.export",
        )
    return shapes


def _classes_of_maps(
    session: Any, inputs: tuple[FileTensor, ...], outputs: tuple[FileTensor, ...]
) -> tuple[str | int, ...]:
    """Return the classes of an output of maps, by a made-up row; empty without one."""
    maps = next((output.name for output in outputs if output.type in _MAPS), None)
    rows = _made_up_rows(inputs)
    if maps is None or not rows:
        return ()
    try:
        [result] = session.run([maps], rows)
    except FAILURES:
        return ()
    return tuple(result[0]) if result else ()


def gives_probabilities(output: FileTensor) -> bool:
    """Return True if the operator of an output makes probabilities."""
    return output.type in _MAPS or output.operator in _PROBABILITIES
