"""How memory grows."""

from __future__ import annotations

from typing import Any

import pytest

from edl.cluster.kubernetes.deployment import Policy
from edl.cluster.kubernetes.memory import Growth, Memory

MEBI = 1 << 20


def growth(limit_of_policy: str = "", **resources: dict[str, str]) -> Growth:
    manifest: dict[str, Any] = {"spec": {"containers": [{"resources": resources}]}}
    return Growth(Policy(memory_factor=1.5, memory_limit=limit_of_policy), manifest)


def test_request_and_limit_grow_together() -> None:
    grown = growth(limits={"memory": "100Mi"}, requests={"memory": "50Mi"})
    assert grown.first == Memory(50 * MEBI, 100 * MEBI)
    assert grown.after(grown.first) == Memory(75 * MEBI, 150 * MEBI)


@pytest.mark.parametrize(("limit", "most"), [("", 400 * MEBI), ("200Mi", 200 * MEBI), ("50Mi", 100 * MEBI)])
def test_it_grows_up_to_a_limit_and_never_shrinks(limit: str, most: int) -> None:
    grown = growth(limit, limits={"memory": "100Mi"})
    has = grown.first
    for _ in range(10):
        has = grown.after(has)
    assert has == Memory(0, most)


def test_a_request_never_is_above_its_limit() -> None:
    grown = growth("120Mi", limits={"memory": "100Mi"}, requests={"memory": "100Mi"})
    assert grown.after(grown.first) == Memory(120 * MEBI, 120 * MEBI)


def test_without_a_limit_more_is_asked_for() -> None:
    grown = growth(requests={"memory": "100Mi"})
    assert grown.after(grown.first) == Memory(150 * MEBI, 0)


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (Memory(512 * MEBI, 2048 * MEBI), "(limit 2Gi)"),
        (Memory(512 * MEBI), "(that of its node, of which it requested 512Mi)"),
        (Memory(), "(that of its node)"),
    ],
)
def test_it_is_told_if_the_memory_of_the_pod_or_of_its_node_ran_out(memory: Memory, words: str) -> None:
    assert str(memory) == words


def test_what_nothing_is_said_of_stays_so() -> None:
    grown = growth()
    assert grown.after(grown.first) == Memory(0, 0)
