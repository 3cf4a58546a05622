"""Environment of instances, including variables that must be set before libraries load."""

from __future__ import annotations

import os
from collections.abc import Mapping

HOST = "EDL_HOST"

# Timeout of a name server. PyTorch looks up the name of any client of a store, also in the thread that serves all:
# while one answer is lost, which takes 5 s by default, no group can form.
RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:3"}


def environment(threads: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment, with library thread pools limited to `threads`, and `more`."""
    return {**RESOLVER, **os.environ, **library_variables(threads), **(more or {})}


def library_variables(threads: int) -> dict[str, str]:
    """Return the variables that libraries read when they load, with thread pools limited to `threads`."""
    return {
        "KERAS_BACKEND": "tensorflow",
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
    }


def own_host() -> str:
    """Return the host that this process listens on and announces: its pod's address, or the machine's."""
    return os.environ.get(HOST, "127.0.0.1")


def own_address(port: int = 0) -> str:
    """Return the same with a port in gRPC's form; 0 means any free port."""
    host = own_host()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
