"""Description of an ONNX file: what it needs and gives, checked by a run over two made-up rows."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import numpy as np

from edl.errors import JobError
from edl.extensions.imported.adapter import FAILURES, TYPES, first_line, open_session
from edl.extensions.imported.description import FileDescription, FileTensor, OwnExport, damaged_file_error
from edl.extensions.imported.onnx_file import read_onnx, refuse_parts
from edl.frameworks.onnx.columns import METADATA


def describe(data: bytes) -> FileDescription:
    """Return the description of a file. Raises JobError for one that is damaged, or needs other files or libraries."""
    try:
        file = read_onnx(data)
    except ValueError as error:
        raise damaged_file_error("onnx", str(error)) from None
    refuse_parts(file)
    _check_by_onnx(data)
    try:
        session = open_session(data)
    except FAILURES as error:
        raise damaged_file_error("onnx", first_line(error)) from None
    inputs = tuple(
        FileTensor(tensor.name, tensor.type, _shape(tensor.shape)) for tensor in session.get_inputs()
    )
    outputs = tuple(
        FileTensor(tensor.name, tensor.type, _shape(tensor.shape), file.operator_behind(tensor.name))
        for tensor in session.get_outputs()
    )
    results = _compute_made_up_rows(session, inputs)
    if results:
        outputs = tuple(map(_with_result, outputs, results))
        _check_rows(outputs, results, inputs[0].shape[0] or _ROWS)
    classes = next((tuple(result[0]) for result in results if isinstance(result, list)), ())
    of_export = file.metadata.get(METADATA)
    return FileDescription(
        "onnx",
        file.producer,
        inputs,
        outputs,
        {name: text for name, text in file.metadata.items() if name != METADATA},
        classes or file.classes,
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
        raise damaged_file_error("onnx", first_line(error)) from None


def _shape(shape: Any) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in shape or ())


_ROWS = 2  # that are made up, unless the file has a fixed number


def _compute_made_up_rows(session: Any, inputs: tuple[FileTensor, ...]) -> list[Any]:
    """Return the outputs for a row of zeros, one of ones and so on; none if the file does not take such rows."""
    rows = {}
    for tensor in inputs:
        if tensor.type not in TYPES or not 1 <= len(tensor.shape) <= 2:
            return []
        kind, count = TYPES[tensor.type], tensor.shape[0] or _ROWS
        numbers = np.arange(count) % 2
        values = np.full(count, "", dtype=object) if kind == "object" else numbers.astype(kind)
        width = (tensor.shape[1] or 1) if len(tensor.shape) == 2 else 1
        rows[tensor.name] = np.repeat(values[:, None], width, axis=1) if len(tensor.shape) == 2 else values
    try:
        return list(session.run(None, rows)) if rows else []
    except FAILURES:  # a made-up value may be none that it knows
        return []


def _with_result(output: FileTensor, result: Any) -> FileTensor:
    """Return the output with its width, and its least and greatest number."""
    numbers = (
        np.array([[*row.values()] for row in result]) if isinstance(result, list) else np.asarray(result)
    )
    extremes: tuple[float, ...] = ()
    if numbers.size and numbers.dtype.kind == "f" and np.isfinite(numbers).all():
        extremes = float(numbers.min()), float(numbers.max())
    shape = output.shape if isinstance(result, list) or not numbers.ndim else (None, *numbers.shape[1:])
    return msgspec.structs.replace(output, shape=shape, extremes=extremes)


def _check_rows(outputs: tuple[FileTensor, ...], results: list[Any], count: int) -> None:
    """Raise JobError if no output has a value for each of so many rows."""
    if not any((isinstance(result, list) or np.ndim(result)) and len(result) == count for result in results):
        raise JobError(
            f"no output of the file has a value for each row: {', '.join(output.name for output in outputs)}",
            hint="export it with a free number of rows, such as dynamic_axes={'x': {0: 'rows'}} of torch.onnx.export",
        )
