"""Kinds of statements that extensions run.

The module of a kind has a function for each phase: `check(statement)`, without the columns of the query;
`check_columns(compiler, statement)`; `rows_of_plan(compiler, statement)`; `run(compiler, statement, job, observer)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edl.extension_loader import defer
from sqlflow_edl.syntax.kinds import Kind

MODULES: Mapping[Kind, str] = {"optimize": "sqlflow_edl.extensions.optimization.statement"}


def phase_of_extensions(name: str) -> dict[Any, Callable[..., Any]]:
    """Return a phase's functions by kind, each of which loads its extension when it is called."""
    return {kind: defer(module, name) for kind, module in MODULES.items()}
