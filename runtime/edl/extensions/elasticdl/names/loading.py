"""Functions of ElasticDL that load modules by their files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def get_module_file_path(model_zoo: str, spec_key: str) -> str:
    """Return the file of the module of the zoo that `package.module.name` names."""
    return str(Path(model_zoo, *spec_key.split(".")[:-1]).with_suffix(".py"))


def get_module_from_file(module_file: str) -> ModuleType:
    """Return the module of a file, under the name of the file. Raises ImportError if that is no Python file."""
    spec = importlib.util.spec_from_file_location(Path(module_file).stem, module_file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{module_file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


load_module = get_module_from_file
