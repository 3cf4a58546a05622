"""Records of the registry, and references to models in statements."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from edl.errors import SemanticError

State = Literal["ready", "failed", "saving", "dropped"]
Selector = int | str | None  # of a version: its number, a tag, or None for the current one

MAX_NAME = 512  # characters

_TAG = r"[^\W\d]\w{0,63}"
_REFERENCE = re.compile(rf"(.+)@(\d{{1,9}}|{_TAG})", re.DOTALL)


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
    tags: tuple[str, ...] = ()

    def is_selected(self, selector: Selector) -> bool:
        """Return True if the selector means this version; None means every version of the name."""
        return selector is None or selector == self.version or selector in self.tags

    @property
    def reference(self) -> str:
        """Permanent reference of this version, as a JobSpec stores it."""
        return f"{self.name}@{self.version}"


What = Literal[
    "saving",
    "failed",
    "ready",
    "current",
    "dropped",
    "tagged",
    "untagged",
    "described",
    "renamed",
    "received",
]


class RegistryEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Event of a version. The last fields are fields of `ModelVersion`, as far as they are known at that time."""

    name: str
    version: int
    event: What
    pointer: int = 0  # of events ready, current, tagged, untagged and described
    created: str = ""
    record: ModelRecord | None = None  # of events saving and failed
    reason: str = (
        # of a failure; of events tagged and untagged the tag; of described all facts of the model, as JSON; of renamed
        # and received the other name
        ""
    )
    archive: str = ""
    archive_bytes: int = 0
    sha256: str = ""


def split_reference(reference: str) -> tuple[str, Selector]:
    """Split `name@version` or `name@tag`; `name` alone means its current version."""
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        return reference, None
    return match[1], int(match[2]) if match[2].isdigit() else match[2]


def check_tag(tag: str) -> None:
    """Raise SemanticError if the text cannot be a tag."""
    if not re.fullmatch(_TAG, tag):
        raise SemanticError(
            f"{tag!r} cannot be a tag", hint="use up to 64 letters, digits and _, a letter or _ first"
        )


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
            f"{name} names a version or a tag, but a run creates a new version itself",
            hint=f"write {split_reference(name)[0]}",
        )
