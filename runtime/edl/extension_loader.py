"""Loading of extensions by the names that tables give: `edl.extensions.lakes.delta`, `sqlflow_edl.extensions.editor.…`.

An extension is a package of a folder `extensions`. The rest imports none of them, so that it can be read, tested and
installed without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from edl.errors import SQLFlowError
from edl.installation import DISTRIBUTION

# extension -> extras of the distribution with the packages that it needs; empty if it needs none
EXTRAS = {
    "bigquery_ml": "",
    "decomposition": "torch",
    "editor": "editor",
    "elastic": "kafka",
    "elasticdl": "tensorflow",
    "imported": "imported,lightgbm,xgboost",
    "lakes": "delta,iceberg",
    "lineage": "lineage,mlflow",
    "model_sql": "",
    "pmml": "",
    "notebook": "notebook",
    "optimization": "optimize",
    "runnables": "",
    "sequences": "torch",
    "serving": "serve",
    "unsupervised": "torch",
    "warehouses": "bigquery,clickhouse,hive,snowflake,trino",
    "web": "serve",
}
_FOLDER = ".extensions."

T = TypeVar("T")


class ExtensionError(SQLFlowError):
    """Extension that is not part of the installation."""


def load(module: str, name: str) -> Any:
    """Return what a module calls `name`. Raises ExtensionError if the module is of an extension that is not here."""
    return getattr(import_extension(module), name)


def import_extension(module: str) -> ModuleType:
    """Return the module. Raises ExtensionError if it is of an extension that is not here."""
    with name_absence(module):
        return import_module(module)


@contextmanager
def name_absence(module: str) -> Iterator[None]:
    """Raise ExtensionError if an import of the module finds that its extension is not here."""
    try:
        yield
    except ModuleNotFoundError as error:
        package, folder, rest = module.partition(_FOLDER)
        extension = rest.partition(".")[0]
        if not folder or error.name not in (f"{package}.extensions", f"{package}.extensions.{extension}"):
            raise
        extras = EXTRAS[extension]
        raise ExtensionError(
            f"the extension {extension} is not part of this installation",
            hint=f"reinstall all of it: pip install '{DISTRIBUTION}{extras and f'[{extras}]'}'",
        ) from None


def load_or(module: str, name: str, absent: T) -> T:
    """Return what a module calls `name`, or `absent` if its extension is not here."""
    try:
        loaded: T = load(module, name)
    except ExtensionError:
        return absent
    return loaded


def defer(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that the first call loads. It raises ExtensionError as `load` does."""

    def call(*arguments: Any) -> Any:
        return load(module, name)(*arguments)

    return call
