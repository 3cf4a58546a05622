"""How large row tables become, from the JobSpec alone."""

from __future__ import annotations

import msgspec
import pytest

from edl.embeddings.sizes import in_tables, slots, table_memory
from edl.spec import Component, Embedding, HashBucket, Numeric
from tests.edl.models.conftest import SPEC


@pytest.mark.parametrize(
    ("optimizer", "kept"),
    [
        (Component("sgd", {"momentum": 0.0}), 0),
        (Component("sgd", {"momentum": 0.9}), 1),
        (Component("adam"), 2),
        (Component("adam", {"amsgrad": True}), 3),
        (Component("rmsprop", {"momentum": 0.5, "centered": True}), 3),
    ],
)
def test_tables_outside_of_the_graph_count_with_their_slots(optimizer: Component, kept: int) -> None:
    small, large = Embedding(HashBucket("a", 1000), 100), Embedding(HashBucket("b", 1000), 200)
    spec = msgspec.structs.replace(SPEC, inputs={"x": (Numeric("c"), small, large)}, optimizer=optimizer)
    assert slots(optimizer) == kept
    assert in_tables(spec) == 1001 * 200
    assert table_memory(spec) == 1001 * 200 * 4 * (1 + kept)
