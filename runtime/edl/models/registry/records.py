"""Records of the registry, and references to models in statements."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from edl.errors import SemanticError

State = Literal["ready", "failed", "saving", "dropped"]

MAX_NAME = 512  # characters

_REFERENCE = re.compile(r"(.+)@(\d{1,9})", re.DOTALL)


class ModelRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Description of a model by its run. `metrics` maps names to figures, None for NaN."""

    model: str  # kind of model, for example DNNClassifier
    framework: str
    rows: int  # number of training rows
    metrics: dict[str, float | None]
    statement: str


class ModelVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Version of a model. `created` is UTC in ISO 8601; `reason` says why a failed one has no archive."""

    name: str
    version: int
    state: State
    current: bool
    created: str
    record: ModelRecord
    reason: str
    archive: str  # key of its chunks
    archive_bytes: int
    sha256: str

    @property
    def reference(self) -> str:
        """Permanent reference of this version, as a JobSpec stores it."""
        return f"{self.name}@{self.version}"


def split_reference(reference: str) -> tuple[str, int | None]:
    """Split `name@version`, or `name` alone, which means its current version."""
    match = _REFERENCE.fullmatch(reference)
    return (match[1], int(match[2])) if match else (reference, None)


def check_name(name: str) -> None:
    """Raise SemanticError if the text cannot name a model."""
    if not name.strip() or not name.isprintable():
        raise SemanticError(f"{name!r} cannot name a model", hint="use letters, digits, _ and dots")
    if len(name) > MAX_NAME:
        raise SemanticError(
            f"the name of a model has at most {MAX_NAME} characters, this one has {len(name)}"
        )
    if split_reference(name)[1] is not None:
        raise SemanticError(
            f"{name} names a version, but a run creates a new version itself",
            hint=f"write {split_reference(name)[0]}",
        )
