"""Origin of an imported model: the file that it was read from, and how its outputs are understood."""

from __future__ import annotations

from typing import Literal

import msgspec

FileFormat = Literal["onnx", "lightgbm", "xgboost"]
# What an output of an ONNX file is: a number, a probability or a logit of each class (of two perhaps of the second
# alone), the predicted class itself, or the scores of several labels or of clusters.
Gives = Literal["number", "probabilities", "logits", "class", "scores"]


class Imported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """File of a model that was trained elsewhere. Its bytes are in the weights of the archive.

    `output` is the output of an ONNX file that is read, `types` are the types of its inputs. `rounds` are the first
    rounds of trees that predict; 0 for all. `producer`: what wrote the file.
    """

    file: str
    format: FileFormat
    sha256: str
    size: int
    producer: str = ""
    output: str = ""
    gives: Gives = "number"
    types: tuple[str, ...] = ()
    rounds: int = 0
