"""What must be set in an instance before libraries load."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment(threads: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with the pools of libraries held to `threads`, and `more`."""
    return {
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        **(more or {}),
    }
