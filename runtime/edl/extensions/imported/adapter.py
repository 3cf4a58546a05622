"""Adapter of an ONNX file. It predicts, by ONNX Runtime without operators of other libraries; it cannot be trained.

Its weights are the bytes of the file, which it keeps as they are:

    model     uint8     the ONNX file

NULL in a column of numbers is NaN for an input of floats. Integers, booleans and texts of ONNX have no NULL, so a row
with one is an error that names the column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

from edl.arrays import Array, Features, count_rows
from edl.errors import JobError, SemanticError
from edl.extensions.imported.model import FileInput, OnnxModel
from edl.extensions.imported.onnx_file import read_onnx, refuse_parts
from edl.extensions.imported.outputs import scores_of
from edl.features import target
from edl.frameworks.adapter import Evaluated, Floats, Minibatches
from edl.frameworks.ensemble import mean_loss
from edl.program import Program
from edl.spec import ONNX

if TYPE_CHECKING:
    from edl.embeddings.model_tables import Cut

MODEL = "model"
FAILURES = (
    errors.Fail,
    errors.InvalidArgument,
    errors.InvalidGraph,
    errors.InvalidProtobuf,
    errors.NoSuchFile,
    errors.NotImplemented,
    errors.RuntimeException,
    errors.EPFail,
    RuntimeError,
    ValueError,
)
# Types of inputs: ONNX Runtime's name -> NumPy's.
TYPES: Mapping[str, str] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint64)": "uint64",
    "tensor(uint32)": "uint32",
    "tensor(uint16)": "uint16",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "object",
}
_EXACT = 2.0**53  # whole numbers up to it are exact as float64
_threads = 1


def start(threads: int) -> None:
    """Set the threads of later sessions."""
    global _threads
    _threads = threads


def seed(seed: int) -> None:
    """Do nothing: a file draws no random numbers in training here."""


def create(program: Program, features: Features, labels: Array | None, seed: int) -> OnnxAdapter:
    model = program.call("custom_model")
    if not isinstance(model, OnnxModel):
        raise JobError(f"custom_model in {program.file} returns a {type(model).__name__}, not an OnnxModel")
    return OnnxAdapter(model, program)


def open_session(data: bytes, threads: int = 1) -> onnxruntime.InferenceSession:
    """Load a file with the operators of ONNX Runtime alone, on the CPU. Raises one of FAILURES."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what is wrong comes as an exception
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


class OnnxAdapter:
    """Adapter of an ONNX file."""

    framework = ONNX

    def __init__(self, model: OnnxModel, program: Program) -> None:
        self.model = model
        self._label = program.spec.label
        self._target = target(self._label)
        self._data = b""
        self._session: onnxruntime.InferenceSession | None = None

    def predict(self, features: Features) -> Array:
        """Return the scores: float64 (n, 1) numbers, or (n, classes) probabilities."""
        session = self._session_with_file()
        if not count_rows(features):
            return np.empty((0, self._label.scores))
        feeds = [
            feed(features[bound.array], bound, TYPES[tensor.type], tensor.shape)
            for bound, tensor in zip(self.model.inputs, session.get_inputs(), strict=True)
        ]
        outputs = run_by_batch(session, feeds, self.model.output)
        scores = scores_of(outputs, self.model.gives, self._label, self._target)
        if self._label.has_classes and np.isnan(scores).any():
            self._refuse_without_score(features, scores)
        return scores

    def predict_with(self, features: Features, names: Sequence[str]) -> tuple[Array, dict[str, Array]]:
        if names:
            raise JobError(f"an ONNX file gives no {names[0]}", hint="it gives predictions alone")
        return self.predict(features), {}

    def evaluate(self, features: Features, labels: Array, weights: Floats | None = None) -> Evaluated:
        """Return scores and loss: the mean log loss, or the mean squared error; NaN for other labels."""
        scores = self.predict(features)
        if not (self._label.has_classes or self._label.is_number):
            return Evaluated(scores, float("nan"))
        mean = mean_loss(self._label, labels, scores, weights)
        return Evaluated(scores, mean if weights is None else mean * float(weights.mean(dtype=np.float64)))

    def get_weights(self) -> dict[str, Array]:
        return {MODEL: np.frombuffer(self._data, dtype=np.uint8)}

    def set_weights(self, weights: Mapping[str, Array]) -> None:
        if MODEL not in weights:
            raise JobError(
                "the weights belong to no ONNX file", hint="they were trained with another program"
            )
        data = np.asarray(weights[MODEL], dtype=np.uint8).tobytes()
        try:
            refuse_parts(read_onnx(data))  # an archive of somebody else may have any file
            session = open_session(data, _threads)
        except FAILURES as error:
            raise JobError(f"ONNX Runtime cannot load the model: {first_line(error)}") from None
        if len(session.get_inputs()) != len(self.model.inputs):
            raise JobError("the file has other inputs than the model", hint="import it again")
        self._data, self._session = data, session

    def keep(self) -> Mapping[str, Array]:
        return self.get_weights()

    def train(self, rows: Minibatches) -> Floats:
        _refuse()

    def cut(self) -> Cut:
        _refuse()

    def get_state(self) -> dict[str, Array]:
        _refuse()

    def set_state(self, state: Mapping[str, Array]) -> None:
        _refuse()

    def learning_rate(self, step: int) -> float:
        _refuse()

    def set_learning_rate(self, rate: float) -> None:
        _refuse()

    def standalone(self) -> bytes:
        """Return the file as it was imported."""
        return self._data

    def _session_with_file(self) -> onnxruntime.InferenceSession:
        if self._session is None:
            raise JobError("the model has no file yet")
        return self._session

    def _refuse_without_score(self, features: Features, scores: Array) -> NoReturn:
        """Raise SemanticError for rows of which the model gives no probability, as of most models for NaN."""
        row = int(np.flatnonzero(np.isnan(scores).any(axis=1))[0])
        empty = [
            column
            for bound in self.model.inputs
            for column, value in zip(bound.columns, np.atleast_2d(features[bound.array])[row], strict=True)
            if value is None or (isinstance(value, float) and np.isnan(value))
        ]
        where = f", of which {', '.join(empty)} is NULL" if empty else ""
        raise SemanticError(
            f"the model gives no probability (NaN) for a row{where}",
            hint="it takes no missing values: replace NULL in the query, as coalesce(x, 0) does, or filter such rows",
        )


