"""Jobs whose master is killed, with a successor that comes late: workers go on meanwhile, and each row counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.data.results import ResultFolder
from edl.jobs.cluster_folder import RunSpec
from edl.jobs.outcome import Outcome
from edl.program import read_spec
from edl.spec import Checkpoints, Cluster, to_json
from edl.tasks.ranges import STREAMED_ROWS
from edl.testing import BACKOFF, Moment, read_moments
from tests.edl.end_to_end import counting
from tests.edl.end_to_end import test_allreduce as groups
from tests.edl.end_to_end.distributed import kill, table
from tests.edl.end_to_end.slow import BLOCKS, SlowJob
from tests.edl.end_to_end.test_inference import PREDICT

SECS = 4.0  # without a master
ROWS, EPOCHS = 2048, 40
RARELY = Checkpoints(steps=0, secs=0)


def late(folder: Path) -> RunSpec:
    """Settings of a job whose next masters are late, and whose workers write their moments."""
    moments = folder / "moments"
    moments.mkdir()
    return kill(moments=moments, environment={BACKOFF: str(SECS)})


def lose_master(subject: SlowJob, rows: int) -> Outcome:
    """Run the job, and kill its master when so many rows are done."""
    with subject.running():
        subject.until(lambda now: now.rows >= rows)
        groups.kill_master(subject)
        subject.until(lambda now: now.master_relaunches)
        return subject.result()


def went_on(folder: Path) -> bool:
    """Return True if work was done all the time until the next master counted something."""
    moments = [moment for path in sorted((folder / "moments").iterdir()) for moment in read_moments(path)]
    first = _first(moments, epoch=2)
    lost = max(at for at in list_counts(moments, epoch=1) if at < first)
    worked = [moment.second for moment in moments if moment.what == "batch" and lost < moment.second < first]
    return first - lost > SECS and max(worked, default=lost) > lost + SECS * 0.8


def list_counts(moments: list[Moment], epoch: int) -> list[float]:
    return [moment.second for moment in moments if moment.what == "acknowledged" and moment.epoch == epoch]


def _first(moments: list[Moment], epoch: int) -> float:
    return min(list_counts(moments, epoch))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        job = SlowJob(table(2000), seconds=0, epochs=2)
        job.run_here()
        yield job.archive


@pytest.mark.parametrize("kind", ["predict", pytest.param("evaluate", marks=pytest.mark.soak)])
def test_workers_predict_and_measure_while_there_is_no_master(model: Path, kind: str, tmp_path: Path) -> None:
    data = table(60 * STREAMED_ROWS, seed=1)
    uses: dict[str, Any] = {"kind": kind, "weights": model, "spec": PREDICT if kind == "predict" else {}}
    subject = SlowJob(data, of=BLOCKS, seconds=0.1, workers=2, how=late(tmp_path), **uses)
    outcome = lose_master(subject, 3 * STREAMED_ROWS)
    assert went_on(tmp_path), subject.logs()
    assert outcome.rows == data.num_rows
    if kind == "predict":
        found = ResultFolder(subject.folder.results).read(outcome.tasks).read_all()
        assert found.column("x").equals(data.column("x"))


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_workers_train_on_servers_over_the_ends_of_epochs_while_there_is_no_master(
    mode: str, workers: int, tmp_path: Path
) -> None:
    waits = {"grads_to_wait": workers} if mode == "sync" else {}
    cluster = Cluster(workers, 1, mode, **waits)  # type: ignore[arg-type]
    subject = SlowJob(
        counting.data(ROWS + 256),
        validation=256,
        epochs=EPOCHS,
        minibatches_per_task=4,
        how=late(tmp_path),
        seconds=0.02,
        **counting.program(cluster=cluster, checkpoints=RARELY),
    )
    outcome = lose_master(subject, 6 * ROWS)
    assert went_on(tmp_path), subject.logs()
    assert outcome.rows == EPOCHS * ROWS
    found = counting.counts(subject)
    if workers == 1 or mode == "async":
        assert set(found.rows[: len(found.ids)].tolist()) == {EPOCHS}, subject.logs()
    assert [row.epoch for row in outcome.curve if row.final] == list(range(1, EPOCHS + 1))


@pytest.mark.parametrize(
    "workers", [2, pytest.param(1, marks=pytest.mark.soak), pytest.param(0, marks=pytest.mark.soak)]
)
def test_those_who_hold_the_weights_go_on_and_measure_ended_epochs_later_on_the_weights_of_then(
    workers: int, tmp_path: Path
) -> None:
    """0 is a sole trainer. Each epoch has its own figures, as in one process, and the best one is the same."""
    subject = groups.job(max(1, workers), when=RARELY, how=late(tmp_path), seconds=0.03)
    if not workers:
        spec = msgspec.structs.replace(read_spec(subject.folder.program), cluster=Cluster(workers=1))
        (subject.folder.program / "job.json").write_bytes(to_json(spec))
    outcome = lose_master(subject, 3 * groups.TRAINED)
    assert went_on(tmp_path), subject.logs()
    alone = groups.job(1, seconds=0)
    expected = alone.run_here()
    groups.is_as_alone(subject, outcome, (expected, groups.weights(alone)))
    assert outcome.kept_epoch == expected.kept_epoch


SLOW_ROUNDS = """

import time

from edl.frameworks.trees import adapter

_train = adapter.TreeAdapter.train


def _slowly(*arguments):
    time.sleep(0.1)
    return _train(*arguments)


adapter.TreeAdapter.train = _slowly
"""


@pytest.mark.soak
@pytest.mark.parametrize("framework", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("validation", [0, 300])
@pytest.mark.parametrize("workers", [1, 2])
def test_trees_grow_on_while_there_is_no_master_and_rounds_are_measured_later(
    workers: int, validation: int, framework: str, tmp_path: Path
) -> None:
    data, rounds = table(1500 + validation), 120
    cluster = Cluster(workers, strategy="allreduce" if workers > 1 else "local")
    options: dict[str, Any] = {
        "framework": framework,
        "epochs": rounds,
        "validation": validation,
        "spec": {"cluster": cluster},
        "seconds": 0,
    }
    subject = SlowJob(data, of=BLOCKS, how=late(tmp_path), append=SLOW_ROUNDS, **options)
    outcome = lose_master(subject, 10 * 1500)
    assert went_on(tmp_path), subject.logs()
    assert (outcome.rows, outcome.steps) == (rounds * 1500, rounds)
    assert [row.epoch for row in outcome.curve] == list(range(1, rounds + 1))
    if validation:
        undisturbed = SlowJob(data, of=BLOCKS, how=kill(), **options)
        with undisturbed.running():
            expected = undisturbed.result()
        for row, other in zip(outcome.curve, expected.curve, strict=True):
            assert row.metrics == pytest.approx(other.metrics, rel=1e-9)
        assert outcome.kept_epoch == expected.kept_epoch
