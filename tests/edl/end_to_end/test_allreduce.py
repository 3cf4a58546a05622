"""Groups on real processes: whoever is lost, the weights equal the weights of one process, and each row counts once."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl.jobs.events import Tally
from edl.jobs.outcome import Outcome
from edl.jobs.snapshot import Snapshot, read_snapshot
from edl.models.archive import read_archive
from edl.spec import Checkpoints, Cluster
from tests.edl.end_to_end.distributed import Job, table
from tests.edl.end_to_end.slow import BLOCKS, STEPS, SlowJob
from tests.edl.worker.test_trainer import overfitting

TRAINED, VALIDATION, EPOCHS, BATCH = 1920, 800, 16, 64
AN_EPOCH = TRAINED // BATCH  # steps
SGD = {
    "torch": {"torch.optim.Adam(parameters, lr, fused=True)": "torch.optim.SGD(parameters, lr)"},
    "keras": {"optimizers.Adam": "optimizers.SGD"},
}

NO_CUTS = Checkpoints(steps=0, secs=0)  # but when all workers leave


def job(workers: int, framework: str = "torch", when: Checkpoints | None = None, **more: Any) -> SlowJob:
    """Slow by steps, or, as steps of Keras are compiled, by tasks. more: of the job."""
    slow: dict[str, Any] = (
        {"seconds": 0.2, "of": STEPS} if framework == "torch" else {"seconds": 1, "of": BLOCKS}
    )
    spec: dict[str, Any] = {"cluster": Cluster(workers=workers, strategy="allreduce")}
    usual = {"epochs": EPOCHS, "minibatches_per_task": 10}
    return SlowJob(
        **{"data": table(TRAINED + VALIDATION), **usual, **slow, **more},
        framework=framework,
        validation=VALIDATION,
        batch_size=BATCH,
        keep="best",
        replace=SGD[framework],
        spec=spec if when is None else {**spec, "checkpoints": when},
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
            subject = job(1, framework, seconds=0)
            found[framework] = subject.run_here(), weights(subject)
        return found[framework]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield trained


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


def group(subject: Job) -> list[str]:
    """The members of the last group, the first one first."""
    found = re.findall(r"in group (\d+) of (.*)", subject.logs())
    return max(found, key=lambda line: int(line[0]))[1].split(", ")


def processes(subject: Job) -> dict[str, int]:
    """Of the instances that run, by their names."""
    snapshot = read_snapshot(subject.cluster.snapshot)
    assert snapshot is not None
    running = (row for row in snapshot.instances if row.state == "running")
    return {row.name: int(row.place.removeprefix("pid ")) for row in running}


def tell(subject: Job, rank: int, number: signal.Signals) -> int:
    """The member of that rank gets the signal; its process."""
    found = processes(subject)[group(subject)[rank]]
    os.kill(found, number)
    return found


def kill_master(subject: Job) -> None:
    found = subject.cluster.process("master")
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)


def tally(subject: Job) -> Tally:
    return [event for event in subject.events if isinstance(event, Tally)][-1]


def notes(subject: Job) -> str:
    return subject.cluster.log("master").read_text()


def have_left(now: Snapshot) -> bool:
    """Whether all workers have."""
    return all(row.state == "ended" for row in now.instances)


@pytest.mark.soak
def test_a24_three_workers_of_which_one_is_killed_train_what_one_process_trains_with_keras(
    alone: Alone,
) -> None:
    subject = job(3, "keras")
    with subject.running():
        subject.until(subject.trains(3))
        tell(subject, 1, signal.SIGKILL)
        subject.until(subject.trains(3))
        outcome = subject.result()
    is_as_alone(subject, outcome, alone("keras"))
    assert tally(subject).relaunches == 1


@pytest.mark.soak
def test_a24_the_first_is_killed_and_another_one_frozen_and_the_master_killed(alone: Alone) -> None:
    subject = job(3)
    with subject.running():
        subject.until(subject.trains(3))
        tell(subject, 0, signal.SIGKILL)
        subject.until(subject.trains(3))
        frozen = tell(subject, -1, signal.SIGSTOP)
        subject.until(lambda now: len(now.members) == 2)
        os.kill(frozen, signal.SIGCONT)
        subject.until(subject.trains(3))
        kill_master(subject)
        subject.until(lambda now: now.master_relaunches and subject.trains(3)(now))
        outcome = subject.result()
    is_as_alone(subject, outcome, alone("torch"))
    assert "resumes from" not in notes(subject)


def resumed_at(subject: Job) -> int:
    """The step from which the job went on, without those that were there before."""
    [step] = re.findall(r"training resumes from step ([\d,]+)", notes(subject))
    return int(step.replace(",", ""))


@pytest.mark.soak
def test_a18_a_group_shrinks_to_no_worker_and_grows_again_from_where_it_was(alone: Alone) -> None:
    subject = job(2, when=NO_CUTS)
    with subject.running():
        subject.until(subject.trains(2))
        subject.scale(1)
        subject.until(subject.trains(1))
        subject.scale(2)
        subject.until(lambda now: now.step > AN_EPOCH and subject.trains(2)(now))
        subject.scale(0)
        subject.until(have_left)
        subject.scale(2)
        outcome = subject.result()
    is_as_alone(subject, outcome, alone("torch"))
    assert AN_EPOCH < resumed_at(subject) < outcome.steps


MEASURING = """

import time
from pathlib import Path

_feed = feed


def feed(batch, mode):
    if mode == "evaluate":
        (Path(FOLDER) / "measuring").touch()
        while not (Path(FOLDER) / "told").exists():
            time.sleep(0.02)
    return _feed(batch, mode)
"""


@pytest.mark.soak
def test_a18_a_group_that_leaves_while_an_epoch_is_measured_does_not_train_it_again(
    alone: Alone, tmp_path: Path
) -> None:
    subject = job(2, when=NO_CUTS, seconds=0, append=MEASURING.replace("FOLDER", repr(str(tmp_path))))
    with subject.running():
        subject.until(lambda now: (tmp_path / "measuring").exists())
        subject.scale(0)
        for found in processes(subject).values():
            os.kill(found, signal.SIGTERM)  # nobody may go on before it has heard that it is to leave
        (tmp_path / "told").touch()
        subject.until(have_left)
        subject.scale(2)
        outcome = subject.result()
    is_as_alone(subject, outcome, alone("torch"))
    assert resumed_at(subject) == AN_EPOCH


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


@pytest.mark.soak
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