def feed(values: Array, bound: FileInput, kind: str, shape: Sequence[object]) -> Array:
    """Return the array of an input in its type and its number of dimensions.

    values: (n, columns), float64 with NaN for NULL, or objects with None for it. Raises SemanticError for a NULL or a
    number that the type does not hold.
    """
    if kind == "object":
        _check_values(
            np.frompyfunc(lambda text: text is None, 1, 1)(values).astype(bool), bound, "NULL", "texts"
        )
    elif np.dtype(kind).kind != "f":
        words = "true or false" if kind == "bool" else "whole numbers"
        _check_values(np.isnan(values), bound, "NULL", words)
        limits = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
        bad = (values != np.floor(values)) | (values < limits[0]) | (values > limits[1])
        _check_values(bad | (np.abs(values) > _EXACT), bound, "a number", f"{words} of {kind}", values)
    with np.errstate(over="ignore"):
        converted = values if kind == "object" else values.astype(kind)
    return converted[:, 0] if len(shape) == 1 else converted


def _check_values(bad: Array, bound: FileInput, what: str, takes: str, values: Array | None = None) -> None:
    """Raise SemanticError for the first column with a bad value."""
    if not bad.any():
        return
    row, place = np.argwhere(bad)[0]
    column, count = bound.columns[place], int(bad[:, place].sum())
    shown = what if values is None else f"{values[row, place]:.16g}"
    rows = f"in {count:,} rows" if count > 1 else "in a row"
    example = "''" if takes == "texts" else "0"
    hint = (
        f"replace NULL in the query, as coalesce({column}, {example}) does, or filter such rows"
        if values is None
        else "convert it in the query"
    )
    raise SemanticError(f"{column} is {shown} {rows}, and the model takes {takes} there", hint=hint)


def run_by_batch(session: onnxruntime.InferenceSession, feeds: Sequence[Array], output: str) -> Any:
    """Return the results of one output: an array by row, or a list of maps.

    A file may have a fixed number of rows; then the last of these batches is filled up.
    """
    tensors = session.get_inputs()
    rows = len(feeds[0])
    sizes = {int(tensor.shape[0]) for tensor in tensors if isinstance(tensor.shape[0], int)}
    step = next(iter(sizes)) if sizes else rows
    parts: list[Any] = []
    for first in range(0, rows, max(step, 1)):
        batch = [values[first : first + step] for values in feeds]
        count = len(batch[0])
        if count < step:
            batch = [values.take(np.arange(step) % count, axis=0) for values in batch]
        named = {
            tensor.name: np.ascontiguousarray(values) for tensor, values in zip(tensors, batch, strict=True)
        }
        try:
            [result] = session.run([output], named)
        except FAILURES as error:
            raise SemanticError(
                f"ONNX Runtime cannot compute the model: {first_line(error)}",
                hint="a value of these rows is none that the model knows",
            ) from None
        if not isinstance(result, list):
            result = np.asarray(result).reshape(-1) if np.ndim(result) == 0 else result
        if len(result) != step:
            raise JobError(f"the output {output} has {len(result):,} rows for {step:,}")
        parts.append(result[:count])
    if not parts:
        return []
    return [*chain.from_iterable(parts)] if isinstance(parts[0], list) else np.concatenate(parts)


def first_line(error: BaseException) -> str:
    """Return what an error of ONNX Runtime says, without its codes."""
    text = str(error).strip().partition("\n")[0]
    return text.rpartition("[ONNXRuntimeError] : ")[2].split(" : ", 2)[-1][:300]


def _refuse() -> NoReturn:
    raise JobError("an imported ONNX file cannot be trained", hint="train another model")
