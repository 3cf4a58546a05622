"""Description of the model of an ONNX file, to return from a program's `custom_model`. Light to import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from edl.features import Entry, Features, Inputs
from edl.spec.imported import Gives


class FileInput(NamedTuple):
    """Input of the file: the name of its array among the features, and the columns of the table, in their order."""

    array: str
    columns: tuple[str, ...]


class OnnxModel:
    """Model of an ONNX file. Each input of the file reads the features of one input of the program, in order.

    `output` is the output that is read, and `gives` what it is.
    """

    def __init__(self, features: Features | Inputs, *, output: str, gives: Gives) -> None:
        self.output = output
        self.gives = gives
        self.inputs = tuple(_inputs(features.entries))

    def __repr__(self) -> str:
        return f"OnnxModel(output={self.output!r}, gives={self.gives!r})"


def _inputs(entries: Iterable[Entry]) -> Iterator[FileInput]:
    for entry in entries:
        columns = tuple(str(getattr(feature, "column", "")) for feature in entry.features)
        yield FileInput(entry.name, columns)
