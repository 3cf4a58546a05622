"""Models that the tests of a class use one after the other, as they were at first: tracing takes most of their time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import pytest

from edl import frameworks
from edl.arrays import Features, arrays
from edl.frameworks import Adapter
from edl.program import Program
from edl.spec import to_json

Key = tuple[object, ...]


class First(NamedTuple):
    """All that training changes, before any."""

    weights: dict[str, Any]
    state: dict[str, Any]


class Reused:
    """Derived by a class of tests. A test gets models that no other one has now."""

    _free: ClassVar[dict[Key, list[Adapter]]]
    _firsts: ClassVar[dict[Key, First]]

    def __init_subclass__(cls) -> None:
        cls._free, cls._firsts = {}, {}

    @pytest.fixture(autouse=True)
    def models(self) -> Iterator[None]:
        """Free the models of the test at its end."""
        self._taken: list[tuple[Key, Adapter]] = []
        yield
        for key, adapter in reversed(self._taken):  # so that the next test takes them in the same order
            self._free.setdefault(key, []).append(adapter)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def models_of_the_class(cls) -> Iterator[None]:
        yield
        cls._free.clear()

    def created(self, subject: Program, features: Features, labels: Any, seed: int) -> Adapter:
        """Build the program's model, or load the first weights and state into one of the same text and spec."""
        if subject.spec.framework != "keras" or labels is None:
            return frameworks.create(subject, features, labels, seed=seed)
        shapes = [(name, array.shape[1:], array.dtype) for name, array in arrays((features, labels))]
        key = (subject.file.read_bytes(), to_json(subject.spec), repr(shapes))
        first, free = self._firsts.get((*key, seed)), self._free.get(key)
        if first is None or not free:
            adapter = frameworks.create(subject, features, labels, seed=seed)
            first = self._firsts[*key, seed] = First(adapter.get_weights(), adapter.get_state())
        if free:
            adapter = free.pop()
            adapter.set_weights(first.weights)
            adapter.set_state(first.state)
        self._taken.append((key, adapter))
        return adapter
