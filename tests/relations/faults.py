"""Mended faults that are put back, each beside the relations that must find it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence


@contextlib.contextmanager
def put_back(name: str) -> Iterator[None]:
    yield


def report_put_back(names: Sequence[str]) -> int:
    return 0
