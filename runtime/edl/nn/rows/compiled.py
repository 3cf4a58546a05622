"""The compiler of the row kernels: numba, with its machine code kept in a folder of the user's.

numba raises at import when it can keep its code nowhere (a home that is missing or read-only), so the folder is chosen
and tried here; without one every process compiles for itself, a few seconds. numba writes where it reads, so what an
image brings is copied to the folder, where that is new; code for another kind of processor is passed over.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from edl.errors import JobError

F = TypeVar("F", bound=Callable[..., Any])

FOLDER = "NUMBA_CACHE_DIR"  # read by numba when it is imported
BROUGHT = "EDL_KERNELS"  # a folder with machine code, read-only; see `edl.ps.warm`


def jit(function: F) -> F:
    """Compile when first called, for the types it is called with. Kernels release the interpreter's lock."""
    compiled: F = _decorator()(function)
    return compiled


def cache_folder() -> Path | None:
    """The folder for machine code, ours alone and there to be written; None where there can be none.

    What lies there is executed, so it must not be anybody else's.
    """
    if given := os.environ.get(FOLDER):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with contextlib.suppress(OSError, RuntimeError):
        folder = Path(base).expanduser() / "sqlflow-edl" / "numba"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    return None


def _begin(folder: Path) -> None:
    """Give a new folder the code that the image brings."""
    brought = os.environ.get(BROUGHT)
    if not brought or folder.exists():
        return
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):  # there is none, or another process was quicker
        shutil.copytree(brought, partial, copy_function=shutil.copyfile)
        partial.rename(folder)
    shutil.rmtree(partial, ignore_errors=True)


def _decorator() -> Any:
    folder = cache_folder()
    if folder is not None:
        os.environ.setdefault(FOLDER, str(folder))
        _begin(folder)
    try:
        import numba
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise JobError("row tables need numba, which is not installed", hint="pip install numba") from None
    decorator: Any = numba.njit(nogil=True, cache=folder is not None, error_model="numpy")
    return decorator
