"""Compilation of the row kernels by numba. The machine code is cached in a folder of the user's.

numba raises at import if it cannot cache its code (a missing or read-only home), so the folder is chosen and tested
here; without one, every process compiles for a few seconds. numba writes where it reads, so code that an image
contains is copied to a new cache folder; code for another CPU type is ignored.
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
from edl.installation import install_packages

F = TypeVar("F", bound=Callable[..., Any])

FOLDER = "NUMBA_CACHE_DIR"  # numba reads it at import
BROUGHT = "EDL_KERNELS"  # read-only folder with machine code; see `edl.ps.compile_kernels`


def jit(function: F) -> F:
    """Compile at the first call, for the types of its arguments. Kernels release the GIL."""
    compiled: F = _decorator()(function)
    return compiled


def cache_folder() -> Path | None:
    """Return a writable folder for machine code that only this user can write, or None.

    Its content is executed, so it must not be another user's.
    """
    if path := os.environ.get(FOLDER):
        return Path(path)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with contextlib.suppress(OSError, RuntimeError):
        folder = Path(base).expanduser() / "sqlflow-edl" / "numba"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid == os.getuid() and not state.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    return None


def _begin(folder: Path) -> None:
    """Copy the image's code to a new folder."""
    brought = os.environ.get(BROUGHT)
    if not brought or folder.exists():
        return
    partial = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    with contextlib.suppress(OSError):  # no code in the image, or another process was quicker
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
        raise JobError(
            "row tables need numba, which is not installed", hint=install_packages("numba")
        ) from None
    decorator: Any = numba.njit(nogil=True, cache=folder is not None, error_model="numpy")
    return decorator
