"""Kinds of statements that extensions run.

The module of a kind has a function for each phase. `check` is given the statement and checks its text alone. The others
are given a compiler and the statement: `check_of_place` checks all but the columns of the query, `check_columns` these
too, and `rows_of_plan` returns the plan. `run` gets a job and an observer, too, and returns the result. A kind that
runs in pods has `in_a_pod`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edl.extension_loader import defer
from sqlflow_edl.syntax.kinds import Kind

MODULES: Mapping[Kind, str] = {
    "optimize": "sqlflow_edl.extensions.optimization.statement",
    "run": "sqlflow_edl.extensions.runnables.statement",
}


def phase_of_extensions(name: str) -> dict[Any, Callable[..., Any]]:
    """Return a phase's functions by kind, each of which loads its extension when it is called."""
    return {kind: defer(module, name) for kind, module in MODULES.items()}
