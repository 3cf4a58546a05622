"""The fault matrix on real processes, with short leases: what the tests of training and inference do not show."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from edl import exit_codes
from edl.data.results import ResultFolder
from edl.errors import ClusterError, JobError, SpecError
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import read_end
from edl.jobs.events import Tally
from edl.jobs.snapshot import read_snapshot
from edl.master import main as master
from edl.master.state_store import MAGIC, FileStateStore
from edl.rpc import control_pb2 as pb
from edl.rpc.channel import MasterChannel
from edl.spec import Cluster, Output
from edl.tasks.ranges import STREAMED_ROWS
from tests.edl.end_to_end.distributed import Event, Job, kill, table
from tests.edl.end_to_end.slow import BLOCKS, SlowJob, slow_trees

ROWS = 4 * STREAMED_ROWS
PREDICT = {"output": Output(column="y", keep=("x",))}
FRAMEWORK = "lightgbm"  # of what needs any model: its processes start fastest
LEASE = 2.0  # seconds: a process that gets no turn for as long is rare
SHORT = ("--lease-secs", str(LEASE))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        job = Job(table(2000), epochs=2, framework=FRAMEWORK)
        job.run_here()
        yield job.archive


def by(model: Path) -> dict[str, Any]:
    """Arguments of a job that uses the model."""
    return {"framework": FRAMEWORK, "weights": model}


def predicted(job: Job, tasks: int) -> pa.Table:
    return ResultFolder(job.folder.results).read(tasks).read_all()


@pytest.mark.soak
def test_a2_a_task_is_done_though_its_owners_die_five_times(model: Path) -> None:
    data = table(ROWS, seed=1)
    orders = [f"worker-0/{incarnation} in a task 2" for incarnation in range(5)]
    job = Job(data, kind="predict", **by(model), how=kill(*orders), spec=PREDICT)
    outcome = job.run()
    assert predicted(job, outcome.tasks).column("x").equals(data.column("x"))
    assert max(event.relaunches for event in job.events if isinstance(event, Tally)) == 5


@pytest.mark.soak
def test_a4_a_master_that_does_not_answer_for_many_leases_is_waited_for() -> None:
    job = SlowJob(table(ROWS), epochs=2, batch_size=256, how=kill(master_arguments=SHORT))
    with job.running():
        job.until(job.trains(1))
        master = job.cluster.process("master")
        assert master is not None
        signal_for(master.pid, signal.SIGSTOP, seconds=6 * LEASE)
        outcome = job.result()  # which needs more tasks than the worker has in hands
    assert outcome.rows == 2 * ROWS
    tally = [event for event in job.events if isinstance(event, Tally)][-1]
    assert tally.relaunches == 0, job.logs()


@pytest.mark.soak
def test_a_master_that_is_frozen_for_good_is_replaced_and_no_row_is_lost() -> None:
    job = SlowJob(table(ROWS), epochs=2, batch_size=256, how=kill(master_arguments=SHORT, master_timeout=3.0))
    with job.running():
        job.until(job.trains(1))
        master = job.cluster.process("master")
        assert master is not None
        signal_for(master.pid, signal.SIGSTOP)
        job.until(lambda now: now.master_relaunches == 1)
        outcome = job.result()
    assert outcome.rows == 2 * ROWS
    assert not master.runs
    assert f"the master (pid {master.pid}) has not answered for 3 s and is killed" in job.logs()


def test_a17_a_reader_that_fails_in_the_middle_of_a_range_loses_nothing(model: Path, tmp_path: Path) -> None:
    """The first read of rows from the middle raises; what was staged of that task does not count."""
    text = f"""

from pathlib import Path

from edl import data


def custom_data_reader(pinned, folder):
    return Failing(data.open_reader(pinned, folder))


