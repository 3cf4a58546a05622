"""Start of PyArrow without pandas, which it imports with its first array if it is installed: a third of a second.

A user's program may import pandas later. PyArrow is told of it then: without that, NaN in a series would be no NULL.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PANDAS = "pandas"


@functools.cache
def postpone() -> None:
    """Let PyArrow make arrays without pandas until this process imports that. Only for processes of our own."""
    if _PANDAS in sys.modules:
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    import pyarrow as pa

    pa.array([0.0])  # for which it looks for pandas once
    finder.hides = False


class _Finder(MetaPathFinder):
    """Finder that hides pandas while PyArrow looks for it, and tells PyArrow once pandas is imported."""

    hides = True
    _asks = False  # the other finders

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PANDAS or self._asks:
            return None
        if self.hides:
            raise ModuleNotFoundError("pandas is not needed yet", name=name)
        self._asks = True
        try:
            found = importlib.util.find_spec(name)
        finally:
            self._asks = False
        if found is not None and found.loader is not None:
            found.loader.exec_module = _followed(found.loader.exec_module)  # type: ignore[assignment, method-assign]
        return found


def _followed(execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """Return a function that executes the module and has PyArrow look for it again."""

    def execute_and_tell(module: ModuleType) -> None:
        import pyarrow as pa

        execute(module)
        pa.nulls(0).to_pandas()

    return execute_and_tell
