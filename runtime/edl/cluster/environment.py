"""What an instance finds in its environment, and what must be set there before libraries load."""

from __future__ import annotations

import os
from collections.abc import Mapping

HOST = "EDL_HOST"

# How long a name server is waited for. PyTorch asks for the name of whoever connects to a store, also the thread that
# serves all: while one answer is lost, which takes 5 s by default, no ring can form.
RESOLVER = {"RES_OPTIONS": "timeout:1 attempts:3"}


def environment(threads: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with the pools of libraries held to `threads`, and `more`."""
    return {
        **RESOLVER,
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "NUMBA_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        **(more or {}),
    }


def own_host() -> str:
    """What this process listens on and tells others: its pod's address, or the machine's own."""
    return os.environ.get(HOST, "127.0.0.1")


def own_address(port: int = 0) -> str:
    """The same with a port, as gRPC wants it; 0: one that is free."""
    host = own_host()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
