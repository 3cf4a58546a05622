"""Outputs of an ONNX file as the scores of a label: a number, or the probability of each class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edl.arrays import Array
from edl.errors import JobError
from edl.features import Target
from edl.spec import Label
from edl.spec.imported import Gives

_ROUNDING = 1e-4  # of probabilities in float16
Result = Any  # an array by row, or a list of maps from classes to probabilities, as ZipMap makes it


def scores_of(result: Result, gives: Gives, label: Label, target: Target) -> Array:
    """Return float64 (n, scores). Raises JobError for an output of another form."""
    return _READERS[gives](result, label, target)


def _number(result: Result, label: Label, target: Target) -> Array:
    return _matrix(result, 1, "a number")


def _probabilities(result: Result, label: Label, target: Target) -> Array:
    """Return the probabilities. Raises JobError for numbers that are none, such as distances from a plane."""
    classes = label.classes
    values = _of_maps(result, classes) if isinstance(result, list) else _rows(result)
    if len(classes) == 2 and values.shape[1] == 1:
        values = np.hstack([1 - values, values])
    shares = _matrix(values, len(classes), "a probability of each class")
    if (shares < -_ROUNDING).any() or (shares > 1 + _ROUNDING).any():
        strange = shares[(shares < -_ROUNDING) | (shares > 1 + _ROUNDING)][0]
        raise JobError(
            f"the output has {strange:.4g}, and a probability is between 0 and 1",
            hint="import the file again with output_kind = 'logits', or 'class' and the output of the class",
        )
    return shares


def _logits(result: Result, label: Label, target: Target) -> Array:
    values = _rows(result)
    if label.has_classes and values.shape[1] == len(label.classes):  # of each class, also of two
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        shares: Array = powers / powers.sum(axis=1, keepdims=True)
        return shares
    return np.asarray(
        target.scores(_matrix(values, label.outputs, "a logit of each class")), dtype=np.float64
    )


def _class(result: Result, label: Label, target: Target) -> Array:
    """Return 1 for the predicted class and 0 for others."""
    classes = {str(name): place for place, name in enumerate(label.classes)}
    texts = [_text(value) for value in np.asarray(result).reshape(-1).tolist()]
    if unknown := next((text for text in texts if text not in classes), ""):
        raise JobError(f"the model predicts the class {unknown}, which is none of {', '.join(classes)}")
    scores = np.zeros((len(texts), len(classes)))
    scores[np.arange(len(texts)), [classes[text] for text in texts]] = 1.0
    return scores


def _as_they_are(result: Result, label: Label, target: Target) -> Array:
    return _matrix(result, label.scores, "a score of each label or cluster")


_READERS: Mapping[Gives, Callable[[Result, Label, Target], Array]] = {
    "number": _number,
    "probabilities": _probabilities,
    "logits": _logits,
    "class": _class,
    "scores": _as_they_are,
}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _of_maps(maps: Sequence[Mapping[Any, float]], classes: Sequence[object]) -> Array:
    """Return the probabilities of maps in the order of the classes; one that a map lacks has 0."""
    names = [str(name) for name in classes]
    by_name = [{_text(name): value for name, value in row.items()} for row in maps]
    return np.array([[row.get(name, 0.0) for name in names] for row in by_name]).reshape(-1, len(names))


def _rows(result: Result) -> Array:
    if isinstance(result, list) or np.asarray(result).dtype.kind not in "fiub":
        raise JobError("the output has no numbers")
    values = np.asarray(result, dtype=np.float64)
    return values.reshape(len(values), -1)


def _matrix(result: Result, width: int, what: str) -> Array:
    values = _rows(result)
    if values.shape[1] != width:
        raise JobError(f"the output has {values.shape[1]} numbers for each row, and {what} needs {width}")
    return values
