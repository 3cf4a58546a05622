"""Runtime of generated programs and of job instances. Importing it loads no framework."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from edl.callbacks import Callback, Control

if TYPE_CHECKING:
    from edl import elastic
    from edl.api import Trained, train
    from edl.ragged import Ragged

__all__ = ["Callback", "Control", "Ragged", "Trained", "elastic", "train"]

# These import NumPy, Arrow and more.
_LATER = {"Ragged": "edl.ragged", "Trained": "edl.api", "train": "edl.api"}


def __getattr__(name: str) -> object:
    """Import names on first use that not every command needs."""
    if name == "elastic":
        return import_module("edl.elastic")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
