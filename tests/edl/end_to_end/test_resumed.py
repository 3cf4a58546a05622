"""Jobs with parameter servers that are gone on with, by as many servers or others, and lose their answers."""

from __future__ import annotations

import contextlib
import os
import select

import msgspec
import numpy as np
import pytest

from edl.errors import ClusterError
from edl.jobs.cluster_folder import RunSpec
from edl.models.archive import read_archive
from edl.program import read_spec
from edl.spec import Checkpoints, Cluster, to_json
from edl.testing import OUTAGE, SEVER
from tests.edl.end_to_end import counting
from tests.edl.end_to_end.distributed import Job, kill
from tests.edl.end_to_end.slow import SlowJob

DEADLINE = 30.0
ROWS, EPOCHS, BATCH = 4096, 2, 64
OFTEN = Checkpoints(steps=10, secs=0)


def with_environment(how: RunSpec, name: str, value: str) -> RunSpec:
    return msgspec.structs.replace(how, environment={**how.environment, name: value})


def weights(job: Job) -> dict[str, np.ndarray]:
    return dict(read_archive(job.archive).weights())


# A14, A16 ------------------------------------------------------------------------------------------------------

OPTIMIZERS = {
    "adam": "Adam(parameters, lr)",
    "momentum": "SGD(parameters, lr, momentum=0.9)",
    "adagrad": "Adagrad(parameters, lr, initial_accumulator_value=0.5)",
}


def trains_ids(optimizer: str, servers: int, how: RunSpec | None = None) -> Job:
    cluster = Cluster(1, servers, "sync", grads_to_wait=1)
    return Job(
        counting.data(ROWS, per_id=4),  # every minibatch sees new ones, and the next epoch earlier ones
        epochs=EPOCHS,
        batch_size=BATCH,
        replace={
            **counting.AS_TEXT,
            "Adam(parameters, lr, fused=True)": OPTIMIZERS[optimizer],
        },
        how=how,
        spec={"cluster": cluster, "checkpoints": OFTEN, "inputs": {"features": counting.FEATURES}},
    )


def prepare(job: Job, servers: int) -> None:
    """Let the job go on with so many servers, of which none dies, when what ran of it has ended."""
    master = job.cluster.process("master")
    assert master is not None
    with contextlib.suppress(ProcessLookupError):
        process = os.pidfd_open(master.pid)
        assert select.select([process], [], [], DEADLINE)[0]
        os.close(process)
    job.spec = kill()
    spec = read_spec(job.folder.program)
    cluster = msgspec.structs.replace(spec.cluster, parameter_servers=servers)
    (job.folder.program / "job.json").write_bytes(to_json(msgspec.structs.replace(spec, cluster=cluster)))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("optimizer", "before", "after"),
    [
        ("adam", 2, 3),
        pytest.param("momentum", 3, 1, marks=pytest.mark.soak),
        pytest.param("adagrad", 1, 2, marks=pytest.mark.soak),
    ],
)
def test_a14_a16_other_servers_go_on_as_if_nothing_had_been_rows_not_yet_seen_included(
    optimizer: str, before: int, after: int
) -> None:
    here = trains_ids(optimizer, before)
    here.run_here()
    how = with_environment(kill("ps-0/0 while writing a shard 2"), OUTAGE, "ps-0/1 after a push 60")
    job = trains_ids(optimizer, before, how)
    with pytest.raises(ClusterError, match="supervisor died"):
        job.run()
    prepare(job, after)
    outcome = job.run()
    notes = (job.folder.logs / "master.log").read_text()
    assert (outcome.rows, outcome.steps) == (EPOCHS * ROWS, EPOCHS * ROWS // BATCH), job.logs()
    assert "ps-0 killed" in notes
    resized = notes.partition(f"the job continues with {after} parameter servers\n")[2]
    assert "training resumes from step" in resized.splitlines()[0]
    expected, found = weights(here), weights(job)
    assert expected.keys() == found.keys()
    for name, value in expected.items():  # Adam makes steps of 0.01 of gradients that are next to nothing
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4, err_msg=name)


# A23 -----------------------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["async", "sync"])
def test_a23_a_push_with_a_lost_answer_is_applied_once(mode: str) -> None:
    """Every parameter falls by the rate with each step, whatever the others are: so it counts steps."""
    cluster = Cluster(1, 2, mode, grads_to_wait=int(mode == "sync"))  # type: ignore[arg-type]
    lost = "ps-0/0 after a push 20;ps-1/0 after a push 50;ps-1/0 in a push 80;ps-0/0 after a push 120"
    job = Job(
        counting.data(ROWS),
        epochs=EPOCHS,
        how=with_environment(kill(), SEVER, lost),
        **counting.program(cluster=cluster, checkpoints=OFTEN),
    )
    outcome = job.run()
    steps = EPOCHS * ROWS // BATCH
    assert outcome.steps == steps, job.logs()
    assert job.logs().count("all connections are closed") == 4
    found = counting.counts(job)
    assert found.steps == (steps, steps)
    assert (len(found.ids), set(found.rows.tolist())) == (ROWS, {EPOCHS})


@pytest.mark.soak
def test_a_job_with_update_logs_goes_on_from_the_last_update_when_all_of_it_is_killed_at_once() -> None:
    """Its worker dies between two pushes of a gradient at most, of which one server then has its part alone."""
    how = with_environment(kill(), OUTAGE, "ps-0/0 while writing a shard 2")  # one is complete then
    cluster = Cluster(1, 2, "async", durable_updates="process")
    model = counting.program(cluster=cluster, checkpoints=OFTEN)
    job = SlowJob(counting.data(ROWS), epochs=EPOCHS, how=how, **model)
    with pytest.raises(ClusterError, match="supervisor died"):
        job.run()
    job.hurry()
    prepare(job, 2)
    outcome = job.run()
    notes = (job.folder.logs / "master.log").read_text()
    assert notes.count("the updates since then are in its log") == 2, job.logs()
    found = counting.counts(job)
    steps = EPOCHS * ROWS // BATCH
    torn = steps - min(found.steps)
    assert (outcome.rows, outcome.lost_updates) == (EPOCHS * ROWS, torn)
    assert outcome.lost_rows == BATCH * torn
    assert torn <= 1
    assert max(found.steps) == steps
    missing = EPOCHS - found.rows
    assert missing.min() >= 0
    assert missing.sum() <= BATCH
