"""Start of PyArrow without pandas, which it imports with its first array if it is installed: a third of a second.

A user's program may import pandas later. PyArrow is told of it then: without that, NaN in a series would be no NULL.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType


@functools.cache
def postpone() -> None:
    """Let PyArrow make arrays without pandas until this process imports that. Only for processes of our own.

    PyArrow itself is not imported.
    """
    if sys.modules.get("pandas"):
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    if "pyarrow" in sys.modules:
        finder.look()


class _Finder:
    """Finder that hides pandas while PyArrow looks for it, and tells PyArrow once pandas is imported."""

    _hides = False  # pandas
    _asks = False  # the other finders

    def look(self) -> None:
        """Let PyArrow look for pandas, once, unless pandas is imported already."""
        import pyarrow as pa

        if sys.modules.get("pandas"):
            return
        # PyArrow would take the None of a package that `without_extras` hides for pandas.
        is_hidden = "pandas" in sys.modules
        sys.modules.pop("pandas", None)
        self._hides = True
        try:
            pa.array([0.0])
        finally:
            self._hides = False
            if is_hidden:
                sys.modules["pandas"] = None  # type: ignore[assignment]

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in ("pandas", "pyarrow") or self._asks:
            return None
        if name == "pandas" and self._hides:
            raise ModuleNotFoundError("pandas is not needed yet", name=name)
        self._asks = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asks = False
        if spec is not None and spec.loader is not None:
            then = self.look if name == "pyarrow" else _tell
            spec.loader.exec_module = _call_after(spec.loader.exec_module, then)  # type: ignore[assignment, method-assign]
        return spec


def _tell() -> None:
    """Have PyArrow look for pandas again."""
    import pyarrow as pa

    pa.nulls(0).to_pandas()


def _call_after(
    execute: Callable[[ModuleType], None], then: Callable[[], None]
) -> Callable[[ModuleType], None]:
    """Return a function that executes the module and calls `then`."""

    def execute_and_go_on(module: ModuleType) -> None:
        execute(module)
        then()

    return execute_and_go_on
