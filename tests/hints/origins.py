"""Functions that were called while a statement failed: the hint of an error is of the site whose function is one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

from edl.errors import SQLFlowError
from tests.hints.sites import Site

_MADE = SQLFlowError.__init__.__code__


class Calls:
    """Functions of the product that this process has called, by module and name with its classes."""

    def __init__(self) -> None:
        self._modules: dict[CodeType, str] = {}
        self._makers: dict[str, tuple[str, str]] = {}  # hint -> the function that made the error

    def record(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._modules:
            self._modules[code] = frame.f_globals.get("__name__", "")
        if code is _MADE and (hint := frame.f_locals["hint"]):
            maker = frame.f_back
            while maker is not None and (maker.f_code.co_name == "__init__" or _passes_on(maker, hint)):
                maker = maker.f_back
            if maker is not None:
                self._makers[hint] = maker.f_globals.get("__name__", ""), _name(maker.f_code)

    def include(self, site: Site) -> bool:
        """Return True if the function of the site was called; True of a text in a table of a module."""
        return not site.function or any(
            module == site.module and is_of(_name(code), site) for code, module in self._modules.items()
        )

    def made(self, hint: str) -> tuple[str, str]:
        """Module and function that made the error with the hint, empty if it was none of this process."""
        return self._makers.get(hint, ("", ""))


def _passes_on(frame: FrameType, hint: str) -> bool:
    """Return True if the hint is a parameter of the function."""
    code = frame.f_code
    is_parameter = "hint" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return is_parameter and frame.f_locals.get("hint") == hint


def is_of(name: str, site: Site) -> bool:
    """Return True for the site's function, with or without its class."""
    return name == site.function or name.endswith(f".{site.function}")


def _name(code: CodeType) -> str:
    return code.co_qualname.replace(".<locals>", "")


@contextmanager
def recorded_calls() -> Iterator[Calls]:
    calls = Calls()
    threading.setprofile(calls.record)
    sys.setprofile(calls.record)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
