"""A21: a ring to which everything happens in one job, one thing after another."""

from __future__ import annotations

import signal
from functools import partial
from typing import NamedTuple

from edl.spec import Checkpoints
from tests.edl.jobs import test_rings as rings
from tests.edl.jobs.distributed import Job

HAPPENS = (
    ("a worker is killed", rings.member(1, signal.SIGKILL)),
    ("one is frozen", rings.frozen),
    ("scale up", partial(rings.scale, workers=4)),
    ("the first is killed", rings.member(0, signal.SIGKILL)),
    ("the master is killed", rings.master_dies),
    ("scale down", partial(rings.scale, workers=2)),
    ("one has to go", rings.member(0, signal.SIGTERM)),
)


class Storm(NamedTuple):
    """seconds: of the training, undisturbed and in the storm. same: whether both gave the same."""

    calm: float
    storm: float
    same: bool


def weathered() -> Storm:
    calm, disturbed = (rings.job(3, checkpoints=Checkpoints(steps=200, secs=0)) for _ in range(2))
    undisturbed = rings.run(calm)
    part = rings.TRAINED // (len(HAPPENS) + 1)
    outcome = rings.run(disturbed, *((number * part, act) for number, (_, act) in enumerate(HAPPENS, 1)))
    return Storm(undisturbed.seconds, outcome.seconds, _same(calm, disturbed))


def _same(one: Job, other: Job) -> bool:
    found, expected = rings.weights(one), rings.weights(other)
    return found.keys() == expected.keys() and all(
        abs(found[name] - expected[name]).max() <= 1e-5 for name in found
    )
