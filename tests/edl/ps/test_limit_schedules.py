"""Random schedules of a server with limits on its table: it is killed and replaced, and nobody can tell by its rows."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import msgspec
import numpy as np
import pytest

from edl.embeddings import RowTable
from edl.ps import store
from edl.ps.checkpoint.content import Mode
from edl.spec import RowLimits
from tests.edl.ps.servers import SGD
from tests.edl.ps.test_update_log import IDS, MODE, MODEL, Place, push

SPEC = msgspec.structs.replace(MODEL.tables[0], num_ids=IDS)
STEPS = 80
QUICKLY = mock.patch("os.fsync")  # machines do not crash here


class Found(NamedTuple):
    """Numbers of evicted rows, refused gradients, and checkpoints that have changes only."""

    evicted: int
    refused: int
    changes: int


def check_limits(seed: int) -> Found:
    """Compare with a table that lives as long as the job. A server without update log dies after a checkpoint."""
    drawn = random.Random(seed)  # noqa: S311 (a schedule, no secret)
    limits = RowLimits(drawn.choice([0, 2, 3]), drawn.choice([0, 9, 20]), drawn.choice([0, 8, 40]))
    durable, largest = drawn.choice([True, False]), drawn.choice([0.5, 10.0])
    model = msgspec.structs.replace(MODEL, tables=(SPEC,), limits=limits)
    undisturbed = RowTable(SPEC, 0, SGD, limits)
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(store, "LARGEST_CHANGE", largest),
        QUICKLY,
    ):
        place = Place(Path(folder), MODE if durable else Mode("async"), model)
        for number in range(1, STEPS):
            header, arrays = push("a", number, drawn.sample(range(IDS), drawn.randint(1, 6)))
            undisturbed.update(arrays[1], arrays[2], 1.0)
            for _ in range(drawn.choice([1, 1, 2])):
                place.server.answer(header, arrays)
            action = drawn.choices(["", "checkpoint", "kill"], [6, 2, 1])[0]
            if action == "checkpoint" or (action and not durable):
                place.checkpoint()
            if action == "kill":
                place.replace()
            rows = undisturbed.read(np.arange(IDS))[:, 0].tolist()
            assert place.updates() == [round(-value) for value in rows], (seed, number)
            assert place.figures.rows == {"items": len(undisturbed)}, (seed, number)
        changes = len(list(Path(folder).glob("*/server-0-1.safetensors")))
    return Found(undisturbed.evicted, undisturbed.refused, changes)


CHECKS: dict[str, Callable[[int], object]] = {"limits": check_limits}


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 100), marks=pytest.mark.soak)])
def test_rows_are_admitted_and_evicted_as_if_no_server_had_died(seeds: range) -> None:
    found = [check_limits(seed) for seed in seeds]
    assert all(map(any, zip(*found, strict=True)))
