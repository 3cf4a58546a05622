"""A21: a group to which everything happens in one job, one thing after another."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from edl.jobs.events import Progress
from edl.jobs.outcome import Outcome
from edl.spec import Checkpoints
from edl.worker.strategies.allreduce.member import LEAST_TIMEOUT
from tests.edl.end_to_end import test_allreduce as groups
from tests.edl.end_to_end.distributed import Event, table
from tests.edl.end_to_end.slow import SlowJob

ROWS, EPOCHS = 58_000, 3
TRAINED = EPOCHS * ROWS

Act = Callable[[SlowJob], object]


def _tell(subject: SlowJob, rank: int, number: signal.Signals) -> None:
    groups.tell(subject, rank, number)


def _freeze(subject: SlowJob) -> None:
    """The last member stands still for longer than the others wait, then goes on."""
    found = groups.tell(subject, -1, signal.SIGSTOP)

    def thaw() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found, signal.SIGCONT)

    threading.Timer(2 * LEAST_TIMEOUT, thaw).start()


HAPPENS: tuple[tuple[str, Act], ...] = (
    ("a worker is killed", partial(_tell, rank=1, number=signal.SIGKILL)),
    ("one is frozen", _freeze),
    ("scale up", partial(SlowJob.scale, workers=4)),
    ("the first is killed", partial(_tell, rank=0, number=signal.SIGKILL)),
    ("the master is killed", groups.kill_master),
    ("scale down", partial(SlowJob.scale, workers=2)),
    ("one has to go", partial(_tell, rank=0, number=signal.SIGTERM)),
)


class Storm(NamedTuple):
    """seconds: of the training, undisturbed and in the storm. same: whether both gave the same."""

    calm: float
    storm: float
    same: bool


def weathered() -> Storm:
    calm, disturbed = _job(), _job()
    undisturbed = _run(calm, [])
    part = TRAINED // (len(HAPPENS) + 1)
    outcome = _run(disturbed, [(number * part, act) for number, (_, act) in enumerate(HAPPENS, 1)])
    return Storm(undisturbed.seconds, outcome.seconds, _same(calm, disturbed))


def _job() -> SlowJob:
    """At full speed."""
    data, when = table(ROWS + groups.VALIDATION), Checkpoints(steps=200, secs=0)
    return groups.job(3, when=when, data=data, epochs=EPOCHS, minibatches_per_task=50, seconds=0)


def _run(subject: SlowJob, happens: list[tuple[int, Act]]) -> Outcome:
    """Run it; each of these happens when so many rows are done."""

    def heard(event: Event) -> None:
        while happens and isinstance(event, Progress) and event.rows >= happens[0][0]:
            happens.pop(0)[1](subject)

    outcome = subject.run(heard)
    assert not happens
    return outcome


def _same(one: SlowJob, other: SlowJob) -> bool:
    found, expected = groups.weights(one), groups.weights(other)
    return found.keys() == expected.keys() and all(
        abs(found[name] - expected[name]).max() <= 1e-5 for name in found
    )
