"""Which server has which parameter, and which row."""

from __future__ import annotations

import numpy as np
import pytest

from edl.ps import partitioning
from edl.ps.checkpoint.content import Dense

PARAMETERS = (
    Dense("kernel", (20, 100)),
    Dense("bias", (100,)),
    Dense("scale", ()),
    Dense("deep", (100, 10)),
    Dense("none", (0, 4)),
)


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {one.name: rng.normal(size=one.shape).astype(np.float32) for one in PARAMETERS}


@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_parameters_come_out_as_they_went_in(servers: int) -> None:
    placement, given, found = partitioning.Placement(PARAMETERS, servers), values(), {}
    for server in range(servers):
        vector = placement.flat(given, server)
        assert vector.shape == (placement.sizes[server],)
        found |= placement.unflat(vector, server)
    assert found.keys() == given.keys()
    for name, array in given.items():
        np.testing.assert_array_equal(found[name], array)


def test_the_largest_parameters_are_placed_first_and_apart() -> None:
    placement = partitioning.Placement(PARAMETERS, 2)
    assert placement.names == (("kernel",), ("bias", "scale", "deep", "none"))
    assert placement.sizes == (2000, 1101)


def test_the_order_of_the_definition_does_not_move_a_parameter() -> None:
    one, other = partitioning.Placement(PARAMETERS, 3), partitioning.Placement(PARAMETERS[::-1], 3)
    assert [set(names) for names in one.names] == [set(names) for names in other.names]


@pytest.mark.parametrize("servers", [1, 2, 3, 8])
def test_rows_are_split_and_joined_in_their_order(servers: int) -> None:
    rng = np.random.default_rng(1)
    ids = rng.choice(2**62, 1000, replace=False) - 2**61
    rows = rng.normal(size=(1000, 3)).astype(np.float32)
    parts = partitioning.split(ids, servers)
    assert len(parts) == servers
    for server, part in enumerate(parts):
        assert partitioning.owned_mask(part.ids, server, servers).all()
        np.testing.assert_array_equal(ids[part.places], part.ids)
    np.testing.assert_array_equal(partitioning.join_blocks(parts, [part.of(rows) for part in parts]), rows)


def test_rows_are_spread_evenly_and_each_has_one_server() -> None:
    ids = np.arange(100_000)
    owned = np.stack([partitioning.owned_mask(ids, server, 4) for server in range(4)])
    assert (owned.sum(axis=0) == 1).all()
    assert (abs(owned.sum(axis=1) - 25_000) < 1000).all()


def test_one_server_gets_the_very_arrays() -> None:
    ids, rows = np.arange(5), np.ones((5, 2), np.float32)
    parts = partitioning.split(ids, 1)
    assert parts[0].ids is ids
    assert parts[0].of(rows) is rows
    assert partitioning.join_blocks(parts, [rows]) is rows


@pytest.mark.parametrize("servers", [1, 2])
def test_no_ids_are_split_too(servers: int) -> None:
    parts = partitioning.split(np.empty(0, np.int64), servers)
    assert partitioning.join_blocks(parts, [np.empty((0, 4), np.float32)] * servers).shape == (0, 4)
