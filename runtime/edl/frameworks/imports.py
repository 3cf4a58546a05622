"""Import of the libraries without packages that they import where they are installed, and that take seconds."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_UNUSED = ("IPython", "dask", "distributed", "graphviz", "matplotlib", "pandas", "polars", "sklearn")


@contextlib.contextmanager
def without_extras() -> Iterator[None]:
    """Return a context in which packages of other ways to call the libraries look as if they were not installed.

    Those that are loaded already stay visible.
    """
    hidden = [name for name in _UNUSED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None makes an import fail
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
