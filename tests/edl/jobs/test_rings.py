"""Rings on real processes: whoever is lost, the weights are those of one process, and each row counts once."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.cluster.snapshot import read_snapshot
from edl.models.archive import read_archive
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import MasterChannel
from edl.spec import Checkpoints, Cluster
from edl.tasks.events import Progress, Tally
from edl.tasks.outcome import Outcome
from edl.worker.allreduce import LEAST_TIMEOUT
from tests.edl.jobs.distributed import Event, Job, slow, table
from tests.edl.worker.test_training import overfitting

ROWS, VALIDATION, EPOCHS = 60_000, 2000, 3
TRAINED = EPOCHS * (ROWS - VALIDATION)
SGD = {
    "torch": {"torch.optim.Adam(parameters, lr, fused=True)": "torch.optim.SGD(parameters, lr)"},
    "keras": {"optimizers.Adam": "optimizers.SGD"},
}

NO_CUTS = Checkpoints(steps=0, secs=0)  # but when all workers leave

Act = Callable[[Job], object]


def job(workers: int, framework: str = "torch", **more: Any) -> Job:
    return Job(
        table(ROWS),
        framework=framework,
        validation=VALIDATION,
        epochs=EPOCHS,
        batch_size=64,
        minibatches_per_task=50,
        keep="best",
        replace=SGD[framework],
        spec={"cluster": Cluster(workers=workers, strategy="allreduce"), **more},
    )


def weights(subject: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(subject.archive).weights())


Alone = Callable[[str], tuple[Outcome, dict[str, np.ndarray]]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """What the job comes to in one process, by framework."""
    found: dict[str, tuple[Outcome, dict[str, np.ndarray]]] = {}

    def trained(framework: str) -> tuple[Outcome, dict[str, np.ndarray]]:
        if framework not in found:
            subject = job(1, framework)
            found[framework] = subject.run_here(), weights(subject)
        return found[framework]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield trained


def run(
    subject: Job, *happens: tuple[int, Act], also: Callable[[Event], None] = lambda event: None
) -> Outcome:
    """Run it; each of these happens when so many rows are done. also: hears everything."""
    left = list(happens)

    def heard(event: Event) -> None:
        also(event)
        while left and isinstance(event, Progress) and event.rows >= left[0][0]:
            left.pop(0)[1](subject)

    outcome = subject.run(heard)
    assert not left
    return outcome


def is_as_alone(subject: Job, outcome: Outcome, expected: tuple[Outcome, dict[str, np.ndarray]]) -> None:
    """Each row was trained once an epoch, in as many steps as in one process, and the weights are the same."""
    there, values = expected
    assert (outcome.rows, outcome.steps) == (there.rows, there.steps), subject.logs()
    found = weights(subject)
    assert found.keys() == values.keys()
    for name, array in found.items():
        np.testing.assert_allclose(array, values[name], atol=1e-5, err_msg=subject.logs())
    for row, other in zip(outcome.curve, there.curve, strict=True):
        assert (row.step, row.loss) == (other.step, pytest.approx(other.loss, rel=1e-4))
        assert row.metrics == pytest.approx(other.metrics, rel=1e-4)


def ring(subject: Job) -> list[str]:
    """The members of the last ring, the first one first."""
    found = re.findall(r"in ring (\d+) of (.*)", subject.logs())
    return max(found, key=lambda line: int(line[0]))[1].split(", ")


def process(subject: Job, name: str) -> int:
    snapshot = read_snapshot(subject.cluster.snapshot)
    assert snapshot is not None
    [place] = [row.place for row in snapshot.instances if row.name == name]
    return int(place.removeprefix("pid "))


def member(rank: int, number: signal.Signals) -> Act:
    """The member of that rank gets the signal."""
    return lambda subject: os.kill(process(subject, ring(subject)[rank]), number)


def frozen(subject: Job) -> None:
    """The last member stands still for longer than the others wait, then goes on."""
    found = process(subject, ring(subject)[-1])

    def thaw() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(found, signal.SIGCONT)

    os.kill(found, signal.SIGSTOP)
    threading.Timer(2 * LEAST_TIMEOUT, thaw).start()


def master_dies(subject: Job) -> None:
    found = subject.cluster.process("master")
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)


def scale(subject: Job, workers: int) -> None:
    with MasterChannel(subject.cluster.address(), subject.cluster.token()) as channel:
        channel.call(channel.stub.Scale, pb.ScaleRequest(workers=workers), 10.0)


def tally(subject: Job) -> Tally:
    return [event for event in subject.events if isinstance(event, Tally)][-1]


def notes(subject: Job) -> str:
    return subject.cluster.log("master").read_text()


@pytest.mark.soak
def test_a24_three_workers_of_which_one_is_killed_train_what_one_process_trains_with_keras(
    alone: Alone,
) -> None:
    subject = job(3, "keras")
    outcome = run(subject, (TRAINED // 4, member(1, signal.SIGKILL)))
    is_as_alone(subject, outcome, alone("keras"))
    assert tally(subject).relaunches == 1


def test_a24_the_first_is_killed_and_another_one_frozen_and_the_master_killed(alone: Alone) -> None:
    subject = job(3)
    outcome = run(
        subject,
        (TRAINED // 8, member(0, signal.SIGKILL)),
        (TRAINED // 3, frozen),
        (TRAINED // 2, master_dies),
    )
    is_as_alone(subject, outcome, alone("torch"))
    assert "goes on from" not in notes(subject)


class Tide:
    """Leaves a job without a worker, and gives it two again once all have gone."""

    def __init__(self, subject: Job) -> None:
        self._subject = subject
        self._wanted: list[int] = []

    def ebb(self, subject: Job) -> None:
        scale(subject, 0)
        self._wanted.append(2)

    def flow(self, event: Event) -> None:
        if isinstance(event, Tally) and not event.instances and self._wanted:
            scale(self._subject, self._wanted.pop())


def resumed_at(subject: Job) -> int:
    """The step from which the job went on, without those that were there before."""
    [step] = re.findall(r"training goes on from step ([\d,]+)", notes(subject))
    return int(step.replace(",", ""))


def test_a18_a_ring_shrinks_to_no_worker_and_grows_again_from_where_it_was(alone: Alone) -> None:
    subject = slow(job(2, checkpoints=NO_CUTS))  # an epoch is to last longer than it takes to scale
    tide = Tide(subject)
    late = TRAINED * 3 // 8  # in the second epoch
    happens = (TRAINED // 12, partial(scale, workers=1)), (TRAINED // 6, partial(scale, workers=2))
    outcome = run(subject, *happens, (late, tide.ebb), also=tide.flow)
    is_as_alone(subject, outcome, alone("torch"))
    assert resumed_at(subject) * 64 >= late


@pytest.mark.soak
def test_a18_a_ring_that_leaves_while_an_epoch_is_measured_does_not_train_it_again(alone: Alone) -> None:
    subject = slow(job(2, checkpoints=NO_CUTS), "3.0 if mode == 'evaluate' else 0.0")
    tide = Tide(subject)
    outcome = run(subject, (TRAINED // EPOCHS, tide.ebb), also=tide.flow)
    is_as_alone(subject, outcome, alone("torch"))
    assert resumed_at(subject) == outcome.steps // EPOCHS


DYING = """

