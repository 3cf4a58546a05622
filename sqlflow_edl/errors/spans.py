"""Errors of a part find their place in the whole: context managers that add what the part could not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edl.errors import Span, SQLFlowError


@contextmanager
def placed(within: Span | None) -> Iterator[None]:
    """Errors of the database point into its part of the program: shift their places by that part's start."""
    try:
        yield
    except SQLFlowError as error:
        if within is not None:
            error.span = error.span.shifted(within.start) if error.span else within
        raise


@contextmanager
def instead(span: Span | None) -> Iterator[None]:
    """Errors point into a text that stands in the program as a string: their place is the whole string."""
    try:
        yield
    except SQLFlowError as error:
        error.span = span
        raise


@contextmanager
def at(span: Span | None) -> Iterator[None]:
    """Errors without a place are about this one."""
    try:
        yield
    except SQLFlowError as error:
        error.span = error.span or span
        raise
