"""Processor cores that this process and its children may use: the affinity; every child inherits it."""

from __future__ import annotations

import os
import random

from edl.errors import SemanticError


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_cores(most: int) -> None:
    """Restrict this process, and its later children, to `most` of its cores.

    They are drawn by chance, so that two limited commands seldom get the same ones. Raises SemanticError where the
    system has no such limit.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise SemanticError("--threads, a limit of cores, is for Linux only")
    cores = os.sched_getaffinity(0)
    if most < len(cores):
        os.sched_setaffinity(0, random.sample(sorted(cores), most))