import os
import signal
from pathlib import Path

from edl import Callback


class Dying(Callback):
    def on_epoch_end(self, epoch, figures, control):
        self.die(f"epoch {epoch}")

    def on_train_end(self, figures):
        self.die("the end")

    def die(self, moment):
        order = Path(FOLDER) / moment
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def callbacks():
    return [Dying()]
"""


def test_the_best_epoch_outlives_who_concludes_the_next_one_and_who_exports(tmp_path: Path) -> None:
    orders = tmp_path / "orders"
    orders.mkdir()
    options: dict[str, Any] = {
        "validation": 20,
        "epochs": 200,
        "batch_size": 8,
        "early_stopping": 3,
        "keep": "best",
        "append": DYING.replace("FOLDER", repr(str(orders))),
    }
    alone = Job(overfitting(), **options)
    expected = alone.run_here()
    subject = Job(overfitting(), spec={"cluster": Cluster(workers=3, strategy="allreduce")}, **options)
    for moment in (f"epoch {expected.kept_epoch + 1}", "the end"):
        (orders / moment).touch()
    outcome = subject.run()
    assert not list(orders.iterdir())
    assert (outcome.epochs, outcome.stopped) == (expected.epochs, expected.stopped), subject.logs()
    assert 0 < outcome.kept_epoch == expected.kept_epoch
    is_as_alone(subject, outcome, (expected, weights(alone)))
