"""Import of modules in users' folders: always compiled from source, without byte code files.

Python considers byte code valid for a source of the same size and modification second, so the second of two quick
edits (`units = 2`, then `units = 5`) could train the model of the first.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType

_INSTALLED = ("site-packages", "dist-packages")

_folders: set[Path] = set()
_redirections: dict[Path, Callable[[ast.Module, str], ast.Module]] = {}


class CompilingLoader(SourceFileLoader):
    """Loader that neither reads nor writes byte code. `source` replaces the contents of the file."""

    def __init__(self, name: str, path: str, source: bytes | None = None) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path) if self._source is None else self._source
        tree = ast.parse(source, self.path)
        for folder, redirect in _redirections.items():
            if Path(self.path).is_relative_to(folder):
                tree = redirect(tree, self.path)
        code: CodeType = compile(tree, self.path, "exec", dont_inherit=True)
        return code


def redirect_imports(folder: Path | str, redirect: Callable[[ast.Module, str], ast.Module]) -> None:
    """Make this process compile modules of the folder from the tree that `redirect` returns for (tree, path)."""
    _redirections[Path(folder).absolute()] = redirect


def always_compile(folder: Path | str) -> None:
    """Make this process compile all later imports from the folder and its subfolders.

    Packages installed there, such as in a virtual environment, are imported as usual.
    """
    if _finder not in sys.path_hooks:
        sys.path_hooks.insert(0, _finder)
    folder = Path(folder).absolute()
    if folder in _folders:
        return
    _folders.add(folder)
    # A process that loads many programs has many paths here: most are told apart without parsing them.
    first = os.path.normpath(folder)
    cached = [path for path in sys.path_importer_cache if folder.name in path]
    inside = [path for path in cached if os.path.normpath(path).startswith(first)]
    for path in [path for path in inside if _is_covered(Path(path))]:
        del sys.path_importer_cache[path]


def is_installed(file: Path) -> bool:
    """Return True if a file belongs to Python itself or to an installed package."""
    return file.is_relative_to(sysconfig.get_path("stdlib")) or any(part in _INSTALLED for part in file.parts)


def is_standard(file: Path) -> bool:
    """Return True if a file belongs to Python's standard library."""
    return is_installed(file) and not any(part in _INSTALLED for part in file.parts)


def _is_covered(path: Path) -> bool:
    return not _folders.isdisjoint((path, *path.parents)) and not is_installed(path)


def _finder(path: str) -> FileFinder:
    """Return a finder, as a hook of `sys.path_hooks`. Raises ImportError for other folders, as these hooks must."""
    if not _is_covered(Path(path)) or not Path(path).is_dir():
        raise ImportError(path=path)
    return FileFinder(
        path,
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (CompilingLoader, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )
