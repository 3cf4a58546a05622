"""Loading of extensions by the names that tables give: `edl.extensions.lakes.delta`, `sqlflow_edl.extensions.editor.…`.

An extension is a package of a folder `extensions`. The rest imports none of them, so that it can be read, tested and
installed without them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from edl.errors import SQLFlowError

# extension -> extras of the distribution with the packages that it needs
EXTRAS = {
    "editor": "editor",
    "imported": "imported,lightgbm,xgboost",
    "lakes": "delta,iceberg",
    "lineage": "lineage,mlflow",
    "warehouses": "bigquery,clickhouse,hive,snowflake,trino",
}
_FOLDER = ".extensions."


class ExtensionError(SQLFlowError):
    """Extension that is not part of the installation."""


def load(module: str, name: str) -> Any:
    """Return what a module calls `name`. Raises ExtensionError if the module is of an extension that is not here."""
    return getattr(import_extension(module), name)


def import_extension(module: str) -> ModuleType:
    """Return the module. Raises ExtensionError if it is of an extension that is not here."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package, folder, rest = module.partition(_FOLDER)
        extension = rest.partition(".")[0]
        if not folder or error.name not in (f"{package}.extensions", f"{package}.extensions.{extension}"):
            raise
        raise ExtensionError(
            f"the extension {extension} is not part of this installation",
            hint=f"reinstall all of it: pip install 'sqlflow-edl[{EXTRAS[extension]}]'",
        ) from None
