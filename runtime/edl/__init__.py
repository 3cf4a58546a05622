"""The runtime: what generated programs import and what instances run. Importing it loads no framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.callbacks import Callback, Control

if TYPE_CHECKING:
    from edl.ragged import Ragged

__all__ = ["Callback", "Control", "Ragged"]


def __getattr__(name: str) -> object:
    """`Ragged` comes with NumPy, which not every command needs."""
    if name != "Ragged":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from edl.ragged import Ragged

    return Ragged
