"""Context managers that add the position in the whole text to errors of a part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from edl.errors import Span, SQLFlowError


@contextmanager
def shift_spans(within: Span | None) -> Iterator[None]:
    """Shift errors of the database from their part of the program to the whole: add that part's start."""
    try:
        yield
    except SQLFlowError as error:
        if within is not None:
            error.span = error.span.shift(within.start) if error.span else within
        raise


@contextmanager
def use_place_of(span: Span | None) -> Iterator[None]:
    """Replace error positions in a text that stands in the program as a string by the span of the string."""
    try:
        yield
    except SQLFlowError as error:
        error.span = span
        raise


@contextmanager
def set_missing_spans(span: Span | None, kind: type[SQLFlowError] = SQLFlowError) -> Iterator[None]:
    """Set the span of errors of a kind that have none."""
    try:
        yield
    except kind as error:
        error.span = error.span or span
        raise
