"""Framework adapters: one model with its optimizer behind one contract. Light to import.

`prepare` loads a framework and `create` builds a program's model. Both choose by the framework's name, and only they
import Keras, PyTorch, LightGBM or XGBoost.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from edl.errors import JobError, did_you_mean
from edl.extension_loader import import_extension
from edl.frameworks.adapter import Adapter, Evaluated, Minibatches
from edl.frameworks.device import begin
from edl.frameworks.imports import without_extras
from edl.installation import install_extras

if TYPE_CHECKING:
    from edl.arrays import Array, Features
    from edl.program import Program

__all__ = [
    "Adapter",
    "Evaluated",
    "Minibatches",
    "check_installed",
    "create",
    "is_installed",
    "prepare",
    "seed_everything",
]

# What libraries read when they are loaded; see `edl.frameworks.torch.threads` on threads that wait.
ENVIRONMENT = {
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "50000",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TORCHINDUCTOR_DETERMINISTIC": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it products of matrices on a GPU are not deterministic
}

_MODULES = {
    "keras": "edl.frameworks.keras.adapter",
    "torch": "edl.frameworks.torch.adapter",
    "lightgbm": "edl.frameworks.trees.lightgbm",
    "xgboost": "edl.frameworks.trees.xgboost",
    "ensemble": "edl.frameworks.ensemble",
    "onnx": "edl.extensions.imported.adapter",
}
_PACKAGES = {
    "keras": "tensorflow",
    "torch": "torch",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "onnx": "onnxruntime",
}


class _Framework(Protocol):
    """Functions that a framework's module offers."""

    def start(self, threads: int) -> None: ...

    def seed(self, seed: int) -> None: ...

    def create(self, program: Program, features: Features, labels: Array | None, seed: int) -> Adapter: ...


def prepare(framework: str, threads: int, *, own_process: bool = True) -> None:
    """Import the framework with `threads` threads and deterministic operations.

    The first call of a process decides the threads of TensorFlow. In a process of our own, PyTorch's optimizers do not
    import its compiler, which would double the start, Keras leaves pandas, scikit-learn and IPython alone, which take a
    quarter of its start, and the garbage collector leaves the framework's objects alone; a user's process keeps all
    that as it is. Raises JobError if the framework is unknown or not installed.
    """
    with without_extras() if own_process else contextlib.nullcontext():
        module = _framework(framework)
    module.start(threads)
    begin(own_process=own_process)
    if own_process:
        if framework == "torch":
            importlib.import_module("edl.frameworks.torch.imports").skip_compiler_import()
        _keep(framework)


@functools.cache
def _keep(framework: str) -> None:
    """Exempt the framework from collections of garbage, since it stays for good: Keras makes one before each model."""
    gc.freeze()
    atexit.register(_unfreeze_for_duckdb)


def _unfreeze_for_duckdb() -> None:
    """Let the last collection find DuckDB's objects, which it would list on the terminal as leaked. It takes 0.3 s."""
    if "duckdb" in sys.modules:
        gc.unfreeze()


def seed_everything(framework: str, seed: int) -> None:
    """Seed Python, NumPy and the framework, and clear the framework's global state of earlier models."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed % 2**32)
    _framework(framework).seed(seed)


def create(program: Program, features: Features, labels: Array | None, *, seed: int) -> Adapter:
    """Build the program's model; equal seeds give equal weights, independent of the process's history.

    `features` and `labels` are a few rows from `feed`; their shapes build layers that are created lazily. Without
    labels the adapter can only predict. Raises JobError if custom_model or optimizer returns an object of another
    type, or if outputs and labels don't match row by row.
    """
    framework = program.spec.framework
    seed_everything(framework, seed)
    return _framework(framework).create(program, features, labels, seed)


def _framework(name: str) -> _Framework:
    if name not in _MODULES:
        raise JobError(f"there is no framework {name}", hint=did_you_mean(name, _MODULES))
    for variable, value in ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    try:
        with hide_output():
            return cast(_Framework, import_extension(_MODULES[name]))
    except ModuleNotFoundError as error:
        if error.name not in ("keras", *_PACKAGES.values()):
            raise
        raise _not_installed(name) from None


def is_installed(name: str) -> bool:
    """Return True if the package of a framework can be imported, without importing it."""
    return name not in _PACKAGES or importlib.util.find_spec(_PACKAGES[name]) is not None


def check_installed(name: str) -> None:
    """Raise JobError if the package of a framework is not installed."""
    if not is_installed(name):
        raise _not_installed(name)


def _not_installed(framework: str) -> JobError:
    package = _PACKAGES[framework]
    extra = "imported" if framework == "onnx" else package
    return JobError(f"{package} is not installed", hint=install_extras(extra))


@contextlib.contextmanager
def hide_output() -> Iterator[None]:
    """Hide the output of native code during import (TensorFlow prints a banner)."""
    try:
        terminal = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(terminal, 2)
        os.close(nowhere)
        os.close(terminal)
