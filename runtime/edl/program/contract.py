"""Model-zoo contract: the functions of a model.py, and their arguments."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from edl.errors import JobError
from edl.program.keras_callbacks import translate_callbacks
from edl.spec import SCORED, TREES

Mode = Literal["train", "predict", "evaluate"]


@dataclass(frozen=True, slots=True)
class ContractFunction:
    """Function of the contract and its positional arguments."""

    name: str
    arguments: tuple[str, ...]
    required: bool = True

    def call(self, arguments: str | None = None) -> str:
        return f"{self.name}({', '.join(self.arguments) if arguments is None else arguments})"


FUNCTIONS = (
    ContractFunction("custom_model", ()),
    ContractFunction("loss", ("labels", "predictions")),
    ContractFunction("optimizer", ()),
    ContractFunction("learning_rate", ("steps",), required=False),
    ContractFunction("feed", ("batch", "mode"), required=False),
    ContractFunction("eval_metrics_fn", ()),
    ContractFunction("scores", ("outputs",), required=False),
    ContractFunction("callbacks", (), required=False),
    ContractFunction("custom_data_reader", ("pinned", "folder"), required=False),
)
_EXAMPLES = ContractFunction("examples", ("rows", "mode"), required=False)  # of the rows of a forecast
_TORCH_OPTIMIZER = ContractFunction("optimizer", ("parameters",))
_TORCH_INPUTS = (
    ContractFunction("dataset", ("reader", "start", "end", "mode"), required=False),
    ContractFunction("stream", ("batches", "mode"), required=False),
)
# Functions that convert rows to arrays; a program has one of them.
INPUTS = ("feed", *(function.name for function in _TORCH_INPUTS))


def functions(framework: str) -> tuple[ContractFunction, ...]:
    """Return the contract of a framework.

    An optimizer of PyTorch takes the parameters to optimize, and rows may come from its DataLoader. A model of trees
    names its objective itself; an ensemble and a file are not trained. Networks of PyTorch and trees may forecast from
    examples of rows.
    """
    if framework in (*TREES, *SCORED):
        shared = (
            shared_function
            for shared_function in FUNCTIONS
            if shared_function.name not in ("loss", "optimizer")
        )
        return (*shared, _EXAMPLES) if framework in TREES else tuple(shared)
    if framework != "torch":
        return FUNCTIONS
    adapted = (_TORCH_OPTIMIZER if function.name == "optimizer" else function for function in FUNCTIONS)
    return (*adapted, *_TORCH_INPUTS, _EXAMPLES)


def check(
    module: ModuleType, framework: str, file: str, overrides: Mapping[str, object] | None = None
) -> Mapping[str, Callable[..., Any]]:
    """Return the contract's functions that the module defines.

    `overrides` are functions that replace the module's functions, by their name in the contract. Raises JobError for
    the first missing or unsuitable one.
    """
    contract = functions(framework)
    functions_by_name: dict[str, Callable[..., Any]] = {}
    for function in contract:
        value: Any = (overrides or {}).get(function.name) or getattr(module, function.name, None)
        if value is None:
            if function.required:
                raise _absence_error(function, module, contract, file)
            continue
        _check_callable(function, value, file)
        functions_by_name[function.name] = value
    _check_input(functions_by_name, module, contract, file)
    if framework == "keras" and "callbacks" in functions_by_name:
        functions_by_name["callbacks"] = translate_callbacks(functions_by_name["callbacks"], file)
    return functions_by_name


def _check_input(
    functions_by_name: Mapping[str, object],
    module: ModuleType,
    contract: Iterable[ContractFunction],
    file: str,
) -> None:
    inputs = [name for name in INPUTS if name in functions_by_name]
    if len(inputs) > 1:
        raise JobError(
            f"{file} defines {inputs[0]} and {inputs[1]}; only one function may convert rows to arrays",
            hint="keep one of them, or rename the other",
        )
    if not inputs:
        raise _absence_error(
            next(function for function in contract if function.name == "feed"), module, contract, file
        )


def _absence_error(
    function: ContractFunction, module: ModuleType, contract: Iterable[ContractFunction], file: str
) -> JobError:
    contract_names = {other.name for other in contract}
    functions_here = [
        name
        for name, value in vars(module).items()
        if callable(value) and name not in contract_names and name[0] != "_"
    ]
    near = difflib.get_close_matches(function.name, functions_here, n=1, cutoff=0.6)
    hint = f"is {near[0]} meant to be it?" if near else f"the program needs a function {function.call()}"
    return JobError(f"{file} defines no {function.name}", hint=hint)


def _check_callable(function: ContractFunction, value: object, file: str) -> None:
    if not callable(value):
        raise JobError(f"{function.name} in {file} is a {type(value).__name__}, not a function")
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # a builtin without a signature
        return
    try:
        signature.bind(*function.arguments)
    except TypeError:
        takes = ", ".join(signature.parameters)
        raise JobError(
            f"{function.name} in {file} takes ({takes}); it is called as {function.call()}",
            hint=f"write: def {function.call()}:",
        ) from None
