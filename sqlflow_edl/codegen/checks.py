"""Checks of a JobSpec before code generation, because one from an archive is untrusted.

Most of a JobSpec enters a program as literals, or chooses from tables. The texts that enter a program as names are
checked here: anything but a name would become code.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from edl.errors import SpecError
from edl.program.user_model import FUNCTIONS
from edl.spec import JobSpec

_DOTTED = ("a model", "a module")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*|")


def check_names(spec: JobSpec) -> None:
    """Raise SpecError if a text that becomes a name in the program is not a valid name."""
    if spec.zoo is not None:
        raise SpecError(
            f"{spec.model.name} is a model of `edl train --model_def`, and has no program of a statement",
            hint="use it with edl predict --model_def and --weights",
        )
    for what, name in _names(spec):
        parts = name.split(".") if what in _DOTTED else [name]
        is_known = what != "a function of the contract" or name in FUNCTIONS
        if not is_known or not all(map(_is_name, parts)):
            raise SpecError(f"the JobSpec is damaged: {name[:60]!r} is not a name of {what}")
    for model in spec.models:
        check_names(model)
    if not _SCHEME.fullmatch(spec.query.source.partition(":")[0]):
        raise SpecError("the JobSpec is damaged: its data source has no URL")


def _is_name(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part) and not part.startswith("__")


def _names(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield each name with a description of its object."""
    yield "a model", spec.model.name
    for name in spec.inputs:
        yield "an input", name
    if activation := spec.model.params.get("activation"):
        yield "an activation", str(activation)
    if spec.own is not None:
        yield "a module", spec.own.module
        yield "a class or function", spec.own.attribute
        yield from (("a function of the contract", name) for name in spec.own.functions)
        yield from (("a parameter", name) for name in (*spec.own.passes, *spec.model.params))