class Failing:
    def __init__(self, reader):
        self.reader, self.rows, self.schema = reader, reader.rows, reader.schema

    def read(self, start, end, columns=None):
        mark = Path({str(tmp_path / "failed")!r})
        if start > 100_000 and not mark.exists():
            mark.write_text("once")
            raise OSError("the cable is out")
        return self.reader.read(start, end, columns)
"""
    data = table(ROWS, seed=1)
    job = Job(data, kind="predict", **by(model), spec=PREDICT, append=text)
    outcome = job.run()
    assert (tmp_path / "failed").exists()
    assert predicted(job, outcome.tasks).column("x").equals(data.column("x"))
    assert "the cable is out" in (job.folder.logs / "master.log").read_text()


HANG = """

import time
from pathlib import Path

_feed = feed
_calls = []


def feed(batch, mode):
    mark = Path({mark!r})
    _calls.append(mode)
    if len(_calls) == 5 and not mark.exists():
        mark.write_text("once")
        time.sleep(3600)
    return _feed(batch, mode)
"""


@pytest.mark.soak
def test_a_worker_with_a_hanging_task_is_replaced_and_its_stacks_are_in_its_log(
    model: Path, tmp_path: Path
) -> None:
    """Its heartbeats come from another thread meanwhile."""
    data = table(ROWS, seed=1)
    spec = {**PREDICT, "cluster": Cluster(workers=1, task_timeout=1.0)}
    text = HANG.format(mark=str(tmp_path / "hung"))
    job = Job(data, kind="predict", **by(model), how=kill(master_arguments=SHORT), spec=spec, append=text)
    outcome = job.run()
    assert predicted(job, outcome.tasks).column("x").equals(data.column("x"))
    log = (job.folder.logs / "worker-0.log").read_text()
    assert "ending: no progress for too long; the stacks of all threads:" in log
    assert re.search(r"^  File .*, line \d+ in feed$", log, re.MULTILINE)
    assert "worker-0 made no progress for" in (job.folder.logs / "master.log").read_text()
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    assert [row.note for row in snapshot.instances] == ["hung (exit code 6)"]


@pytest.mark.soak
def test_a_task_that_hangs_at_the_end_is_done_by_an_idle_worker_too(model: Path, tmp_path: Path) -> None:
    data = table(ROWS, seed=1)
    spec = {**PREDICT, "cluster": Cluster(workers=2)}
    text = HANG.format(mark=str(tmp_path / "hung"))
    job = Job(data, kind="predict", **by(model), how=kill(master_arguments=SHORT), spec=spec, append=text)
    outcome = job.run()
    assert (tmp_path / "hung").exists()
    assert predicted(job, outcome.tasks).column("x").equals(data.column("x"))
    assert " does it too" in (job.folder.logs / "master.log").read_text()
    assert [event for event in job.events if isinstance(event, Tally)][-1].relaunches == 0


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["local", "allreduce", "async"])
def test_a_training_with_a_hanging_worker_goes_on(strategy: str, tmp_path: Path) -> None:
    workers = 1 if strategy == "local" else 2
    servers = int(strategy == "async")
    cluster = Cluster(workers, servers, strategy, task_timeout=2.0)  # type: ignore[arg-type]
    text = HANG.format(mark=str(tmp_path / "hung"))
    how = kill(master_arguments=SHORT)
    job = Job(table(20_000), epochs=2, batch_size=64, how=how, spec={"cluster": cluster}, append=text)
    outcome = job.run()
    assert outcome.rows == 2 * 20_000
    assert "no progress for" in job.logs() or "worker-0 did not join: the next group forms" in job.logs()


@pytest.mark.soak
def test_a18_a_job_shrinks_to_no_worker_and_grows_again(model: Path) -> None:
    data = table(ROWS, seed=1)
    job = SlowJob(data, of=BLOCKS, seconds=1, kind="predict", workers=2, **by(model), spec=PREDICT)
    with job.running():
        job.until(job.trains(2))
        job.scale(0)
        job.until(lambda now: all(row.state == "ended" for row in now.instances))
        job.scale(3)
        outcome = job.result()
    assert predicted(job, outcome.tasks).column("x").equals(data.column("x"))


def test_a26_a_second_master_leaves(tmp_path: Path) -> None:
    first = FileStateStore(tmp_path / "state")
    with pytest.raises(ClusterError, match="this job has a master already"):
        FileStateStore(tmp_path / "state")
    first.close()
    FileStateStore(tmp_path / "state").close()


def test_a26_a_second_master_says_nothing_in_the_name_of_the_job(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    first = FileStateStore(folder.path / "state")
    assert master.main([str(tmp_path), "--port", "1", "--cluster-fd", "0"]) == exit_codes.FAILED
    assert not folder.events.exists()
    first.close()


@pytest.mark.soak
def test_a26_a_state_store_of_another_version_ends_the_job_with_a_named_error(model: Path) -> None:
    job = Job(table(100), kind="predict", **by(model), spec=PREDICT)
    job.cluster.path.mkdir()
    (job.cluster.path / "state").write_bytes(b"edl-state 9\n" + MAGIC)
    with pytest.raises(SpecError, match="was written by another version: it is of version 9, not 2"):
        job.run()


def test_a26_a_damaged_state_store_is_named(tmp_path: Path) -> None:
    state_store = FileStateStore(tmp_path / "state")
    state_store.write(b"what is done")
    assert state_store.read() == b"what is done"
    path = tmp_path / "state"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(SpecError, match="is damaged"):
        state_store.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a26_a_full_disk_is_named(tmp_path: Path) -> None:
    state_store = FileStateStore(tmp_path / "state")
    (tmp_path / "state.partial").symlink_to("/dev/full")
    with pytest.raises(JobError, match="cannot be written; the disk is full"):
        state_store.write(b"what is done")


@pytest.mark.soak
def test_a_drained_worker_gives_back_what_it_has_and_another_goes_on() -> None:
    job = slow_trees(table(1500), epochs=30)
    with job.running():
        job.until(job.trains(1))
        os.kill(worker_of(job), signal.SIGTERM)
        job.until(lambda now: now.relaunches)
        outcome = job.result()
    assert outcome.rows == 30 * 1500
    assert "training resumes from step" in (job.folder.logs / "master.log").read_text()
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    assert [row.note for row in snapshot.instances] == ["preempted (exit code 4)"]


@pytest.mark.soak
def test_a_call_without_the_token_is_refused(model: Path) -> None:
    job = Job(table(ROWS), kind="predict", **by(model), spec=PREDICT)
    refused: list[str] = []

    def call(event: Event) -> None:
        if not refused:
            with (
                MasterChannel(job.cluster.address(), "guess") as channel,
                pytest.raises(ClusterError) as caught,
            ):
                channel.call(channel.stub.Cancel, pb.CancelRequest(), 10.0)
            refused.append(caught.value.message)

    job.run(call)
    assert "lacks the token" in refused[0]


@pytest.mark.soak
def test_the_figures_of_a_job_are_written_while_it_runs_and_at_its_end(model: Path) -> None:
    job = Job(table(ROWS), kind="predict", workers=2, **by(model), spec=PREDICT)
    job.run()
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    assert (snapshot.tasks["predict"].done, snapshot.tasks["predict"].todo) == (4, 0)
    assert {row.name for row in snapshot.instances} <= {"worker-0", "worker-1"}
    assert read_end(job.cluster.events) is not None


def worker_of(job: Job) -> int:
    """The process of its only worker."""
    snapshot = read_snapshot(job.cluster.snapshot)
    assert snapshot is not None
    [row] = snapshot.instances
    return int(row.place.removeprefix("pid "))


def signal_for(pid: int, number: signal.Signals, *, seconds: float = 0.0) -> None:
    """Send the signal; after `seconds`, SIGCONT."""
    os.kill(pid, number)
    if seconds:
        threading.Timer(seconds, os.kill, (pid, signal.SIGCONT)).start()
