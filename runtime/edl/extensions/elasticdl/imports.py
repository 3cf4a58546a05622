"""Imports of modules of a zoo, redirected in their source while it is compiled.

Three kinds of names exist no longer, or never did outside of ElasticDL's own repository:

    elasticdl…, elasticdl_preprocessing…     stand-ins of `edl.extensions.elasticdl.names`
    tensorflow.python.keras…                 Keras 3, with the old functions that it lacks
    model_zoo.iris.net                       iris.net, if the folder of the zoo was a package named model_zoo

The redirection is in the compiled module alone: other modules of the process import what they always did.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from edl.errors import SemanticError, did_you_mean

_NAMES = "edl.extensions.elasticdl.names"
# Module of ElasticDL -> module of `names`; a prefix stands for all modules below it.
_STAND_INS: Mapping[str, str] = {
    "elasticdl.layers": "embedding",
    "elasticdl.python.common.constants": "constants",
    "elasticdl.python.common.log_utils": "logs",
    "elasticdl.python.common.model_utils": "loading",
    "elasticdl.python.data.odps_io": "maxcompute",
    "elasticdl.python.data.reader": "readers",
    "elasticdl.python.elasticdl.callbacks": "callbacks",
    "elasticdl.python.elasticdl.feature_column": "feature_column",
    "elasticdl.python.elasticdl.layers": "embedding",
    "elasticdl.python.worker.prediction_outputs_processor": "prediction",
    "elasticdl_preprocessing.feature_column": "feature_column",
    "elasticdl_preprocessing.layers": "preprocessing",
    "elasticdl_preprocessing.utils": "analyzer",
}
_PACKAGES = ("elasticdl", "elasticdl_preprocessing")
_OLD_KERAS = "tensorflow.python.keras"


def redirect_imports(tree: ast.Module, path: str, zoo: Path) -> ast.Module:
    """Return the tree of a module in `zoo` with its imports redirected.

    Raises SemanticError that names the line for a module of ElasticDL that has no stand-in.
    """
    redirected: ast.Module = _Redirection(path, zoo).visit(tree)
    return redirected


class _Redirection(ast.NodeTransformer):
    def __init__(self, path: str, zoo: Path) -> None:
        self._path = path
        self._zoo = zoo

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.level or node.module is None:
            return node
        if any(alias.name == "DenseFeatures" for alias in node.names):
            module: str | None = f"{_NAMES}.keras"
        else:
            module = self._find(node.module, node)
        if module is not None:
            return ast.fix_missing_locations(ast.copy_location(ast.ImportFrom(module, node.names, 0), node))
        return node

    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        statements: list[ast.stmt] = []
        for alias in node.names:
            module = self._find(alias.name, node)
            if module is None:
                statements.append(ast.Import([alias]))
            elif alias.asname is None:
                raise self._error(
                    node,
                    f"import {alias.name} without a name of its own",
                    f"write: import {alias.name} as {alias.name.rpartition('.')[2]}",
                )
            else:
                statements.append(ast.Import([ast.alias(module, alias.asname)]))
        return [ast.fix_missing_locations(ast.copy_location(statement, node)) for statement in statements]

    def _find(self, module: str, node: ast.stmt) -> str | None:
        """Return the module to import instead, or None if the module stays."""
        top, _, rest = module.partition(".")
        if top in _PACKAGES:
            return self._find_stand_in(module, node)
        if f"{module}.".startswith(f"{_OLD_KERAS}."):
            return f"{_NAMES}.keras"
        return rest if self._is_own_package(top, rest) else None

    def _find_stand_in(self, module: str, node: ast.stmt) -> str:
        for name, stand_in in _STAND_INS.items():
            if f"{module}.".startswith(f"{name}."):
                return f"{_NAMES}.{stand_in}"
        raise self._error(
            node,
            f"there is no {module} here",
            did_you_mean(module, _STAND_INS) or "leave the import out, or write the functions into the zoo",
        )

    def _is_own_package(self, top: str, rest: str) -> bool:
        """Return True if `top` is the zoo itself: no module of that name exists, and the zoo has what is below it."""
        if not rest or PathFinder.find_spec(top) is not None:
            return False
        below = rest.partition(".")[0]
        return (self._zoo / below).is_dir() or (self._zoo / f"{below}.py").is_file()

    def _error(self, node: ast.stmt, message: str, hint: str) -> SemanticError:
        return SemanticError(f"{self._path}:{node.lineno}: {message}", hint=hint)
